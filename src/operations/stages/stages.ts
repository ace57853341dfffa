/**
 * Creates, lists and deletes the stages of an app. Stages are apps with the same definitions, such as "test" and
 * "production". Each stage has its own settings and data.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { CLOSED_STAGE_EXPIRY_SQL } from "../../data/app.js";
import { type Db, isLockTimeout, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { Credentials } from "../access/credentials.js";
import { requireCurrentRight } from "../access/current-rights.js";
import type { App, Apps } from "../apps/apps.js";
import type { DataSourceDefinitionStore } from "../data-sources/source-definitions.js";
import type { Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import { lockFirstAppOfStageGroup, lockOrganizationOfApp, transactWithAppLock } from "../settings/app-lock.js";
import { createFailureSkipper } from "../upkeep/skipped-failures.js";
import {
  cancelStageRuns,
  closeStage,
  deleteClosedStage,
  deleteUnsentMessages,
  transactWithShortLockWaits,
} from "./stage-removal.js";

const STAGES_MAX = 50;
/** Maximum lifetime of a preview: 31 days. A preview is a stage that is closed and deleted when its time is over. */
const PREVIEW_HOURS_MAX = 744;
const STAGE_NAME_PATTERN = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/;
/** A stage whose creation was interrupted, for example because the process died, expires after this many minutes. */
const UNFINISHED_STAGE_MINUTES = 15;
const EXPIRY_INTERVAL_MS = 60_000;
/** A request that removes a stage cancels its queued runs for at most this many milliseconds. */
const CANCEL_RUNS_MS = 15_000;
const REMOVAL_ATTEMPTS_MAX = 10;
const REMOVAL_PAUSE_MS = 100;

/** An app in a group of stages. Times are ISO 8601 text. */
export interface Stage {
  appId: number;
  /** Name of the stage; null for the original app of the group. */
  name: string | null;
  appName: string;
  /** Time at which the stage expires and is closed; null if the stage never expires. */
  expiresAt: string | null;
  createdAt: string;
}

/**
 * Returns the ID of the original app of the group of `appId`. Returns null for an unfinished or closed stage: its `root_id` is its own ID.
 * @param lock "FOR SHARE" to prevent the closing of the stage until the transaction ends
 */
export async function findStageGroupRootId(
  executor: SqlClient,
  appId: number,
  lock: "" | "FOR SHARE" = "",
): Promise<number | null> {
  // A process of an earlier release may have closed the stage without a change of `root_id`.
  const rootId = `CASE WHEN expires_at = ${CLOSED_STAGE_EXPIRY_SQL} THEN app_id ELSE root_id END`;
  const sql = `SELECT ${rootId} AS "rootId" FROM app_stage WHERE app_id = $1 ${lock}`;
  const [stage] = await rows<{ rootId: number }>(executor, sql, [appId]);
  if (!stage) return appId;
  return stage.rootId === appId ? null : stage.rootId;
}

/** Like `findStageGroupRootId`, but never returns null. @throws APP_NOT_FOUND if the app is an unfinished or closed stage */
export async function requireStageGroupRootId(...args: Parameters<typeof findStageGroupRootId>): Promise<number> {
  const rootId = await findStageGroupRootId(...args);
  if (rootId === null) throw new ActionError("APP_NOT_FOUND", "this stage is not finished yet, or was removed");
  return rootId;
}

const LIST_STAGES = `
  SELECT app.id AS "appId", stage.name, app.name AS "appName", stage.expires_at AS "expiresAt", app.created_at AS "createdAt"
    FROM app LEFT JOIN app_stage AS stage ON stage.app_id = app.id
   WHERE (app.id = $1 OR stage.root_id = $1) AND (stage.expires_at IS NULL OR stage.expires_at > now())
   ORDER BY stage.app_id IS NOT NULL, app.id`;

/** Inserts the app of a new stage. Locks the app $1, so that no other request can delete it until the transaction ends. */
const INSERT_STAGE = `
  INSERT INTO app (organization_id, name) SELECT organization_id, left(name, 180) || ' (' || $2 || ')' FROM app WHERE id = $1 FOR KEY SHARE
  RETURNING id`;

