/**
 * Takes, lists and restores versions of an app. A version is a snapshot of the app's fields and of its public and private settings, but not
 * of its protected settings. Encrypted settings are copied without decrypting them.
 */
import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { type Person, personJsonSql } from "../../data/person.js";
import { ActionError } from "../../errors.js";
import { VERSIONS_PER_APP_MAX, VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { createAppUpdateEvent } from "../../rules/app-events.js";
import { parseLimitAndOffset } from "../../rules/page.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import { unescapeSettingKey } from "../../rules/setting-key-text.js";
import type { SettingsByKey } from "../../rules/setting-tiers.js";
import { recordChange } from "../records/audit.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import { deleteUnusedOauthTokens } from "../settings/secret-values.js";
import { recordSettingsChangeTime, type Settings, type StoredSetting } from "../settings/settings.js";
import { type AppChangeTarget, parseAppChanges, pickSnapshotFields, writeAppChanges } from "./app-fields.js";

/**
 * Reason for a snapshot: a caller's request ("create"), the publishing of the app ("publish"), or a restore, which first stores the current
 * state ("pre-restore").
 */
export type AppVersionReason = "create" | "publish" | "pre-restore";

/** A version of an app in a list. Times are ISO 8601. */
export interface AppVersion {
  id: number;
  createdAt: string;
  userId: number | null;
  user: Person | null;
  action: AppVersionReason;
  /** Name of the app at the time of the snapshot. */
  name: string | null;
}

/** A version of an app with its snapshot. `settings` has the same form as the settings of an app in responses. */
export interface AppVersionDetails extends AppVersion {
  data: Record<string, unknown>;
  settings: SettingsByKey;
}

interface SummaryRow extends Omit<AppVersion, "createdAt" | "name"> {
  createdAt: Date;
  name: string | null;
}

interface VersionRow extends SummaryRow {
  data: Record<string, unknown>;
}

/** SQL for the app's name, the first field of the snapshot, as JSON text. The operator ->> would fail if the snapshot contains \u0000. */
const SNAPSHOT_APP_NAME_SQL = String.raw`substring(left(v.data::text, 2048) from '^\{"name":("(?:[^"\\]|\\.)*")')`;

const SUMMARY_COLUMNS = `
  v.id, v.created_at AS "createdAt", v.person_id AS "userId", v.action, ${SNAPSHOT_APP_NAME_SQL} AS name,
  ${personJsonSql("p")} AS "user"`;
const FROM_VERSIONS_OF_APP = "FROM app_version v LEFT JOIN person p ON p.id = v.person_id WHERE v.app_id = $1";

/** SQL condition: the setting belongs to the version $1 and is not protected. Versions of older releases may contain protected settings. */
const IS_RESTORED_SETTING = "app_version_id = $1 AND left(key, 2) <> '__'";

const DELETE_SETTINGS = `
  DELETE FROM setting WHERE app_id = $2 AND left(key, 2) <> '__'
    AND NOT EXISTS (SELECT FROM app_version_setting s WHERE s.app_version_id = $1 AND s.key = setting.key)
  RETURNING key`;

const RESTORE_SETTINGS = `
  INSERT INTO setting (app_id, key, value, sealed, not_secret, updated_by)
  SELECT $2, key, value, sealed, not_secret, $3 FROM app_version_setting WHERE ${IS_RESTORED_SETTING}
  ON CONFLICT (app_id, key) DO UPDATE
    SET value = excluded.value, sealed = excluded.sealed, not_secret = excluded.not_secret, updated_at = now(),
        updated_by = excluded.updated_by
    WHERE (setting.value, setting.sealed, setting.not_secret)
      IS DISTINCT FROM (excluded.value, excluded.sealed, excluded.not_secret)
  RETURNING key`;

/** Selects the approximate size in bytes that a snapshot of the app $1 will have. */
const SELECT_SNAPSHOT_SIZE = `
  SELECT (coalesce(octet_length(hooks::text), 0) + coalesce(octet_length(dependencies::text), 0)
          + coalesce((SELECT sum(octet_length(key) + coalesce(octet_length(value), octet_length(sealed)))
                        FROM setting WHERE app_id = app.id AND left(key, 2) <> '__'), 0))::float8 AS bytes
    FROM app WHERE id = $1`;

const DELETE_OLD_VERSIONS = `
  DELETE FROM app_version WHERE app_id = $1 AND id <=
    (SELECT id FROM app_version WHERE app_id = $1 ORDER BY id DESC OFFSET ${VERSIONS_PER_APP_MAX} LIMIT 1)`;

function toAppVersion({ id, createdAt, userId, user, action, name }: SummaryRow): AppVersion {
  return { id, createdAt: createdAt.toISOString(), userId, user, action, name: name && JSON.parse(name) };
}

/** Stores a snapshot of an app, without deleting old versions. Returns the ID of the new version. */
async function storeAppSnapshot(
  manager: EntityManager,
  caller: Caller,
  appId: number,
  action: AppVersionReason,
): Promise<number> {
  const app = await manager.findOneByOrFail(AppRow, { id: appId });
  const [made] = await rows<{ id: number }>(
    manager,
    "INSERT INTO app_version (app_id, person_id, action, data) VALUES ($1, $2, $3, $4) RETURNING id",
    [appId, caller.personId, action, JSON.stringify(pickSnapshotFields(app))],
  );
  await rows(
    manager,
    `INSERT INTO app_version_setting (app_version_id, key, value, sealed, not_secret)
     SELECT $1, key, value, sealed, not_secret FROM setting WHERE app_id = $2 AND left(key, 2) <> '__'`,
    [made!.id, appId],
  );
  return made!.id;
}

/**
 * Stores a snapshot of an app, and deletes the oldest versions above VERSIONS_PER_APP_MAX. Call this function in the transaction that
 * changes the app, after this transaction has locked the app. Returns the ID of the new version.
 */
export async function createAppSnapshot(
  manager: EntityManager,
  caller: Caller,
  appId: number,
  action: AppVersionReason,
): Promise<number> {
  const versionId = await storeAppSnapshot(manager, caller, appId, action);
  await rows(manager, DELETE_OLD_VERSIONS, [appId]);
  return versionId;
}

interface AppVersionsOptions {
  db: Db;
  settings: Settings;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  /**
   * Checks the precondition of a request, in a transaction that has locked the app.
   * @throws RESOURCE_CHANGED if the app has none of the ETags in `precondition`
   */
  checkETag: (manager: EntityManager, appId: number, precondition: ExpectedVersions) => Promise<void>;
}

export class AppVersions {
  constructor(private readonly options: AppVersionsOptions) {}

  private async findVersion(
    appId: number,
    versionId: number,
    executor: SqlClient = this.options.db,
  ): Promise<VersionRow> {
    const [row] = await rows<VersionRow>(
      executor,
      `SELECT ${SUMMARY_COLUMNS}, v.data ${FROM_VERSIONS_OF_APP} AND v.id = $2`,
      [appId, versionId],
    );
    if (!row) throw new ActionError("VERSION_NOT_FOUND");
    return row;
  }

  private async applyVersion(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { id, data }: VersionRow,
  ): Promise<void> {
    const preRestoreVersionId = await storeAppSnapshot(manager, caller, appId, "pre-restore");
    const changes = parseAppChanges(pickSnapshotFields(data), { mayChangeAdminFields: false });
    await writeAppChanges(manager, appId, changes);
    const removedSettings = await rows<StoredSetting>(manager, DELETE_SETTINGS, [id, appId]);
    if (removedSettings.length > 0) await deleteUnusedOauthTokens(manager, appId);
    const changedSettings = await rows<StoredSetting>(manager, RESTORE_SETTINGS, [id, appId, caller.personId]);
    // The restored version may be the oldest one, so old versions are deleted only after its settings have been read.
    await rows(manager, DELETE_OLD_VERSIONS, [appId]);
    const keys = [...changedSettings, ...removedSettings].map(({ key }) => unescapeSettingKey(key));
    if (keys.length > 0) await recordSettingsChangeTime(manager, appId);
    await recordChange(manager, caller, {
      appId,
      type: "app.restore",
      data: { versionId: id, preRestoreVersionId, keys },
    });
    const fields = [...Object.keys(changes), ...(keys.length > 0 ? ["settings"] : [])];
    await this.options.logEvents.emit(manager, caller, appId, createAppUpdateEvent({ fields, keys }));
  }

  /** Lists the versions of an app, the newest first. @throws ActionError REQUEST_INVALID */
  async list(
    appId: number,
    options: { limit?: unknown; offset?: unknown },
  ): Promise<{
    versions: AppVersion[];
    pagination: { limit: number; offset: number; total: number; hasMore: boolean };
  }> {
    const { db } = this.options;
    const { limit, offset } = parseLimitAndOffset(options, VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX);
    const [count] = await rows<{ total: number }>(db, "SELECT count(*) AS total FROM app_version WHERE app_id = $1", [
      appId,
    ]);
    const sql = `SELECT ${SUMMARY_COLUMNS} ${FROM_VERSIONS_OF_APP} ORDER BY v.id DESC LIMIT $2 OFFSET $3`;
    const summaryRows = await rows<SummaryRow>(db, sql, [appId, limit, offset]);
    const total = count!.total;
    const pagination = { limit, offset, total, hasMore: offset + summaryRows.length < total };
    return { versions: summaryRows.map(toAppVersion), pagination };
  }

  /** Returns a version of an app with its snapshot. @throws VERSION_NOT_FOUND */
  async get(appId: number, versionId: number): Promise<AppVersionDetails> {
    const { db, settings } = this.options;
    const row = await this.findVersion(appId, versionId);
    const sql = `SELECT key, value, sealed FROM app_version_setting WHERE ${IS_RESTORED_SETTING} ORDER BY key`;
    const storedSettings = await rows<StoredSetting>(db, sql, [versionId]);
    return {
      ...toAppVersion(row),
      data: pickSnapshotFields(row.data),
      settings: await settings.decryptResponseSettings(appId, storedSettings),
    };
  }

  /** Takes a snapshot of an app at a caller's request. @throws RATE_LIMIT_EXCEEDED, OVERLOADED */
  async create(caller: Caller, appId: number): Promise<AppVersion> {
    const { db, receivedDataLimiter } = this.options;
    const [size] = await rows<{ bytes: number }>(db, SELECT_SNAPSHOT_SIZE, [appId]);
    receivedDataLimiter.countRows(caller, appId, size?.bytes ?? 0);
    const id = await transactWithAppLock(db, appId, async (manager) => {
      const versionId = await createAppSnapshot(manager, caller, appId, "create");
      await recordChange(manager, caller, { appId, type: "app.version.create", data: { versionId } });
      return versionId;
    });
    return toAppVersion(await this.findVersion(appId, id));
  }

  /**
   * Restores an app to a version: its fields and its public and private settings. Removes public and private settings that the version does
   * not contain. Protected settings do not change. Takes a snapshot of the previous state first.
   * @throws ActionError VERSION_NOT_FOUND, RESOURCE_CHANGED
   */
  async restore(caller: Caller, { appId, precondition }: AppChangeTarget, versionId: number): Promise<void> {
    const { db, checkETag } = this.options;
    await this.findVersion(appId, versionId);
    await transactWithAppLock(db, appId, async (manager) => {
      await checkETag(manager, appId, precondition);
      // Another request may have deleted the version before this transaction locked the app. So the version is read again.
      await this.applyVersion(manager, caller, appId, await this.findVersion(appId, versionId, manager));
    });
  }
}
