/**
 * Creates and drops the database indexes that editors define for entries. Only one process changes indexes at a time.
 */
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { isDuplicate, isRefusedData } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import type { DataSourceKey } from "./entry-rows.js";
import {
  type IndexDefinition,
  type IndexStatements,
  indexStatements,
  isCountedIndex,
  isStatistics,
  sourceOfIndexName,
} from "./index-definitions.js";

export type IndexState = "ready" | "missing";

/** Maximum number of indexes on the entries of one app. */
export const INDEXES_PER_APP = 20;
/**
 * Maximum number of indexes of all apps. PostgreSQL's planner checks every index for each query: 100 indexes cost a
 * query 0.8 ms.
 */
export const INDEXES_MAX = 100;

/** Key of the lock that prevents a process from dropping an index that another process has created but not recorded yet. */
const INDEX_LOCK_ID = 0x73766369;
const LOCK_EVERY_MS = 100;

/** All indexes that a data source should have after the change. */
export interface IndexChange {
  key: DataSourceKey;
  requestedIndexes: readonly IndexDefinition[];
}

export type EntryIndexes = ReturnType<typeof createEntryIndexes>;

export function createEntryIndexes({ url, log }: { url: string; log: Logger }) {
  /**
   * Resolves when the latest index change has finished. The next change waits for it, because each change scans the
   * whole table.
   */
  let last: Promise<unknown> = Promise.resolve();

  /**
   * Acquires the lock by polling. A statement that waits for the lock would block the index build of the process that
   * holds the lock.
   */
  async function lockIndexes(client: pg.Client): Promise<void> {
    const free = async () =>
      (await client.query("SELECT pg_try_advisory_lock($1) AS free", [INDEX_LOCK_ID])).rows[0].free;
    while (!(await free())) await delay(LOCK_EVERY_MS);
  }

  async function withIndexLock<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      const client = createClient(url, "svc-app-actions indexes");
      await client.connect();
      try {
        await lockIndexes(client);
        return await work(client);
      } finally {
        await client.end();
      }
    });
    // The caller receives the error from `turn`, so the next change ignores it.
    last = turn.catch(() => undefined);
    return turn;
  }

  /** Returns the names of the data source's existing indexes. The value is true if PostgreSQL can use the index. */
  async function existingIndexes(client: pg.Client, key: DataSourceKey): Promise<Map<string, boolean>> {
    const { rows } = await client.query<{ name: string; valid: boolean }>(
      `SELECT relname AS name, indisvalid AS valid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE $1
       UNION ALL
       SELECT stxname, true FROM pg_statistic_ext WHERE stxrelid = 'data_source_entry'::regclass AND stxname LIKE $1`,
      [`entry\\_ix\\_${key.appId}\\_${key.id}\\_%`],
    );
    return new Map(rows.map(({ name, valid }) => [name, valid]));
  }

  /**
   * Checks the maximum numbers of indexes. @param addedCount number of indexes that this change adds @throws
   * REQUEST_INVALID
   */
  async function checkIndexCounts(client: pg.Client, key: DataSourceKey, addedCount: number): Promise<void> {
    const { rows } = await client.query<{ all: number; app: number }>(
      `SELECT count(*) AS all, count(*) FILTER (WHERE relname LIKE $1) AS app FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE 'entry\\_ix\\_%' AND relname NOT LIKE '%\\_a'`,
      [`entry\\_ix\\_${key.appId}\\_%`],
    );
    const { all, app } = rows[0]!;
    if (app + addedCount > INDEXES_PER_APP) {
      throw new ActionError(
        "REQUEST_INVALID",
        `an app can have at most ${INDEXES_PER_APP} indexes on its data sources; remove indexes that you do not need`,
      );
    }
    if (all + addedCount > INDEXES_MAX) {
      throw new ActionError(
        "REQUEST_INVALID",
        `this service has reached its maximum of ${INDEXES_MAX} indexes on entries of all apps; remove indexes first`,
      );
    }
  }

  const dropAll = async (client: pg.Client, names: Iterable<string>) => {
    for (const name of names) {
      await client.query(
        `DROP ${isStatistics(name) ? "STATISTICS" : "INDEX CONCURRENTLY"} IF EXISTS ${pg.escapeIdentifier(name)}`,
      );
    }
  };

  /**
   * Creates an index. If another than a unique index cannot be created, it is skipped with a warning in the log.
   * @throws ENTRY_ALREADY_EXISTS, REQUEST_INVALID if a unique index cannot be created
   */
  async function createIndex(client: pg.Client, { name, create, unique }: IndexStatements): Promise<void> {
    try {
      await client.query(create);
    } catch (error) {
      await dropAll(client, [name]);
      if (!unique) return log.warn({ err: error, index: name }, "an index on entries could not be created");
      const columns = unique.map((column) => JSON.stringify(column)).join(", ");
      if (isDuplicate(error)) {
        const message =
          `several entries have the same ${columns}, so the unique index cannot be created; ` +
          "change or remove these entries";
        throw new ActionError("ENTRY_ALREADY_EXISTS", message, { columns: unique });
      }
      if (!isRefusedData(error)) throw error;
      throw new ActionError(
        "REQUEST_INVALID",
        `an entry's value of ${columns} is too large for an index; shorten the value or remove the index`,
      );
    }
  }

  /** Applies index changes of one app and runs `save`. If one index or `save` fails, it drops the new indexes again. */
  async function applyWith(
    client: pg.Client,
    changes: readonly IndexChange[],
    save: () => Promise<unknown>,
  ): Promise<void> {
    const missing: IndexStatements[] = [];
    const surplus: string[] = [];
    for (const { key, requestedIndexes } of changes) {
      const existingIndex = await existingIndexes(client, key);
      const wished = requestedIndexes.flatMap((definition) => indexStatements(key, definition));
      const names = new Set(wished.map(({ name }) => name));
      // An invalid index remains if a process ended during the build.
      await dropAll(
        client,
        [...existingIndex].flatMap(([name, valid]) => (valid ? [] : [name])),
      );
      missing.push(...wished.filter(({ name }) => existingIndex.get(name) !== true));
      surplus.push(...[...existingIndex].flatMap(([name, valid]) => (valid && !names.has(name) ? [name] : [])));
    }
    const addedCount =
      missing.filter(({ name }) => isCountedIndex(name)).length - surplus.filter(isCountedIndex).length;
    if (changes[0]) await checkIndexCounts(client, changes[0].key, addedCount);
    try {
      for (const made of missing) await createIndex(client, made);
      await save();
    } catch (error) {
      await dropAll(
        client,
        missing.map(({ name }) => name),
      );
      throw error;
    }
    await dropAll(client, surplus);
    if (missing.length > 0) await client.query("ANALYZE data_source_entry");
  }

  return {
    /**
     * Creates the requested indexes and drops others. This takes long for many entries, but blocks no request. An index
     * that cannot be built, for example because a value is too long, is skipped unless it is unique.
     * @param save stores the definitions of the requested indexes. It runs after the new indexes are built and before
     *   others are dropped
     * @throws REQUEST_INVALID if the app or the service has too many indexes; ENTRY_ALREADY_EXISTS if entries have
     *   equal values in a unique index; errors of `save`. After an error nothing has changed
     */
    apply: (
      key: DataSourceKey,
      requestedIndexes: readonly IndexDefinition[],
      save: () => Promise<unknown> = async () => undefined,
    ): Promise<void> => withIndexLock((client) => applyWith(client, [{ key, requestedIndexes }], save)),

    /** Applies the index changes of several data sources of one app. If one fails, none is applied. */
    applyAll: (changes: readonly IndexChange[], save: () => Promise<unknown>): Promise<void> =>
      withIndexLock((client) => applyWith(client, changes, save)),

    /** Drops the indexes of a removed data source. */
    drop: (key: DataSourceKey): Promise<void> =>
      withIndexLock(async (client) => dropAll(client, (await existingIndexes(client, key)).keys())),

    /**
     * Creates missing indexes and drops leftover indexes of all data sources. They remain if a process ended during a
     * change, or if an app was removed. A leftover unique index would reject new entries.
     */
    reconcile: (): Promise<void> =>
      withIndexLock(async (client) => {
        const { rows: there } = await client.query<{ name: string }>(
          `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE 'entry\\_ix\\_%'`,
        );
        const { rows: text } = await client.query<DataSourceKey & { indexes: IndexDefinition[] }>(
          `SELECT app_id::int AS "appId", id, indexes FROM data_source WHERE indexes <> '[]'`,
        );
        const nameOfKey = ({ appId, id }: DataSourceKey) => `${appId} ${id}`;
        const requestedIndexes = new Map(text.map(({ appId, id, indexes }) => [nameOfKey({ appId, id }), indexes]));
        const keys = new Map(text.map(({ appId, id }) => [nameOfKey({ appId, id }), { appId, id }]));
        for (const { name } of there) {
          const key = sourceOfIndexName(name);
          if (key) keys.set(nameOfKey(key), key);
        }
        for (const [name, key] of keys) {
          await applyWith(
            client,
            [{ key, requestedIndexes: requestedIndexes.get(name) ?? [] }],
            async () => undefined,
          ).catch((error: unknown) =>
            log.warn({ err: error, ...key }, "the indexes of a data source could not be repaired"),
          );
        }
      }),

    /** Returns for each requested index whether queries can use it now. */
    states: (key: DataSourceKey, requestedIndexes: readonly IndexDefinition[]): Promise<IndexState[]> =>
      withIndexLock(async (client) => {
        const existingIndex = await existingIndexes(client, key);
        return requestedIndexes.map((definition) =>
          indexStatements(key, definition).every(({ name }) => existingIndex.get(name)) ? "ready" : "missing",
        );
      }),

    /** Resolves when no index change is in progress. */
    idle: (): Promise<unknown> => last,
  };
}
