/** Tests upgrades without downtime: processes of the previous release still run, and must work with the new schema. */
import { expect } from "chai";
import { type Db, migrateDatabase, migrateSchema, openDatabase } from "../../src/data/database.js";
import { MIGRATIONS } from "../../src/data/migrations.js";
import { BROWSER_HOLDER_ID } from "../../src/data/run.js";
import { getSchemaVersion, PREVIOUS_RELEASE_LAST_MIGRATION } from "../../src/data/schema-guard.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { type Catalogue, catalogueOf, findBreakingDifferences } from "./schema-growth.js";

/** SQL statements of the previous release. At each release, replace them with the statements of the new release. */
const STATEMENTS = [
  `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at, hosts)
   VALUES (1, 1, 'master', 'manual', '{"n": 1}', 'running', '00000000-0000-4000-8000-000000000001', now(), '{a}')`,
  `WITH ended AS (
     UPDATE run SET state = 'completed', holder = NULL, finished_at = now()
      WHERE id = (SELECT max(id) FROM run WHERE state = 'running') RETURNING id, app_id, action_id)
   INSERT INTO execution_log (app_id, task_id, run_id, type, data) SELECT app_id, action_id, id, 'app.task.completed', '{}' FROM ended`,
  "INSERT INTO console_line (run_id, seq, level, at, text) SELECT max(id), 0, 'log', now(), 'x' FROM run",
  "INSERT INTO log_event (app_id, type, data, request_id) VALUES (1, 't', '{}', gen_random_uuid())",
  "INSERT INTO audit_entry (app_id, type, data) VALUES (1, 't', '{}')",
  `INSERT INTO setting (app_id, key, value) VALUES (1, 'k', '1') ON CONFLICT (app_id, key) DO UPDATE SET value = excluded.value`,
  "SELECT id, app_id, task_id, run_id, type, data, created_at FROM execution_log WHERE app_id = 1 ORDER BY id DESC LIMIT 50",
];

const released = MIGRATIONS.filter(
  ({ name }) => getSchemaVersion(name) <= getSchemaVersion(PREVIOUS_RELEASE_LAST_MIGRATION),
);

