/** Restores the backup of a running service elsewhere, and checks that the restored service returns the same responses. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { pino } from "pino";
import { readConfig } from "../../src/config.js";
import { type Db, openDatabase } from "../../src/data/database.js";
import { openBlobStore } from "../../src/engine/blob-store.js";
import { FairSemaphore } from "../../src/engine/fair-semaphore.js";
import { UploadReceiver } from "../../src/engine/reception.js";
import { readTables } from "../../src/operations/backup/tables.js";
import { MediaBlobs } from "../../src/operations/media/blobs.js";
import { BACKUP_LOCK_KEY, MediaSweep } from "../../src/operations/media/sweep.js";
import { type Service, startService } from "../../src/service.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { filesUnder, mediaOf } from "../media/support.js";
import { allAnswers, backUp, fillService, restoreTo } from "./support.js";

interface Shape {
  partitions: string[];
  sequences: string[];
  triggers: string[];
  foreignKeys: string[];
  indexes: string[];
}

/** Returns the partitions, sequences, triggers, foreign keys and indexes. Leaves out indexes of partitions, because PostgreSQL chooses their names. */
async function readShape(db: Db): Promise<Shape> {
  const [shape] = await db.query(`
    SELECT (SELECT json_agg(format('%s %s', relname, pg_get_expr(relpartbound, oid)) ORDER BY relname)
              FROM pg_class WHERE relispartition AND relkind = 'r') AS partitions,
           (SELECT json_agg(format('%s %s', sequencename, last_value) ORDER BY sequencename)
              FROM pg_sequences WHERE schemaname = 'public' AND sequencename <> 'migration_id_seq') AS sequences,
           (SELECT json_agg(format('%s %s', tgname, tgenabled) ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal) AS triggers,
           (SELECT json_agg(format('%s %s %s', conname, condeferrable, condeferred) ORDER BY conname, conrelid::regclass::text)
              FROM pg_constraint WHERE contype = 'f' AND conparentid = 0) AS "foreignKeys",
           (SELECT json_agg(format('%s %s', indexrelid::regclass, indisvalid) ORDER BY indexrelid::regclass::text)
              FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
             WHERE NOT relispartition AND relnamespace = 'public'::regnamespace) AS indexes`);
  return shape;
}

/**
 * Lists the foreign keys for which no order of the tables loads all rows after the rows that they refer to: those that form a cycle, and
 * those from a table to itself. The list says whether a row uses the key.
 */
async function readCyclicForeignKeys(db: Db): Promise<{ name: string; isUsed: boolean }[]> {
  const keys: { name: string; table: string; columns: string[] }[] = await db.query(`
    WITH RECURSIVE foreign_key AS (
      SELECT * FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'public'::regnamespace),
    path (source, target) AS (
      SELECT conrelid, confrelid FROM foreign_key
       UNION SELECT source, confrelid FROM path JOIN foreign_key ON conrelid = target)
    SELECT conname AS name, conrelid::regclass::text AS table,
           (SELECT json_agg(quote_ident(attname)) FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)) AS columns
      FROM foreign_key WHERE EXISTS (SELECT FROM path WHERE source = confrelid AND target = conrelid) ORDER BY conname`);
  const withUse = keys.map(async ({ name, table, columns }) => {
    const condition = columns.map((column) => `${column} IS NOT NULL`).join(" AND ");
    const [row] = await db.query(`SELECT EXISTS (SELECT FROM ${table} WHERE ${condition}) AS "isUsed"`);
    return { name, ...row };
  });
  return Promise.all(withUse);
}

