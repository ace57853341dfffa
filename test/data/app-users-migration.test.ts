import { expect } from "chai";
import { type Db, migrateDatabase, migrateSchema, openDatabase } from "../../src/data/database.js";
import { MIGRATIONS } from "../../src/data/migrations.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";

const UPGRADE = "AppUsers1764000400000";
const before = MIGRATIONS.slice(
  0,
  MIGRATIONS.findIndex(({ name }) => name === UPGRADE),
);

describe("the upgrade of app users", () => {
  let database: FreshDatabase;
  let db: Db;

  beforeEach(async () => {
    database = await emptyDatabase();
    await migrateSchema(database.url, before);
    db = await openDatabase(database.url, 2);
  });
  afterEach(async () => {
    await db.destroy();
    await database.drop();
  });

  it("marks the data sources with a hashed column to which pages were signed in, and writes to the audit log which ones it marks and which not", async () => {
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) SELECT id, 'a' FROM organization");
    const sources: [name: string, hashed: string, isSignedInBy: boolean][] = [
      ["users", '["Password"]', true],
      ["unused", '["Password"]', false],
      ["feedback", "[]", true],
    ];
    for (const [name, hashed, isSignedInBy] of sources) {
      const [source] = (await db.query(
        `INSERT INTO data_source (app_id, organization_id, name, hashed_columns)
         SELECT id, organization_id, $1, $2 FROM app RETURNING app_id, id`,
        [name, hashed],
      )) as { app_id: number; id: number }[];
      if (!isSignedInBy) continue;
      await db.query(
        `WITH made AS (INSERT INTO credential (kind, hash, app_id) VALUES ('live', $1, $2) RETURNING id)
         INSERT INTO app_user_session (credential_id, app_id, data_source_id, entry_id, columns, proof)
         SELECT id, $2, $3, 1, '[]', '' FROM made`,
        [Buffer.from(name), source!.app_id, source!.id],
      );
    }
    await migrateDatabase(database.url);
    const marked = await db.query("SELECT name FROM data_source WHERE is_users");
    expect(marked).to.deep.equal([{ name: "users" }]);
    const lines = (await db.query("SELECT type, data FROM audit_entry ORDER BY id")) as {
      type: string;
      data: object;
    }[];
    expect(lines.map(({ type }) => type)).to.deep.equal(["dataSource.update", "dataSource.notUsers"]);
    expect(lines[0]!.data).to.deep.include({ name: "users", fields: ["isUsers"], by: "upgrade" });
    expect(lines[1]!.data).to.deep.include({
      ...{ name: "unused", by: "upgrade" },
      note: "has a hashed column and is not isUsers: pages cannot sign in by it until an editor sets isUsers",
    });
  });
});
