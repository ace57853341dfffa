/** Creates, lists, changes, publishes and unpublishes apps. The settings of apps are in operations/settings. */
import type { EntityManager } from "typeorm";
import { AppRow, isClosedStageSql } from "../../data/app.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, mayPerformOnApp } from "../../rules/access.js";
import { createAppUpdateEvent } from "../../rules/app-events.js";
import { isObject } from "../../rules/describe-value.js";
import { parseOptionalId, requireText } from "../../rules/fields.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { Credentials } from "../access/credentials.js";
import type { People } from "../access/people.js";
import { notifyPublicationChange } from "../client/client-feed.js";
import { recordChange } from "../records/audit.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { Settings } from "../settings/settings.js";
import { type AppChanges, type AppChangeTarget, parseAppChanges, writeAppChanges } from "./app-fields.js";
import { createAppSnapshot } from "./app-versions.js";

/** An app without its settings. Times are ISO 8601. */
export interface App {
  id: number;
  /** Organization that owns the app. For callers who can only run the app's actions, this field, `hooks` and `dependencies` are null. */
  organizationId: number | null;
  name: string;
  isPublished: boolean;
  startingPageId: number | null;
  hooks: unknown;
  isTemplate: boolean;
  dependencies: unknown;
  icon: string | null;
  isSystemTemplate: boolean;
  isHidden: boolean;
  requiresTests: boolean;
  createdAt: string;
  updatedAt: string;
}

