/** Creates and drops the indexes that editors define for entries. Only one process at a time changes indexes. */
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { isInvalidDataError, isLockTimeout, isUniqueViolation } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { createClient } from "../../postgres.js";
import type { DataSourceKey } from "./entry-rows.js";
import {
  createIndexStatements,
  type IndexDefinition,
  type IndexStatements,
  isCountedIndexName,
  isStatisticsName,
  parseIndexName,
} from "./index-definitions.js";

export type IndexState = "ready" | "missing";

/** Maximum number of indexes on the entries of one app, over all its data sources. */
export const INDEXES_PER_APP = 20;
/** Maximum number of indexes on the entries of all apps. The planner checks every index for each query: 0.8 ms for 100 indexes. */
export const MAX_INDEXES_OF_SERVICE = 100;

/** Key of the advisory lock for index changes. Without this lock, a process could drop an index that another process is adding. */
const INDEX_LOCK_ID = 0x73766369;
const LOCK_RETRY_DELAY_MS = 100;

/** A removed data source; without `id`, all data sources of a removed app. */
export type RemovedDataSources = Pick<DataSourceKey, "appId"> & Partial<DataSourceKey>;

export interface IndexChange {
  key: DataSourceKey;
  requestedIndexes: readonly IndexDefinition[];
}

/** Maximum wait for the table lock under which statistics are dropped. During the wait, new queries on entries wait too. */
const STATISTICS_LOCK_TIMEOUT_MS = 50;
/** Maximum number of attempts to drop statistics. If all attempts fail, the next call of `reconcile` drops the statistics. */
const STATISTICS_DROP_ATTEMPTS = 100;

/** Takes the lock for index changes. Polls, because a waiting statement would block the index build of the process that holds the lock. */
async function lockIndexes(client: pg.Client): Promise<void> {
  const free = async () =>
    (await client.query("SELECT pg_try_advisory_lock($1) AS free", [INDEX_LOCK_ID])).rows[0].free;
  while (!(await free())) await delay(LOCK_RETRY_DELAY_MS);
}

/** Returns the names of the indexes and statistics of a data source or an app, each with true if PostgreSQL can use it. */
async function readIndexValidity(client: pg.Client, { appId, id }: RemovedDataSources): Promise<Map<string, boolean>> {
  const { rows } = await client.query<{ name: string; valid: boolean }>(
    `SELECT relname AS name, indisvalid AS valid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE $1
       UNION ALL
       SELECT stxname, true FROM pg_statistic_ext WHERE stxrelid = 'data_source_entry'::regclass AND stxname LIKE $1`,
    [`entry\\_ix\\_${appId}\\_${id === undefined ? "" : `${id}\\_`}%`],
  );
  return new Map(rows.map(({ name, valid }) => [name, valid]));
}

/** Limits the number of indexes. @param addedCount number of added indexes minus dropped indexes @throws REQUEST_INVALID for too many */
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
      `an app can have at most ${INDEXES_PER_APP} indexes on its data sources (got ${app + addedCount}); ` +
        "remove indexes that you do not need",
    );
  }
  if (all + addedCount > MAX_INDEXES_OF_SERVICE) {
    throw new ActionError(
      "REQUEST_INVALID",
      `all apps of this service together can have at most ${MAX_INDEXES_OF_SERVICE} indexes on entries ` +
        `(got ${all + addedCount}); remove indexes that you do not need`,
    );
  }
}