describe("a backup that is restored elsewhere", function () {
  this.timeout(180_000);
  let source: TestService;
  let folder: string;
  let targetDatabase: FreshDatabase;
  let db: Db;
  let restored: Service;
  let expected: Record<string, string>;
  let there: Shape;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-backup-"));
    source = await startTestService({ ROLES: "api" });
    await fillService(source);
    // A token refers to the grant of a program, and the grant refers to the token with which the person made it.
    await source.db.query(`
      INSERT INTO person (organization_id, first_name, last_name, email)
      SELECT min(id), 'Ann', 'Lee', 'ann@example.com' FROM organization;
      INSERT INTO oauth_client (id, name, redirect_uris, grant_types) VALUES ('program', 'Program', '[]', '[]');
      INSERT INTO oauth_grant (client_id, person_id, app_id, scopes, maker_id)
      SELECT 'program', (SELECT max(id) FROM person), ${source.appId}, '{}', min(id) FROM credential WHERE kind = 'api';
      INSERT INTO credential (kind, hash, name, app_id, grant_id, parent_id)
      SELECT 'api', '\\x01', 'Program', ${source.appId}, id, maker_id FROM oauth_grant`);
    // JavaScript cannot represent this number.
    await source.db.query("SELECT setval('alert_delivery_id_seq', 9007199254740993)");
    targetDatabase = await emptyDatabase();
    const file = join(folder, "backup");
    const report = await backUp(source, file);
    expect([report.files >= 3, report.lostFiles]).to.deep.equal([true, 0]);
    expected = await allAnswers(source.url, source.tokens.editor);
    const dataDir = join(folder, "data");
    await restoreTo({ url: targetDatabase.url, dataDir }, file);
    db = await openDatabase(targetDatabase.url, 2);
    there = await readShape(db);
    const config = {
      PORT: "0",
      DATABASE_URL: targetDatabase.url,
      DATA_DIR: dataDir,
      LOG_LEVEL: "silent",
      NPM_PACKAGES: "off",
    };
    restored = await startService(readConfig({ ...config, ROLES: "api" }));
  });
  after(async () => {
    await restored?.stop();
    await db?.destroy();
    await source.stop();
    await targetDatabase.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("gives every route that reads the same response as before, with the same tokens", async () => {
    const found = await allAnswers(restored.url, source.tokens.editor);
    expect(Object.values(found).filter((answer) => answer.startsWith("200")).length).to.be.greaterThan(25);
    expect(found).to.deep.equal(expected);
    expect(JSON.stringify(found)).to.contain("for editors").and.contain("noise.bin");
  });

  it("has each file of an app unchanged, with its thumbnail", async () => {
    const files: { id: number }[] = await db.query("SELECT id FROM media_file ORDER BY id");
    expect(files.length).to.equal(3);
    for (const { id } of files) {
      const path = `/v1/apps/${source.appId}/media/files/${id}/contents`;
      const bytes = async (url: string) => {
        const answer = await fetch(url + path, { headers: { "auth-token": source.tokens.editor } });
        return [answer.status, Buffer.from(await answer.arrayBuffer()).toString("base64")];
      };
      expect(await bytes(restored.url)).to.deep.equal(await bytes(source.url));
    }
  });

  it("gives new rows the following IDs, in the same partitions", async () => {
    expect(there).to.deep.equal(await readShape(source.db));
    expect(there.partitions.length).to.be.greaterThan(12);
    const made = await fetch(`${restored.url}/v1/apps/${source.appId}/data-sources/Seats/entries`, {
      method: "POST",
      headers: { "auth-token": source.tokens.editor, "content-type": "application/json" },
      body: '{"data": {"Seat": "A1"}}',
    });
    expect(made.status, "the unique index keeps its word").to.equal(409);
  });

  it("has the rows of foreign keys that form a cycle", async () => {
    const keys = await readCyclicForeignKeys(db);
    expect(keys.map(({ name }) => name)).to.include.members([
      "credential_grant_id_fkey",
      "media_folder_app_id_parent_id_fkey",
      "oauth_grant_maker_id_fkey",
    ]);
    // For a foreign key in this list, add a row to the service that this test restores.
    expect(keys.filter(({ isUsed }) => !isUsed).map(({ name }) => name)).to.deep.equal([]);
  });

  it("has all tables to which the foreign keys of restored tables refer", async () => {
    const references: { from: string; to: string }[] = await db.query(`
      SELECT conrelid::regclass::text AS "from", confrelid::regclass::text AS "to"
        FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'public'::regnamespace`);
    const client = new Client({ connectionString: targetDatabase.url });
    await client.connect();
    const tables = new Set((await readTables(client)).map(({ name }) => name));
    await client.end();
    expect(references.filter(({ from, to }) => tables.has(from) && !tables.has(to))).to.deep.equal([]);
  });

  longTest("ends a run that was running at the backup like a run of a crashed process", async () => {
    await until(async () => {
      const [run] = await db.query("SELECT state FROM run WHERE app_id = 2");
      return run.state === "failed";
    });
    const entries = await db.query("SELECT type FROM execution_log WHERE app_id = 2");
    expect(entries).to.deep.equal([{ type: "app.task.failed" }]);
    expect((await source.db.query("SELECT state FROM run WHERE app_id = 2"))[0].state).to.equal("running");
  });

  it("contains files that are removed during the backup; the cleanup removes them later", async () => {
    const log = pino({ level: "silent" });
    const media = mediaOf(source);
    const file = await media.upload("gone.txt", "gone");
    const stored = () => filesUnder(join(source.dataDir, "media")).length;
    const before = stored();
    const store = await openBlobStore({
      folder: join(source.dataDir, "media"),
      bucket: null,
      space: (await source.db.query("SELECT space FROM media_store"))[0].space,
    });
    const uploadReceiver = new UploadReceiver(join(source.dataDir, "media", "incoming"), new FairSemaphore(1, 1));
    const blobs = new MediaBlobs({ db: source.db, quotaBytes: 0, log });
    const sweep = new MediaSweep({ db: source.db, store, uploadReceiver, blobs, isOwnStore: async () => true, log });
    const client = new Client({ connectionString: source.databaseUrl });
    await client.connect();
    try {
      await client.query("SELECT pg_advisory_lock($1)", [BACKUP_LOCK_KEY]);
      expect((await media.rest("DELETE", `/files/${file.id}`)).http).to.equal(200);
      await sweep.sweep();
      expect(stored()).to.equal(before);
    } finally {
      await client.end();
    }
    await until(async () => {
      await sweep.sweep();
      return stored() === before - 1;
    });
    blobs.stop();
  });

  it("uses its own part of the store, so that neither service cleans up files of the other", async () => {
    const [there] = await db.query("SELECT space FROM media_store");
    const [here] = await source.db.query("SELECT space FROM media_store");
    expect(there.space)
      .to.match(/^[0-9a-f]{16}$/)
      .and.not.equal(here.space);
  });
});