describe("the schema with the previous release", () => {
  let database: FreshDatabase;
  let db: Db;
  let before: Catalogue;

  beforeEach(async () => {
    database = await emptyDatabase();
    await migrateSchema(database.url, released);
    db = await openDatabase(database.url, 2);
    before = await catalogueOf(db);
  });
  afterEach(async () => {
    await db.destroy();
    await database.drop();
  });

  it("has everything that its statements name, and requires nothing that they do not write", async () => {
    expect(released.at(-1)!.name).to.equal(PREVIOUS_RELEASE_LAST_MIGRATION);
    await migrateDatabase(database.url);
    expect(findBreakingDifferences(before, await catalogueOf(db))).to.deep.equal([]);
  });

  it("keeps its processes from ending runs that pages reported to newer processes", async () => {
    await migrateDatabase(database.url);
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
       VALUES (1, 1, 'master', 'manual', '{}', 'running', $1, now())`,
      [BROWSER_HOLDER_ID],
    );
    // The previous release's query for runs of dead processes.
    const lost = `SELECT id FROM run WHERE state = 'running'
       AND NOT EXISTS (SELECT FROM instance WHERE instance.id = run.holder AND lease_until >= now())`;
    expect(await db.query(lost)).to.deep.equal([]);
  });

  it("would fail this test with every kind of change that breaks an earlier statement", async () => {
    const breaking: [sql: string, difference: RegExp][] = [
      ["ALTER TABLE app DROP COLUMN icon", /^app\.icon is gone$/],
      ["ALTER TABLE app RENAME COLUMN icon TO picture", /^app\.icon is gone$/],
      ["ALTER TABLE run_trace RENAME TO trace_of_run", /^run_trace\.run_id is gone$/],
      ["ALTER TABLE app ALTER COLUMN name TYPE varchar(20)", /^app\.name was text and is character varying\(20\)$/],
      ["ALTER TABLE app ALTER COLUMN icon SET NOT NULL", /^app\.icon must now be given$/],
      ["ALTER TABLE app ADD COLUMN more text NOT NULL", /^app\.more is new and must be given$/],
      ["ALTER TABLE app ALTER COLUMN created_at DROP DEFAULT", /^app\.created_at must now be given$/],
      ["ALTER TABLE app ADD CHECK (name <> '')", /^app has a new constraint: CHECK/],
      [
        "ALTER TABLE run DROP CONSTRAINT run_trigger_check; ALTER TABLE run ADD CHECK (trigger IN ('manual', 'http')) NOT VALID",
        /^run has a new constraint: CHECK/,
      ],
      ["CREATE UNIQUE INDEX ON app (name)", /^app USING btree \(name\) must now be unique$/],
      ["DROP INDEX person_email", /^the unique index of person USING .* is gone$/],
      ["DROP FUNCTION svc_wake(bigint)", /^the function svc_wake\(bigint\) -> void is gone$/],
      [
        "ALTER TABLE execution_log ALTER COLUMN id DROP DEFAULT; DROP SEQUENCE execution_log_id_seq",
        /must now be given/,
      ],
    ];
    for (const [sql, difference] of breaking) {
      const runner = db.createQueryRunner();
      await runner.startTransaction();
      await runner.query(sql);
      const after = await catalogueOf(runner as unknown as Db);
      await runner.rollbackTransaction();
      await runner.release();
      expect(findBreakingDifferences(before, after)[0], sql).to.match(difference);
    }
    const harmless = `
      CREATE TABLE more (id bigint PRIMARY KEY); ALTER TABLE app ADD COLUMN more text, ADD COLUMN most int NOT NULL DEFAULT 1;
      ALTER TABLE app ALTER COLUMN name DROP NOT NULL; ALTER TABLE app DROP CONSTRAINT app_organization_id_fkey;
      CREATE INDEX ON app (name); ALTER TABLE run DROP CONSTRAINT run_trigger_check;
      ALTER TABLE run ADD CHECK (trigger IN ('manual', 'schedule', 'log', 'analytics', 'more')) NOT VALID`;
    await db.query(harmless);
    expect(findBreakingDifferences(before, await catalogueOf(db))).to.deep.equal([]);
  });

  it("can be migrated while the previous release writes: none of its statements fails", async () => {
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
    );
    let over = false;
    let rounds = 0;
    const failures: unknown[] = [];
    const write = async () => {
      while (!over || rounds === 0) {
        for (const sql of STATEMENTS) await db.query(sql).catch((error: unknown) => failures.push(error));
        rounds += 1;
      }
    };
    const writing = write();
    await migrateDatabase(database.url).finally(() => {
      over = true;
    });
    await writing;
    expect(failures).to.deep.equal([]);
    const [found] = await db.query("SELECT count(*)::int AS n FROM execution_log");
    expect(found.n).to.equal(rounds);
  });

  it("does not block a transaction that holds one table and waits for another", async () => {
    const [runner, otherRunner] = [db.createQueryRunner(), db.createQueryRunner()];
    await runner.startTransaction();
    await runner.query("LOCK TABLE run IN ROW EXCLUSIVE MODE");
    const migrating = migrateDatabase(database.url);
    // Selects the migration's lock request on `run`, which waits until the transaction of `runner` ends.
    const waits =
      "SELECT FROM pg_locks WHERE NOT granted AND relation = 'run'::regclass AND mode = 'AccessExclusiveLock'";
    await until(async () => (await otherRunner.query(waits)).length > 0);
    await runner.query("SET LOCAL lock_timeout = '5s'");
    expect(await runner.query("SELECT id FROM action")).to.deep.equal([]);
    await runner.commitTransaction();
    await Promise.all([runner.release(), otherRunner.release(), migrating]);
  });
});
