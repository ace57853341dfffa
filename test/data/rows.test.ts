/**
 * Compares the entities of TypeORM with the tables that the migrations create. Also checks that row locks in the service's SQL cannot
 * deadlock with inserts.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type Db, ENTITY_CLASSES, rows } from "../../src/data/database.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

interface Column {
  name: string;
  type: string;
  nullable: boolean;
}

const COLUMNS = `
  SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS nullable
    FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname`;

/** Tables that a foreign key references. */
const REFERENCED_TABLES = `SELECT DISTINCT confrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'f' ORDER BY 1`;

const SOURCES = fileURLToPath(new URL("../../../src/", import.meta.url));
const sourceFiles = () =>
  readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
/** Returns the table of each `FOR UPDATE` in the source that waits for other transactions. A lock with `SKIP LOCKED` waits for none. */
function tablesLockedForUpdate(): { file: string; table: string }[] {
  return sourceFiles().flatMap((file) => {
    const statements = readFileSync(join(SOURCES, file), "utf8").split(/\bFOR UPDATE\b(?! (?:OF \w+ )?SKIP LOCKED)/);
    return statements.slice(0, -1).map((text) => {
      const table = text.slice(text.lastIndexOf("FROM ") + "FROM ".length).match(/^\w+/)?.[0];
      return { file, table: table ?? "" };
    });
  });
}
/** The only file and referenced table with an allowed `FOR UPDATE`: it blocks new entries while a data source is renamed or removed. */
const BLOCKING_LOCK = { file: "operations/data-sources/data-source-rows.ts", table: "data_source" };

const byName = (a: Column, b: Column) => (a.name < b.name ? -1 : 1);

describe("rows", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase();
    ({ db } = database);
  });
  after(() => database.stop());

  for (const row of ENTITY_CLASSES) {
    it(`${row.name} has the columns of its table, each of the same type`, async () => {
      const { columns, tableName } = db.getMetadata(row);
      const mapped = columns.map(({ databaseName: name, type, isNullable: nullable, isArray }) => ({
        name,
        type: `${String(type).replace("timestamptz", "timestamp with time zone")}${isArray ? "[]" : ""}`,
        nullable,
      }));
      expect(mapped.sort(byName)).to.deep.equal((await rows<Column>(db, COLUMNS, [tableName])).sort(byName));
    });
  }

  /** Inserts lock referenced rows FOR KEY SHARE. Two such transactions deadlock if both then lock the row FOR UPDATE. */
  it("no row that others point at is locked FOR UPDATE, which deadlocks with inserts", async () => {
    const referenced = (await rows<{ name: string }>(db, REFERENCED_TABLES)).map(({ name }) => name);
    const locks = tablesLockedForUpdate();
    expect(locks).to.deep.include(BLOCKING_LOCK);
    const deadlocking = locks.filter(
      ({ file, table }) =>
        referenced.includes(table) && !(file === BLOCKING_LOCK.file && table === BLOCKING_LOCK.table),
    );
    expect(deadlocking).to.deep.equal([]);
    expect(
      sourceFiles().filter((file) => readFileSync(join(SOURCES, file), "utf8").includes("pessimistic_")),
    ).to.deep.equal([]);
  });
});
