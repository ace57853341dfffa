/** Creates a database with two apps and data sources, and reads entries from it. */
import { pino } from "pino";
import { type Db, openDatabase, rows } from "../../../src/data/database.js";
import { ActionError } from "../../../src/errors.js";
import { EntryIndexes } from "../../../src/operations/data-sources/entry-indexes.js";
import {
  type EntryReadAccess,
  EntryReader,
  type FindEntriesResult,
} from "../../../src/operations/data-sources/entry-reads.js";
import type { DataSourceKey } from "../../../src/operations/data-sources/entry-rows.js";
import { ReadPool } from "../../../src/operations/data-sources/read-pool.js";
import {
  type JoinOptions,
  UNRESTRICTED_ENTRY_SCOPE,
  type VisibleEntryScope,
} from "../../../src/rules/entry-query/options.js";
import { serializeJson } from "../../../src/rules/json-text.js";
import { type FreshDatabase, freshDatabase } from "../../harness/postgres.js";

export interface Fixture {
  database: FreshDatabase;
  db: Db;
  pool: ReadPool;
  entryReader: EntryReader;
  indexes: EntryIndexes;
  /** Adds a data source with these entries. A string is an entry's JSON text. */
  fill(name: string, data: readonly (object | string)[], appId?: number): Promise<DataSourceKey>;
  /** Returns the access for reads. `scope` limits the visible entries, also in joined data sources; by default, all are visible. */
  readAccess(scope?: VisibleEntryScope): EntryReadAccess<DataSourceKey>;
  stop(): Promise<void>;
}

export async function startFixture({ timeoutMs }: { timeoutMs?: number } = {}): Promise<Fixture> {
  const database = await freshDatabase();
  const db = await openDatabase(database.url, 3);
  await db.query("INSERT INTO organization (name) VALUES ('o')");
  await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'one'), (1, 'two')");
  const pool = new ReadPool(database.url, timeoutMs);
  const entryReader = new EntryReader(pool);
  const indexes = new EntryIndexes({ url: database.url, log: pino({ level: "silent" }) });

  async function fill(name: string, data: readonly (object | string)[], appId = 1): Promise<DataSourceKey> {
    const [source] = await rows<DataSourceKey>(
      db,
      `INSERT INTO data_source (app_id, organization_id, name) VALUES ($1, 1, $2) RETURNING id, app_id AS "appId"`,
      [appId, name],
    );
    await db.query(
      `INSERT INTO data_source_entry (app_id, data_source_id, data)
       SELECT $1, $2, value::json FROM unnest($3::text[]) WITH ORDINALITY AS given (value, place) ORDER BY place`,
      [appId, source!.id, data.map((document) => (typeof document === "string" ? document : JSON.stringify(document)))],
    );
    return source!;
  }

  const readAccess = (scope: VisibleEntryScope = UNRESTRICTED_ENTRY_SCOPE): EntryReadAccess<DataSourceKey> => ({
    scope,
    resolveScope: () => scope,
    async findJoinedSource(dataSource: JoinOptions["dataSource"]) {
      const [column, value] = "id" in dataSource ? ["id", dataSource.id] : ["name", dataSource.name];
      const sql = `SELECT id, app_id AS "appId" FROM data_source WHERE app_id = 1 AND ${column} = $1`;
      const [found] = await rows<DataSourceKey>(db, sql, [value]);
      if (!found) throw new ActionError("DATA_SOURCE_NOT_FOUND");
      return found;
    },
  });

  async function stop(): Promise<void> {
    await indexes.waitUntilIdle();
    await pool.end();
    await db.destroy();
    await database.drop();
  }
  return { database, db, pool, entryReader, indexes, fill, readAccess, stop };
}

/** Returns the result of a read as a caller gets it: as parsed JSON. */
// biome-ignore lint/suspicious/noExplicitAny: each read returns another type
export const answered = (found: unknown): any => JSON.parse(serializeJson(found));

export const dataOf = (found: FindEntriesResult): unknown[] =>
  answered(found).entries.map((entry: { data: unknown }) => entry.data);