const INSERT_UNFINISHED_STAGE = `
  INSERT INTO app_stage (app_id, root_id, name, expires_at) VALUES ($1, $1, $2, now() + interval '${UNFINISHED_STAGE_MINUTES} minutes')`;

/** Adds the unfinished stage $1 to the group of the app $3. It expires after $2 hours (null: never). Returns no row if it is closed. */
const FINISH_STAGE = `
  UPDATE app_stage SET root_id = $3, expires_at = now() + $2::int * interval '1 hour'
   WHERE app_id = $1 AND expires_at <> ${CLOSED_STAGE_EXPIRY_SQL} RETURNING app_id`;
const DELETE_UNFINISHED_STAGE =
  "DELETE FROM app WHERE id = (SELECT app_id FROM app_stage WHERE app_id = $1 AND root_id = $1)";

const COPY_PEOPLE = [
  "INSERT INTO app_editor (app_id, person_id) SELECT $2, person_id FROM app_editor WHERE app_id = $1",
  "INSERT INTO app_member (app_id, person_id, role) SELECT $2, person_id, role FROM app_member WHERE app_id = $1",
];

const ROLE_TABLES = ["app_editor", "app_member"] as const;
const LOCK_ROLES = ROLE_TABLES.map(
  (table) => `SELECT FROM ${table} WHERE app_id = $1 ORDER BY person_id FOR KEY SHARE`,
);
/** Deletes the roles on the new stage $2 that belong to people without a role on the app $1. They lost it after the roles were copied. */
const DELETE_LOST_ROLES = ROLE_TABLES.map(
  (table) => `
  DELETE FROM ${table} WHERE app_id = $2 AND person_id NOT IN (
    SELECT person_id FROM app_editor WHERE app_id = $1 UNION SELECT person_id FROM app_member WHERE app_id = $1)`,
);

const IS_EXPIRED = `expires_at < now() AND expires_at <> ${CLOSED_STAGE_EXPIRY_SQL}`;
const LIST_EXPIRED_STAGES = `SELECT app_id AS id FROM app_stage WHERE ${IS_EXPIRED} ORDER BY app_id`;
const LIST_CLOSED_STAGES = `SELECT app_id AS id FROM app_stage WHERE expires_at = ${CLOSED_STAGE_EXPIRY_SQL} ORDER BY app_id`;

const IS_OPEN_PREVIEW = `root_id = $2 AND expires_at <> ${CLOSED_STAGE_EXPIRY_SQL}`;

/** @throws NAME_REQUIRED; REQUEST_INVALID with the name of the wrong field */
function parseNewStage(body: unknown): { name: string; expiresInHours: number | null } {
  if (!isObject(body)) refuseField("the stage", "an object", body);
  const { name, expiresInHours = null } = body;
  if (name === undefined || name === null) throw new ActionError("NAME_REQUIRED");
  if (typeof name !== "string" || !STAGE_NAME_PATTERN.test(name)) {
    const expected = "1 to 63 letters, digits, dots, dashes and underscores, and start with a letter or digit";
    refuseField("name", expected, name);
  }
  const isPositiveInteger = Number.isSafeInteger(expiresInHours) && (expiresInHours as number) >= 1;
  if (expiresInHours !== null && !(isPositiveInteger && (expiresInHours as number) <= PREVIEW_HOURS_MAX)) {
    const expected = `a whole number from 1 to ${PREVIEW_HOURS_MAX}, or null`;
    refuseField("expiresInHours", expected, expiresInHours);
  }
  refuseUnknownFields(body, createFlatShape(["name", "expiresInHours"]));
  return { name, expiresInHours: expiresInHours as number | null };
}

/**
 * Checks the name and the number of the group's stages. Call this function after the first app of the group is locked.
 * @throws NAME_ALREADY_EXISTS; REQUEST_INVALID for too many stages
 */
