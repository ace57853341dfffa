/** Finds rows of data sources by ID or name, and caches them until they change. */
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError } from "../../errors.js";
import type { EntryAccessRule } from "../../rules/entries/access-rules.js";
import type { EntryHook } from "../../rules/entries/hooks.js";
import { type ExpectedVersions, requireExpectedVersion } from "../../rules/precondition.js";
import { getReferenceKey, getReferenceSqlParameters, type IdOrName } from "../../rules/reference.js";
import type { IndexDefinition } from "./index-definitions.js";

/** PostgreSQL notification channel. A message is the ID of an app in which a data source was created, changed or removed. */
export const DATA_SOURCE_CHANNEL = "svc_data_source";

/** Maximum age of a cached row. Without this limit, a lost notification would leave an outdated row in the cache. */
const CACHE_MAX_AGE_MS = 5_000;
const CACHE_MAX_ENTRIES = 5_000;

export interface StoredDataSource {
  id: number;
  appId: number;
  organizationId: number;
  name: string;
  /** Names of the columns in order. Columns that first occur in written entries are added at the end. */
  columns: string[];
  accessRules: EntryAccessRule[];
  hooks: EntryHook[];
  /** Columns that a hook hashes now or has hashed in the past. No caller can read their values. */
  hashedColumns: string[];
  indexes: IndexDefinition[];
  /** True if each entry is a user of the app, so that a page can sign in as this user. */
  isUsers: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** A data source in the form that callers receive. Times are ISO 8601. */
export type DataSourceView = Omit<StoredDataSource, "createdAt" | "updatedAt" | "hashedColumns"> & {
  createdAt: string;
  updatedAt: string;
};

export const DATA_SOURCE_COLUMNS_SQL = `
  id, app_id AS "appId", organization_id AS "organizationId", name, columns, access_rules AS "accessRules", hooks,
  hashed_columns AS "hashedColumns", indexes, is_users AS "isUsers", created_at AS "createdAt", updated_at AS "updatedAt"`;

const SELECT_DATA_SOURCE = `
  SELECT ${DATA_SOURCE_COLUMNS_SQL} FROM data_source WHERE app_id = $1 AND (name = $2 OR id = $3::bigint)`;

export function toDataSourceView({ hashedColumns: _, createdAt, updatedAt, ...row }: StoredDataSource): DataSourceView {
  return { ...row, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

type CheckDataSource = (
  executor: SqlClient,
  appId: number,
  id: number,
  precondition: ExpectedVersions,
) => Promise<StoredDataSource>;

const createDataSourceCheck =
  (sql: string): CheckDataSource =>
  async (executor, appId, id, precondition) => {
    const [row] = await rows<StoredDataSource>(executor, sql, [appId, id]);
    if (!row) throw new ActionError("DATA_SOURCE_NOT_FOUND");
    requireExpectedVersion(toDataSourceView(row), precondition);
    return row;
  };

const SELECT_BY_ID = `SELECT ${DATA_SOURCE_COLUMNS_SQL} FROM data_source WHERE app_id = $1 AND id = $2`;

const ENTRY_REPLACEMENT_LOCK_KEY = "hashtextextended('svc_data_source:' || $1::bigint || ':' || $2::bigint, 0)";

/**
 * Blocks other operations that remove or replace all entries of the data source, until the transaction ends. Take this lock before any row
 * lock. After it, lock entries first, and the data source's row last. An update of an entry uses this order too, so that no deadlock can
 * occur.
 */
export async function lockEntryReplacement(executor: SqlClient, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock(${ENTRY_REPLACEMENT_LOCK_KEY})`, [appId, id]);
}

/**
 * Blocks callers of `lockEntryReplacement` until the transaction ends, but not other callers of this function. Call it before you insert
 * entries or a snapshot. An insert locks the data source's row first, so it could deadlock with a caller of `lockEntryReplacement`.
 * @throws ActionError DATA_SOURCE_NOT_FOUND if the data source was removed while this function waited for the lock
 */
export async function lockEntryReplacementShared(executor: SqlClient, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock_shared(${ENTRY_REPLACEMENT_LOCK_KEY})`, [appId, id]);
  await checkDataSource(executor, appId, id, undefined);
}

/**
 * Checks that the data source exists and has one of the ETags in `precondition` (`If-Match`). Takes no lock.
 * @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED
 */
export const checkDataSource = createDataSourceCheck(SELECT_BY_ID);

/**
 * Locks the data source's row until the transaction ends, checks that it has one of the ETags in `precondition`
 * (`If-Match`), and returns it.
 * @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED
 */
export const lockDataSource = createDataSourceCheck(`${SELECT_BY_ID} FOR NO KEY UPDATE`);

/**
 * Like `lockDataSource`, but also waits for transactions that insert entries. Use it before a change of the name, because PostgreSQL would
 * wait for these transactions at the change. That wait could deadlock with an insert that adds a column to the data source.
 */
export const lockDataSourceForRename = createDataSourceCheck(`${SELECT_BY_ID} FOR UPDATE`);

/** Locks the data source's row until the transaction ends, so that no other transaction can insert entries. */
export async function lockDataSourceForRemoval(executor: SqlClient, appId: number, id: number): Promise<void> {
  await rows(executor, "SELECT FROM data_source WHERE app_id = $1 AND id = $2 FOR UPDATE", [appId, id]);
}

/**
 * Locks the empty data sources whose names are not in `names`, so that no other transaction can insert entries. A manifest with `prune`
 * removes these data sources. Call this function before the transaction takes weaker locks on them. Otherwise it could deadlock with a
 * request that inserts an entry.
 */
export async function lockEmptyDataSourcesExcept(
  executor: SqlClient,
  appId: number,
  names: readonly string[],
): Promise<void> {
  const sql = `
    SELECT FROM data_source WHERE app_id = $1 AND name <> ALL ($2::text[])
       AND NOT EXISTS (SELECT FROM data_source_entry AS entry
                        WHERE entry.app_id = data_source.app_id AND entry.data_source_id = data_source.id)
     ORDER BY id FOR UPDATE`;
  await rows(executor, sql, [appId, names]);
}

/**
 * Deletes the data source's row. After an error, the caller must roll the transaction back.
 * @throws DATA_SOURCE_NOT_FOUND; RESOURCE_CHANGED if it has none of the ETags in `precondition` (`If-Match`)
 */
export const deleteDataSourceRow = createDataSourceCheck(
  `DELETE FROM data_source WHERE app_id = $1 AND id = $2 RETURNING ${DATA_SOURCE_COLUMNS_SQL}`,
);

export class DataSourceRows {
  private readonly cachedSources = new Map<string, { row: StoredDataSource; until: number }>();
  private epoch = 0;

  constructor(private readonly options: { db: Db; notifications: DatabaseNotifications }) {
    const { notifications } = options;
    notifications.listen(DATA_SOURCE_CHANNEL, this.clearCache);
    notifications.onGap(this.clearCache);
  }

  /** Clears the cache of data sources in all processes when the transaction of `executor` commits. */
  async notifyChanged(executor: SqlClient, appId: number): Promise<void> {
    await rows(executor, `SELECT pg_notify('${DATA_SOURCE_CHANNEL}', $1)`, [String(appId)]);
  }

  /** Clears the cache of data sources in this process. Call it after a change was committed. */
  readonly clearCache = () => {
    this.epoch += 1;
    this.cachedSources.clear();
  };

  async find(appId: number, ref: IdOrName): Promise<StoredDataSource> {
    const { db, notifications } = this.options;
    const key = `${appId}:${getReferenceKey(ref)}`;
    const cached = this.cachedSources.get(key);
    const now = Date.now();
    if (cached && cached.until > now && notifications.isHealthy()) return cached.row;
    const epochBefore = this.epoch;
    const values = [appId, ...getReferenceSqlParameters(ref)];
    const [row] = await queryPreparedRows<StoredDataSource>(db, "find-data-source", SELECT_DATA_SOURCE, values);
    if (!row) throw new ActionError("DATA_SOURCE_NOT_FOUND");
    if (this.cachedSources.size >= CACHE_MAX_ENTRIES) this.cachedSources.clear();
    if (epochBefore === this.epoch) this.cachedSources.set(key, { row, until: now + CACHE_MAX_AGE_MS });
    return row;
  }
}