export class EntryIndexes {
  /** Resolves after the latest index change. Changes run one after another, because each change reads the whole table. */
  private lastChange: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: { url: string; log: Logger }) {}

  private async withIndexLock<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const indexChange = this.lastChange.then(async () => {
      const client = createClient(this.options.url, "svc-app-actions indexes");
      await client.connect();
      try {
        await lockIndexes(client);
        return await work(client);
      } finally {
        await client.end();
      }
    });
    // Ignores an error here: the code that awaits `indexChange` receives it, and the next index change must run anyway.
    this.lastChange = indexChange.catch(() => undefined);
    return indexChange;
  }

  /**
   * Drops the statistics with these names. Locks the table, because a query that is planned during the drop fails: "cache lookup failed for
   * statistics object".
   */
  private async dropStatistics(client: pg.Client, names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const statements = [
      `BEGIN; SET LOCAL lock_timeout = ${STATISTICS_LOCK_TIMEOUT_MS}`,
      "LOCK TABLE data_source_entry IN ACCESS EXCLUSIVE MODE",
      ...names.map((name) => `DROP STATISTICS IF EXISTS ${pg.escapeIdentifier(name)}`),
      "COMMIT",
    ].join("; ");
    for (let attempt = 1; attempt <= STATISTICS_DROP_ATTEMPTS; attempt += 1) {
      try {
        await client.query(statements);
        return;
      } catch (error) {
        await client.query("ROLLBACK");
        if (!isLockTimeout(error)) throw error;
      }
      await delay(LOCK_RETRY_DELAY_MS);
    }
    this.options.log.warn(
      { statistics: names },
      "the statistics of removed indexes could not be dropped, because entries are in use; the service drops them at its next start",
    );
  }

  private async dropObjects(client: pg.Client, names: Iterable<string>): Promise<void> {
    const all = [...names];
    for (const name of all.filter((candidate) => !isStatisticsName(candidate)))
      await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${pg.escapeIdentifier(name)}`);
    await this.dropStatistics(client, all.filter(isStatisticsName));
  }

  /**
   * Executes the statement that creates an index or statistics. If a unique index cannot be created, throws ENTRY_ALREADY_EXISTS or
   * REQUEST_INVALID. Only logs the failure of other objects.
   */
  private async createIndex(client: pg.Client, { name, createSql, unique }: IndexStatements): Promise<void> {
    try {
      await client.query(createSql);
    } catch (error) {
      await this.dropObjects(client, [name]);
      if (!unique)
        return this.options.log.warn(
          { err: error, index: name },
          "an index on entries, or the statistics of an index, could not be created",
        );
      const columns = unique.map((column) => JSON.stringify(column)).join(", ");
      if (isUniqueViolation(error)) {
        const message =
          `several entries have the same ${columns}, so the unique index cannot be created; ` +
          "change or remove these entries";
        throw new ActionError("ENTRY_ALREADY_EXISTS", message, { columns: unique });
      }
      if (!isInvalidDataError(error)) throw error;
      throw new ActionError(
        "REQUEST_INVALID",
        `an entry's value in ${columns} is too large for an index; shorten the value or remove the index`,
      );
    }
  }

  /** Creates missing indexes, runs `save`, and drops indexes that are no longer requested. After a failure, drops the new indexes. */
  private async applyChanges(
    client: pg.Client,
    changes: readonly IndexChange[],
    save: () => Promise<unknown>,
  ): Promise<void> {
    const missingStatements: IndexStatements[] = [];
    const surplusNames: string[] = [];
    for (const { key, requestedIndexes } of changes) {
      const validityByName = await readIndexValidity(client, key);
      const requestedStatements = requestedIndexes.flatMap((definition) => createIndexStatements(key, definition));
      const requestedNames = new Set(requestedStatements.map(({ name }) => name));
      // Drops invalid indexes, which remain if a process ended while it built them.
      await this.dropObjects(
        client,
        [...validityByName].flatMap(([name, valid]) => (valid ? [] : [name])),
      );
      missingStatements.push(...requestedStatements.filter(({ name }) => validityByName.get(name) !== true));
      surplusNames.push(
        ...[...validityByName].flatMap(([name, valid]) => (valid && !requestedNames.has(name) ? [name] : [])),
      );
    }
    const addedCount =
      missingStatements.filter(({ name }) => isCountedIndexName(name)).length -
      surplusNames.filter(isCountedIndexName).length;
    if (changes[0]) await checkIndexCounts(client, changes[0].key, addedCount);
    try {
      for (const made of missingStatements) await this.createIndex(client, made);
      await save();
    } catch (error) {
      await this.dropObjects(
        client,
        missingStatements.map(({ name }) => name),
      );
      throw error;
    }
    await this.dropObjects(client, surplusNames);
    if (missingStatements.length > 0) await client.query("ANALYZE data_source_entry");
  }

  /**
   * Creates the requested indexes of a data source, and drops its other indexes. Skips a non-unique index that cannot be built.
   * @param save stores the definitions after the new indexes are built, and before other indexes are dropped
   * @throws REQUEST_INVALID for too many indexes, or for a value that is too large for a unique index; ENTRY_ALREADY_EXISTS for equal
   *   values in a unique index; the errors of `save`
   */
  apply(
    key: DataSourceKey,
    requestedIndexes: readonly IndexDefinition[],
    save: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    return this.withIndexLock((client) => this.applyChanges(client, [{ key, requestedIndexes }], save));
  }

  /** Applies the index changes of several data sources of one app. If one change fails, applies none of them. */
  applyAll(changes: readonly IndexChange[], save: () => Promise<unknown>): Promise<void> {
    return this.withIndexLock((client) => this.applyChanges(client, changes, save));
  }

  drop(key: RemovedDataSources): Promise<void> {
    return this.withIndexLock(async (client) =>
      this.dropObjects(client, (await readIndexValidity(client, key)).keys()),
    );
  }

  /**
   * For all data sources, creates indexes that are defined but missing, and drops indexes that no definition requests. Such differences
   * remain after an app was removed, or if a process or the database ended during an index change.
   */
  reconcile(): Promise<void> {
    return this.withIndexLock(async (client) => {
      const { rows: existingObjects } = await client.query<{ name: string }>(
        `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE indrelid = 'data_source_entry'::regclass AND relname LIKE 'entry\\_ix\\_%'
           UNION ALL
           SELECT stxname FROM pg_statistic_ext
            WHERE stxrelid = 'data_source_entry'::regclass AND stxname LIKE 'entry\\_ix\\_%'`,
      );
      const { rows: definedSources } = await client.query<DataSourceKey & { indexes: IndexDefinition[] }>(
        `SELECT app_id::int AS "appId", id, indexes FROM data_source WHERE indexes <> '[]'`,
      );
      const formatKey = ({ appId, id }: DataSourceKey) => `${appId} ${id}`;
      const requestedIndexes = new Map(
        definedSources.map(({ appId, id, indexes }) => [formatKey({ appId, id }), indexes]),
      );
      const keys = new Map(definedSources.map(({ appId, id }) => [formatKey({ appId, id }), { appId, id }]));
      for (const { name } of existingObjects) {
        const key = parseIndexName(name);
        if (key) keys.set(formatKey(key), key);
      }
      for (const [name, key] of keys) {
        await this.applyChanges(
          client,
          [{ key, requestedIndexes: requestedIndexes.get(name) ?? [] }],
          async () => undefined,
        ).catch((error: unknown) =>
          this.options.log.warn({ err: error, ...key }, "the indexes of a data source could not be repaired"),
        );
      }
    });
  }

  /** Returns the state of each requested index: "ready" if queries can use it, otherwise "missing". */
  readStates(key: DataSourceKey, requestedIndexes: readonly IndexDefinition[]): Promise<IndexState[]> {
    return this.withIndexLock(async (client) => {
      const validityByName = await readIndexValidity(client, key);
      return requestedIndexes.map((definition) =>
        createIndexStatements(key, definition).every(({ name }) => validityByName.get(name)) ? "ready" : "missing",
      );
    });
  }

  waitUntilIdle(): Promise<unknown> {
    return this.lastChange;
  }
}