async function requireStageAllowed(manager: EntityManager, rootId: number, name: string): Promise<void> {
  const stages = await rows<{ name: string }>(manager, "SELECT name FROM app_stage WHERE root_id = $1", [rootId]);
  if (stages.some((stage) => stage.name === name))
    throw new ActionError(
      "NAME_ALREADY_EXISTS",
      `another stage of this app already has the name ${describeValue(name)}; choose another name`,
    );
  if (stages.length >= STAGES_MAX)
    throw new ActionError(
      "REQUEST_INVALID",
      `this app already has the maximum of ${STAGES_MAX} stages; remove one first`,
    );
}

interface StagesOptions {
  db: Db;
  definitions: Pick<DataSourceDefinitionStore, "dropIndexes">;
  apps: Apps;
  manifests: Manifests;
  credentials: Pick<Credentials, "clearCallerCaches">;
  log: Pick<Logger, "warn">;
}

export class Stages {
  private isStopped = false;

  constructor(private readonly options: StagesOptions) {}

  /** Creates a stage that expires soon unless it is finished. @throws FORBIDDEN, NAME_ALREADY_EXISTS, REQUEST_INVALID, APP_NOT_FOUND */
  private async createStage(caller: Caller, appId: number, rootId: number, name: string): Promise<number> {
    const create = async (manager: EntityManager) => {
      for (const id of new Set([appId, rootId])) await requireCurrentRight(manager, caller, "writeStages", id);
      await requireStageAllowed(manager, rootId, name);
      await requireStageGroupRootId(manager, appId, "FOR SHARE");
      const [createdApp] = await rows<{ id: number }>(manager, INSERT_STAGE, [appId, name]);
      if (!createdApp) throw new ActionError("APP_NOT_FOUND");
      const stageId = createdApp.id;
      await rows(manager, INSERT_UNFINISHED_STAGE, [stageId, name]);
      for (const sql of COPY_PEOPLE) await rows(manager, sql, [appId, stageId]);
      await recordChange(manager, caller, { appId, type: "app.stage.create", data: { stageAppId: stageId, name } });
      await recordChange(manager, caller, {
        appId: stageId,
        type: "app.stage.create",
        data: { fromAppId: appId, name },
      });
      return stageId;
    };
    return transactWithAppLock(this.options.db, rootId, create, (manager) => lockOrganizationOfApp(manager, rootId));
  }

  /** Closes a preview. Returns false and changes nothing if other requests have locked rows of the preview. @throws NOT_FOUND */
  private async closeUnlessInUse(caller: Caller, rootId: number, stageAppId: number): Promise<boolean> {
    try {
      await transactWithShortLockWaits(this.options.db, async (manager) => {
        if (!(await closeStage(manager, stageAppId, IS_OPEN_PREVIEW, rootId))) {
          throw new ActionError(
            "NOT_FOUND",
            "this app has no preview with this ID, or it was already removed; only previews (stages that expire) can be removed",
          );
        }
        // Adds the entry to the audit log of the original app, because the preview's audit log can be deleted with the preview.
        await recordChange(manager, caller, { appId: rootId, type: "app.stage.remove", data: { stageAppId } });
      });
    } catch (error) {
      if (isLockTimeout(error)) return false;
      throw error;
    }
    return true;
  }

  /** Lists the group of stages to which the app belongs. The original app comes first. */
  async list(appId: number): Promise<Stage[]> {
    const { db } = this.options;
    const rootId = (await findStageGroupRootId(db, appId)) ?? appId;
    const stageRows = await rows<Stage & { expiresAt: Date | null; createdAt: Date }>(db, LIST_STAGES, [rootId]);
    return stageRows.map(({ expiresAt, createdAt, ...stage }) => ({
      ...stage,
      expiresAt: expiresAt?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
    }));
  }

