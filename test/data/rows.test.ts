/** Compares the entities of TypeORM with the tables that the migrations create. */
import { expect } from "chai";
import type { DataSource } from "typeorm";
import { ROWS, rows } from "../../src/data/database.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

interface Column {
  name: string;
  type: string;
  nullable: boolean;
}

const COLUMNS = `
  SELECT attname AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS nullable
    FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname`;

const byName = (a: Column, b: Column) => (a.name < b.name ? -1 : 1);

describe("rows", () => {
  let database: ConnectedDatabase;
  let db: DataSource;

  before(async () => {
    database = await connectedDatabase();
    ({ db } = database);
  });
  after(() => database.stop());

  for (const row of ROWS) {
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
});