function toApp(row: AppRow): App {
  const {
    publishedAt,
    createdAt,
    updatedAt,
    dataKey: _,
    secretsVersion: _v,
    secretsForgotten: _f,
    schedulesPausedAt: _s,
    ...fields
  } = row;
  return {
    ...fields,
    isPublished: publishedAt !== null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

const NEW_APP_SHAPE = createFlatShape(["name", "organizationId"], ["id", "isPublished", "createdAt", "updatedAt"]);

const toVisitorView = (app: App): App => ({ ...app, organizationId: null, hooks: null, dependencies: null });

const canReadConfiguration = (caller: Caller, appId: number): boolean =>
  mayPerformOnApp(caller, "readDataSources", appId);

interface AppsOptions {
  db: Db;
  credentials: Pick<Credentials, "clearCallerCaches">;
  people: Pick<People, "requireOrganizationId">;
  settings: Settings;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
}

export class Apps {
  constructor(private readonly options: AppsOptions) {}

  private async findApp(appId: number): Promise<AppRow> {
    const row = appId > 0 ? await this.options.db.getRepository(AppRow).findOneBy({ id: appId }) : null;
    if (!row) throw new ActionError("APP_NOT_FOUND");
    return row;
  }

  /**
   * Changes fields of the app.
   * @param keys keys of settings that this transaction has already written; the log event lists them together with the fields
   */
  private async changeApp(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { changes, keys = [] }: { changes: AppChanges; keys?: readonly string[] },
  ): Promise<void> {
    const { logEvents, receivedDataLimiter } = this.options;
    const fields = Object.keys(changes);
    if (fields.length > 0) {
      // A change counts in the app's quota for written bytes, because PostgreSQL keeps the replaced row on disk for a while.
      receivedDataLimiter.countRows(caller, appId, Buffer.byteLength(JSON.stringify(changes)));
      await writeAppChanges(manager, appId, changes);
      await recordChange(manager, caller, { appId, type: "app.update", data: { fields } });
    }
    const auditedFields = keys.length > 0 ? { fields: [...fields, "settings"], keys } : { fields };
    if (auditedFields.fields.length > 0)
      await logEvents.emit(manager, caller, appId, createAppUpdateEvent(auditedFields));
  }

  private async setPublished(
    caller: Caller,
    { appId, precondition }: AppChangeTarget,
    published: boolean,
  ): Promise<App> {
    const { db, credentials } = this.options;
    await transactWithAppLock(db, appId, async (manager) => {
      await this.checkETag(manager, appId, precondition);
      if (published) await createAppSnapshot(manager, caller, appId, "publish");
      await rows(
        manager,
        `UPDATE app SET published_at = CASE WHEN $2 THEN coalesce(published_at, now()) END, updated_at = ${NEXT_UPDATED_AT_SQL} WHERE id = $1`,
        [appId, published],
      );
      await recordChange(manager, caller, { appId, type: published ? "app.publish" : "app.unpublish", data: {} });
      await notifyPublicationChange(manager, appId);
    });
    // The sessions of the app's visitors are valid only while the app is published. So all processes must clear their caches of callers and
    // of unknown tokens.
    await credentials.clearCallerCaches();
    return toApp(await this.findApp(appId));
  }

  /** Creates an app. @throws REQUEST_INVALID */
  async create(data: Record<string, unknown>): Promise<App> {
    const { db, credentials, people } = this.options;
    const name = requireText(data["name"], "name");
    const organizationId = await people.requireOrganizationId(
      parseOptionalId(data["organizationId"], "organizationId"),
    );
    refuseUnknownFields(data, NEW_APP_SHAPE);
    const sql = "INSERT INTO app (organization_id, name) VALUES ($1, $2) RETURNING id";
    const [made] = await rows<{ id: number }>(db, sql, [organizationId, name]);
    // Members of the organization now have a role on the new app. So all processes must clear their caches of callers.
    await credentials.clearCallerCaches();
    return toApp(await this.findApp(made!.id));
  }

  async list(caller: Caller): Promise<App[]> {
    const ids = caller.kind === "editor" ? [...caller.roles.keys()] : [caller.appId];
    const appRows = await this.options.db
      .getRepository(AppRow)
      .createQueryBuilder("app")
      .where("(:all OR app.id = ANY (:ids))", { all: caller.kind === "admin", ids })
      .andWhere(`NOT ${isClosedStageSql("app.id")}`)
      .orderBy("app.id")
      .getMany();
    return appRows.map((row) => (canReadConfiguration(caller, row.id) ? toApp(row) : toVisitorView(toApp(row))));
  }

  async get(appId: number): Promise<App> {
    return toApp(await this.findApp(appId));
  }

  /**
   * Changes the app's fields. Ignores `settings`, read-only fields, and fields that the caller cannot change.
   * @throws REQUEST_INVALID, RESOURCE_CHANGED
   */
  async update(caller: Caller, { appId, precondition }: AppChangeTarget, body: unknown): Promise<App> {
    const changes = parseAppChanges(body, { mayChangeAdminFields: mayPerformOnApp(caller, "administrate", appId) });
    await transactWithAppLock(this.options.db, appId, async (manager) => {
      await this.checkETag(manager, appId, precondition);
      await this.changeApp(manager, caller, appId, { changes });
    });
    return toApp(await this.findApp(appId));
  }

  /**
   * Changes the app's fields, and its public and private settings, in one transaction. Ignores protected settings in the body.
   * @throws REQUEST_INVALID, SETTINGS_INVALID, RESOURCE_CHANGED
   */
  async updateWithSettings(caller: Caller, { appId, precondition }: AppChangeTarget, body: unknown): Promise<App> {
    const { db, settings } = this.options;
    const changes = parseAppChanges(body, { mayChangeAdminFields: true });
    const input = isObject(body) && Object.hasOwn(body, "settings") ? body["settings"] : {};
    const entries = settings.validateIgnoringProtected(input);
    await transactWithAppLock(db, appId, async (manager) => {
      await this.checkETag(manager, appId, precondition);
      await settings.write(manager, caller, appId, entries);
      await this.changeApp(manager, caller, appId, { changes, keys: entries.map(([key]) => key) });
    });
    return toApp(await this.findApp(appId));
  }

  /** Publishes the app, and takes a snapshot of its fields and of its public and private settings. @throws RESOURCE_CHANGED */
  publish(caller: Caller, target: AppChangeTarget) {
    return this.setPublished(caller, target, true);
  }

  /** Unpublishes the app. @throws RESOURCE_CHANGED */
  unpublish(caller: Caller, target: AppChangeTarget) {
    return this.setPublished(caller, target, false);
  }

  /**
   * Checks the precondition (If-Match) of a request, in a transaction that has locked the app.
   * @throws RESOURCE_CHANGED if the app has none of the ETags in `precondition`
   */
  async checkETag(manager: EntityManager, appId: number, precondition: ExpectedVersions): Promise<void> {
    if (precondition) requireExpectedVersion(toApp(await manager.findOneByOrFail(AppRow, { id: appId })), precondition);
  }
}