  /**
   * Creates a stage with the definitions, public settings and roles of the app `appId`, but without its data.
   * @throws FORBIDDEN without the right on the app or the original app of its group; NAME_REQUIRED, NAME_ALREADY_EXISTS, REQUEST_INVALID;
   *   APP_NOT_FOUND if another request deletes the app or the new stage
   */
  async create(caller: Caller, appId: number, body: unknown): Promise<App> {
    const { db, apps, manifests, credentials, definitions } = this.options;
    const { name, expiresInHours } = parseNewStage(body);
    // Checks this before reading the definitions, because an unfinished stage has no definitions.
    const rootId = await requireStageGroupRootId(db, appId);
    const { manifest } = await manifests.get(appId);
    const stageId = await this.createStage(caller, appId, rootId, name);
    try {
      const applyMode = { prune: false, keepsData: false, isPlan: false };
      await manifests.apply(caller, manifest, {
        appId: stageId,
        ...applyMode,
        precondition: undefined,
        checkPermission: () => undefined,
        onApplied: async (manager) => {
          await lockFirstAppOfStageGroup(manager, rootId);
          await requireStageAllowed(manager, rootId, name);
          const finishedStages = await rows(manager, FINISH_STAGE, [stageId, expiresInHours, rootId]);
          if (finishedStages.length === 0) throw new ActionError("APP_NOT_FOUND");
          // Member removals in progress cannot find the new stage. Waits for them, and then deletes the roles that they missed.
          for (const lockedId of [rootId, appId]) for (const sql of LOCK_ROLES) await rows(manager, sql, [lockedId]);
          for (const sql of DELETE_LOST_ROLES) await rows(manager, sql, [appId, stageId]);
        },
      });
    } catch (error) {
      await rows(db, DELETE_UNFINISHED_STAGE, [stageId]);
      definitions.dropIndexes({ appId: stageId });
      if (!(error instanceof ActionError && error.status === "APP_NOT_FOUND")) throw error;
      throw new ActionError(
        "APP_NOT_FOUND",
        "another request removed the new stage or its app before the stage was complete",
      );
    }
    await credentials.clearCallerCaches();
    return apps.get(stageId);
  }

  /**
   * Closes a preview before it expires, and cancels its runs. `expire` deletes its data later.
   * @throws NOT_FOUND if the app is not a preview of this group; OVERLOADED if other requests write to the preview
   */
  async remove(caller: Caller, appId: number, stageAppId: number): Promise<void> {
    const { db, credentials } = this.options;
    const rootId = (await findStageGroupRootId(db, appId)) ?? appId;
    for (let tries = 1; !(await this.closeUnlessInUse(caller, rootId, stageAppId)); tries += 1) {
      if (tries === REMOVAL_ATTEMPTS_MAX) {
        const message = `other requests write to app ${stageAppId} at the moment; try again later`;
        throw new ActionError("OVERLOADED", message, { retryAfter: OVERLOADED_RETRY_SECONDS });
      }
      await delay(REMOVAL_PAUSE_MS);
    }
    await credentials.clearCallerCaches();
    const endsAt = Date.now() + CANCEL_RUNS_MS;
    await cancelStageRuns(db, stageAppId, () => Date.now() >= endsAt);
  }

  /**
   * Closes expired stages, and deletes closed stages. A stage that cannot be closed or deleted does not stop the others. Returns the time
   * of the next call as Unix time in milliseconds.
   */
  async expire(): Promise<number> {
    const { db, credentials, definitions, log } = this.options;
    const endsAt = Date.now() + EXPIRY_INTERVAL_MS;
    const isOver = () => this.isStopped || Date.now() >= endsAt;
    const skipFailure = createFailureSkipper(log);
    const listIds = async (sql: string) => (await rows<{ id: number }>(db, sql)).map(({ id }) => id);
    const close = (id: number) => transactWithShortLockWaits(db, (manager) => closeStage(manager, id, IS_EXPIRED));
    const expiredIds = await listIds(LIST_EXPIRED_STAGES);
    for (const id of expiredIds) await skipFailure(close(id));
    if (expiredIds.length > 0) await credentials.clearCallerCaches();
    const closedIds = await listIds(LIST_CLOSED_STAGES);
    for (const id of closedIds) if (!isOver()) await skipFailure(cancelStageRuns(db, id, isOver));
    for (const id of closedIds) if (!isOver()) await skipFailure(deleteUnsentMessages(db, id, isOver));
    for (const id of closedIds) if (!isOver()) await skipFailure(deleteClosedStage(db, definitions, id, isOver));
    return endsAt;
  }

  /** Makes `expire` stop after the batch that it is deleting now. */
  stop(): void {
    this.isStopped = true;
  }
}
