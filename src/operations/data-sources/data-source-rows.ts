/** Finds rows of data sources by ID or name, and caches them until they change. */
import type { DataSource as Database } from "typeorm";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import type { Notifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import type { AccessRule } from "../../rules/entries/access-rules.js";
import type { EntryHook } from "../../rules/entries/hooks.js";
import { type ExpectedTags, requireCurrent } from "../../rules/precondition.js";
import { type EntityReference, referenceKey, referenceParameters } from "../../rules/reference.js";
import type { IndexDefinition } from "./index-definitions.js";

/** Notification channel. A message is the ID of an app with a changed or removed data source. */
export const DATA_SOURCE_CHANNEL = "svc_data_source";

/** Maximum age of a cached row. It limits how long a process uses an old row if a notification is lost. */
const CACHE_MAX_AGE_MS = 5_000;
const CACHED_MAX = 5_000;

export interface StoredDataSource {
  id: number;
  appId: number;
  organizationId: number;
  name: string;
  /** Columns in the order in which they first appeared. */
  columns: string[];
  accessRules: AccessRule[];
  hooks: EntryHook[];
  /** Columns that a hook hashes, or has hashed before. No caller can read them. */
  hashedColumns: string[];
  indexes: IndexDefinition[];
  /** True if the entries are users of the app, so that a page can sign in as one of them. */
  isUsers: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** Data source as it is returned to callers. Times are ISO 8601. */
export type DataSourceView = Omit<StoredDataSource, "createdAt" | "updatedAt" | "hashedColumns"> & {
  createdAt: string;
  updatedAt: string;
};

export const DATA_SOURCE_COLUMNS = `
  id, app_id AS "appId", organization_id AS "organizationId", name, columns, access_rules AS "accessRules", hooks,
  hashed_columns AS "hashedColumns", indexes, is_users AS "isUsers", created_at AS "createdAt", updated_at AS "updatedAt"`;

const SELECT_DATA_SOURCE = `
  SELECT ${DATA_SOURCE_COLUMNS} FROM data_source WHERE app_id = $1 AND (name = $2 OR id = $3::bigint)`;

export function viewOf({ hashedColumns: _, createdAt, updatedAt, ...row }: StoredDataSource): DataSourceView {
  return { ...row, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

type SourceCheck = (executor: Executor, appId: number, id: number, precondition: ExpectedTags) => Promise<void>;

const sourceCheck =
  (sql: string): SourceCheck =>
  async (executor, appId, id, precondition) => {
    const [row] = await rows<StoredDataSource>(executor, sql, [appId, id]);
    if (!row) throw new ActionError("DATA_SOURCE_NOT_FOUND");
    requireCurrent(viewOf(row), precondition);
  };

const SELECT_BY_ID = `SELECT ${DATA_SOURCE_COLUMNS} FROM data_source WHERE app_id = $1 AND id = $2`;

const WHOLE_SOURCE_LOCK_KEY = "hashtextextended('svc_data_source:' || $1::bigint || ':' || $2::bigint, 0)";

/**
 * Blocks other operations that remove or replace all entries of the data source, until the transaction ends. Take this
 * lock before any row lock. Such an operation locks the entries first and the data source's row last. An update of an
 * entry does the same, so that the two cannot deadlock.
 */
export async function lockWholeSource(executor: Executor, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock(${WHOLE_SOURCE_LOCK_KEY})`, [appId, id]);
}

/**
 * Blocks operations that remove or replace all entries of the data source, until the transaction ends. Inserting
 * entries or a snapshot locks the data source's row first, because of the foreign key. This is the opposite order of
 * `lockWholeSource`, so take this lock before to avoid a deadlock.
 * @throws ActionError DATA_SOURCE_NOT_FOUND if the data source was removed before the lock was granted
 */
export async function shareWholeSource(executor: Executor, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock_shared(${WHOLE_SOURCE_LOCK_KEY})`, [appId, id]);
  await checkSource(executor, appId, id, undefined);
}

/**
 * Checks that the data source exists and has the expected version. Locks nothing. @throws DATA_SOURCE_NOT_FOUND,
 * RESOURCE_CHANGED
 */
export const checkSource = sourceCheck(SELECT_BY_ID);

/**
 * Locks the data source's row until the transaction ends, and checks its version. @throws DATA_SOURCE_NOT_FOUND,
 * RESOURCE_CHANGED
 */
export const lockSource = sourceCheck(`${SELECT_BY_ID} FOR NO KEY UPDATE`);

/** Deletes the data source's row if it has the expected version. @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED */
export const deleteSource = sourceCheck(
  `DELETE FROM data_source WHERE app_id = $1 AND id = $2 RETURNING ${DATA_SOURCE_COLUMNS}`,
);

export type DataSourceRows = ReturnType<typeof createDataSourceRows>;

export function createDataSourceRows({ db, notifications }: { db: Database; notifications: Notifications }) {
  const cachedSources = new Map<string, { row: StoredDataSource; until: number }>();
  let epoch = 0;
  const forgetSources = () => {
    epoch += 1;
    cachedSources.clear();
  };
  notifications.listen(DATA_SOURCE_CHANNEL, forgetSources);
  notifications.onGap(forgetSources);

  return {
    /** Clears this cache in every process when the transaction of `executor` commits. */
    async notifyChanged(executor: Executor, appId: number): Promise<void> {
      await rows(executor, `SELECT pg_notify('${DATA_SOURCE_CHANNEL}', $1)`, [String(appId)]);
    },

    /** Clears this process's cache. Call it after a change has been committed. */
    clearCache: forgetSources,

    /** Returns the data source from the cache or the database. @throws DATA_SOURCE_NOT_FOUND */
    async find(appId: number, ref: EntityReference): Promise<StoredDataSource> {
      const key = `${appId}:${referenceKey(ref)}`;
      const cached = cachedSources.get(key);
      const now = Date.now();
      if (cached && cached.until > now && notifications.healthy()) return cached.row;
      const epochBefore = epoch;
      const values = [appId, ...referenceParameters(ref)];
      const [row] = await preparedRows<StoredDataSource>(db, "find-data-source", SELECT_DATA_SOURCE, values);
      if (!row) throw new ActionError("DATA_SOURCE_NOT_FOUND");
      if (cachedSources.size >= CACHED_MAX) cachedSources.clear();
      if (epochBefore === epoch) cachedSources.set(key, { row, until: now + CACHE_MAX_AGE_MS });
      return row;
    },
  };
}
