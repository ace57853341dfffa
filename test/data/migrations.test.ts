/** Checks that the list of migrations is complete, and that migrations add indexes without blocking writes. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { migrateDatabase, migrateSchema, openDatabase } from "../../src/data/database.js";
import { MIGRATIONS } from "../../src/data/migrations.js";
import { emptyDatabase } from "../harness/postgres.js";

const FOLDER = fileURLToPath(new URL("../../../migrations/", import.meta.url));

it("every migration of the folder is in the list, in the order of their times", () => {
  const folderTimes = readdirSync(FOLDER).map((name) => name.slice(0, name.indexOf("-")));
  const listedTimes = MIGRATIONS.map(({ name }) => name.slice(-folderTimes[0]!.length));
  // The list may contain more migrations than the folder has files, because some files contain several.
  expect(listedTimes).to.include.members(folderTimes);
  expect(listedTimes).to.deep.equal([...listedTimes].sort());
});

/** Time of the first migration after the first release. Earlier migrations create the tables of the first release. */
const FIRST_UPGRADE = "1764000400000";

it("every index that an upgrade adds to an existing table is built concurrently, outside a transaction", () => {
  const names = readdirSync(FOLDER).filter((name) => name >= FIRST_UPGRADE && name.endsWith(".ts"));
  expect(names).to.not.deep.equal([]);
  const blocking = names.filter((name) => {
    const text = readFileSync(FOLDER + name, "utf8");
    const indexes = [...text.matchAll(/CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?.*? ON (\w+)/g)];
    return indexes.some(
      ([, concurrently, table]) =>
        !text.includes(`CREATE TABLE ${table} `) && !(concurrently && text.includes("transaction = false")),
    );
  });
  expect(blocking).to.deep.equal([]);
});

it("the upgrade that indexes the credentials of people replaces the index of an interrupted attempt", async () => {
  const database = await emptyDatabase();
  try {
    const upgrade = MIGRATIONS.findIndex(({ name }) => name === "CredentialsOfPeople1764000410000");
    await migrateSchema(database.url, MIGRATIONS.slice(0, upgrade));
    const db = await openDatabase(database.url, 1);
    try {
      await db.query("CREATE INDEX credential_person ON credential (id)");
      await migrateDatabase(database.url);
      const sql = "SELECT indisvalid AS valid, pg_get_indexdef(indexrelid) AS text FROM pg_index";
      const [index] = await db.query(`${sql} WHERE indexrelid = 'credential_person'::regclass`);
      expect(index.valid).to.equal(true);
      expect(index.text).to.contain("(person_id, app_id) WHERE (person_id IS NOT NULL)");
    } finally {
      await db.destroy();
    }
  } finally {
    await database.drop();
  }
});
