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

/** Notification channel with `appId`: a data source of the app was changed or removed. */
export const DATA_SOURCE_CHANNEL = "svc_data_source";

/** Maximum time for which a cached result is used, even if notifications are lost. */
const KNOWN_MS = 5_000;
const KNOWN_MAX = 5_000;

export interface StoredDataSource {
  id: number;
  appId: number;
  organizationId: number;
  name: string;
  /** Columns in the order in which they first appeared. */
  columns: string[];
  accessRules: AccessRule[];
  hooks: EntryHook[];
  /** Columns that are or were hashed: no caller can read them. */
  hashedColumns: string[];
  indexes: IndexDefinition[];
  /** True if pages can sign in as one of the entries. */
  isUsers: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** Data source as callers see it (contract, packages). Times are ISO 8601. */
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

const BY_ID = `SELECT ${DATA_SOURCE_COLUMNS} FROM data_source WHERE app_id = $1 AND id = $2`;

const WHOLE_KEY = "hashtextextended('svc_data_source:' || $1::bigint || ':' || $2::bigint, 0)";

/**
 * Blocks other removals and restores of all the data source's entries until the transaction ends. Take this lock before any row lock. Both
 * operations lock entries before the data source, in the order in which an update of an entry does, so that they cannot deadlock.
 */
export async function lockWholeSource(executor: Executor, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock(${WHOLE_KEY})`, [appId, id]);
}

/**
 * Blocks removals and restores of the whole data source until the transaction ends. Changes with a foreign key to the data source (new
 * entries or a snapshot) lock its row before entries, which is the other order. So they need this lock first.
 * @throws ActionError DATA_SOURCE_NOT_FOUND if a removal came first
 */
export async function shareWholeSource(executor: Executor, appId: number, id: number): Promise<void> {
  await rows(executor, `SELECT pg_advisory_xact_lock_shared(${WHOLE_KEY})`, [appId, id]);
  await checkSource(executor, appId, id, undefined);
}

/** Compares the precondition with the data source, without a lock. @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED */
export const checkSource = sourceCheck(BY_ID);

/** Locks the data source's row until the transaction ends. @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED */
export const lockSource = sourceCheck(`${BY_ID} FOR NO KEY UPDATE`);

/** Deletes the data source's row. @throws DATA_SOURCE_NOT_FOUND, RESOURCE_CHANGED */
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
    /** Makes every process read the app's data sources again, when the transaction of `executor` commits. */
    async announce(executor: Executor, appId: number): Promise<void> {
      await rows(executor, `SELECT pg_notify('${DATA_SOURCE_CHANNEL}', $1)`, [String(appId)]);
    },

    /** Clears this process's cache. Call it after a change has been committed. */
    forget: forgetSources,

    /** @throws DATA_SOURCE_NOT_FOUND */
    async find(appId: number, ref: EntityReference): Promise<StoredDataSource> {
      const key = `${appId}:${referenceKey(ref)}`;
      const hit = cachedSources.get(key);
      const now = Date.now();
      if (hit && hit.until > now && notifications.healthy()) return hit.row;
      const epochBefore = epoch;
      const values = [appId, ...referenceParameters(ref)];
      const [row] = await preparedRows<StoredDataSource>(db, "find-data-source", SELECT_DATA_SOURCE, values);
      if (!row) throw new ActionError("DATA_SOURCE_NOT_FOUND");
      if (cachedSources.size >= KNOWN_MAX) cachedSources.clear();
      if (epochBefore === epoch) cachedSources.set(key, { row, until: now + KNOWN_MS });
      return row;
    },
  };
}
