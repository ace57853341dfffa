/** Creates and drops the indexes that editors define, in the background. Only one process changes indexes at a time. */
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
  keyOfName,
} from "./index-definitions.js";

export type IndexState = "ready" | "missing";

/** Maximum number of indexes. The planner checks each index for every query on entries: a hundred of them cost each query 0.8 ms. */
export const INDEXES_PER_APP = 20;
export const INDEXES_MAX = 100;

/** Key of the lock that prevents a process from dropping an index that another process has created but not recorded yet. */
const INDEX_LOCK_ID = 0x73766369;
const LOCK_EVERY_MS = 100;

/** Indexes that were requested for a data source. */
export interface IndexChange {
  key: DataSourceKey;
  wishes: readonly IndexDefinition[];
}

export type EntryIndexes = ReturnType<typeof createEntryIndexes>;

export function createEntryIndexes({ url, log }: { url: string; log: Logger }) {
  /** The last index change. The next one waits for it, because each works on the whole table. */
  let last: Promise<unknown> = Promise.resolve();

  /** Acquires the lock by polling, because a statement that waits for it would block the index build of its holder. */
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
    // The caller receives the failure from `turn`.
    last = turn.catch(() => undefined);
    return turn;
  }

  /** Returns the existing indexes of the data source, and whether they are valid. */
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

  /** @param addedCount number of additional indexes of this app */
  async function checkSpace(client: pg.Client, key: DataSourceKey, addedCount: number): Promise<void> {
    const { rows } = await client.query<{ all: number; app: number }>(
      `SELECT count(*) AS all, count(*) FILTER (WHERE relname LIKE $1) AS app FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE 'entry\\_ix\\_%' AND relname NOT LIKE '%\\_a'`,
      [`entry\\_ix\\_${key.appId}\\_%`],
    );
    const { all, app } = rows[0]!;
    if (app + addedCount > INDEXES_PER_APP) {
      throw new ActionError("REQUEST_INVALID", `an app has at most ${INDEXES_PER_APP} indexes on its data sources`);
    }
    if (all + addedCount > INDEXES_MAX) {
      throw new ActionError(
        "REQUEST_INVALID",
        `the service has reached its maximum of ${INDEXES_MAX} indexes on entries`,
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

  /** @throws ENTRY_ALREADY_EXISTS, REQUEST_INVALID if a unique index cannot be created; others are skipped */
  async function createIndex(client: pg.Client, { name, create, unique }: IndexStatements): Promise<void> {
    try {
      await client.query(create);
    } catch (error) {
      await dropAll(client, [name]);
      if (!unique) return log.warn({ err: error, index: name }, "an index on entries could not be created");
      const columns = unique.map((column) => JSON.stringify(column)).join(", ");
      if (isDuplicate(error)) {
        const message = `there are entries with the same ${columns} already: the unique index is not made`;
        throw new ActionError("ENTRY_ALREADY_EXISTS", message, { columns: unique });
      }
      if (!isRefusedData(error)) throw error;
      throw new ActionError("REQUEST_INVALID", `a value of ${columns} is too large for an index`);
    }
  }

  /** Applies index changes of one app together with `save`: all, or none if one fails. */
  async function applyWith(
    client: pg.Client,
    changes: readonly IndexChange[],
    save: () => Promise<unknown>,
  ): Promise<void> {
    const missing: IndexStatements[] = [];
    const surplus: string[] = [];
    for (const { key, wishes } of changes) {
      const existingIndex = await existingIndexes(client, key);
      const wished = wishes.flatMap((definition) => indexStatements(key, definition));
      const names = new Set(wished.map(({ name }) => name));
      // A process that ended during a build has left this invalid index.
      await dropAll(
        client,
        [...existingIndex].flatMap(([name, valid]) => (valid ? [] : [name])),
      );
      missing.push(...wished.filter(({ name }) => existingIndex.get(name) !== true));
      surplus.push(...[...existingIndex].flatMap(([name, valid]) => (valid && !names.has(name) ? [name] : [])));
    }
    const addedCount =
      missing.filter(({ name }) => isCountedIndex(name)).length - surplus.filter(isCountedIndex).length;
    if (changes[0]) await checkSpace(client, changes[0].key, addedCount);
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
     * Creates requested indexes and drops others; takes long for many entries, and blocks no request. An index that
     * cannot be built because a value is too long for it is skipped, unless it is unique.
     * @param save records the requested indexes, after all are built and before others are dropped
     * @throws REQUEST_INVALID if an app or the service has too many; ENTRY_ALREADY_EXISTS if entries have equal values:
     *   then nothing has changed; errors of `save`
     */
    apply: (
      key: DataSourceKey,
      wishes: readonly IndexDefinition[],
      save: () => Promise<unknown> = async () => undefined,
    ): Promise<void> => withIndexLock((client) => applyWith(client, [{ key, wishes }], save)),

    /** Applies the index changes of several data sources of one app: all, or none if one fails. */
    applyAll: (changes: readonly IndexChange[], save: () => Promise<unknown>): Promise<void> =>
      withIndexLock((client) => applyWith(client, changes, save)),

    /** Drops the indexes of a removed data source. */
    drop: (key: DataSourceKey): Promise<void> =>
      withIndexLock(async (client) => dropAll(client, (await existingIndexes(client, key)).keys())),

    /**
     * Creates missing indexes and drops leftover ones, which remain if a process ended or an app was removed. A leftover unique index would
     * reject entries.
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
        const wishes = new Map(text.map(({ appId, id, indexes }) => [nameOfKey({ appId, id }), indexes]));
        const keys = new Map(text.map(({ appId, id }) => [nameOfKey({ appId, id }), { appId, id }]));
        for (const { name } of there) {
          const key = keyOfName(name);
          if (key) keys.set(nameOfKey(key), key);
        }
        for (const [name, key] of keys) {
          await applyWith(client, [{ key, wishes: wishes.get(name) ?? [] }], async () => undefined).catch(
            (error: unknown) =>
              log.warn({ err: error, ...key }, "the indexes of a data source could not be created again"),
          );
        }
      }),

    /** Returns which of the requested indexes queries can use now. */
    states: (key: DataSourceKey, wishes: readonly IndexDefinition[]): Promise<IndexState[]> =>
      withIndexLock(async (client) => {
        const existingIndex = await existingIndexes(client, key);
        return wishes.map((definition) =>
          indexStatements(key, definition).every(({ name }) => existingIndex.get(name)) ? "ready" : "missing",
        );
      }),

    /** Resolves when no work is in progress. */
    idle: (): Promise<unknown> => last,
  };
}
