import { expect } from "chai";
import { DataSource } from "typeorm";
import { migrateDatabase, openDatabase } from "../../src/data/database.js";
import { MIGRATIONS } from "../../src/data/migrations.js";
import { ExecutionLogs } from "../../src/operations/records/execution-logs.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";

const isBefore = ({ name }: { name: string }) => Number(name.slice(-13)) < 1763600180000;

describe("a database from before its logs were partitioned", () => {
  let database: FreshDatabase;
  let db: DataSource;

  before(async () => {
    database = await emptyDatabase();
    const old = await new DataSource({
      type: "postgres",
      url: database.url,
      migrations: MIGRATIONS.filter(isBefore),
      migrationsTableName: "migration",
    }).initialize();
    await old.runMigrations({ transaction: "each" });
    await old.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a');
      INSERT INTO credential (kind, hash, app_id) VALUES ('api', 'x', 1);
      INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, credential_id, idempotency_key, queued_at)
        SELECT 1, 1, 'master', 'manual', json_build_object('n', n), 'completed', now(), 1,
               CASE WHEN n > 8 THEN 'key ' || n END, now() - CASE WHEN n = 9 THEN 25 ELSE 1 END * interval '1 hour'
          FROM generate_series(1, 10) AS n;
      INSERT INTO execution_log (app_id, task_id, run_id, type, data, payload_at)
        SELECT 1, 1, 11 - n, 'app.task.completed', '{"payload":null}', 12 FROM generate_series(1, 10) AS n;
      INSERT INTO console_line (run_id, seq, level, at, text) SELECT 3, n, 'log', now(), 'x' FROM generate_series(0, 4) AS n;
      INSERT INTO log_event (app_id, type, data, request_id) VALUES (1, 't', '{}', gen_random_uuid());
      INSERT INTO audit_entry (app_id, type, data) VALUES (1, 't', '{}')`);
    await old.destroy();
    await migrateDatabase(database.url);
    db = await openDatabase(database.url, 2);
  });
  after(async () => {
    await db.destroy();
    await database.drop();
  });

  it("keeps every row in its place, and continues the IDs", async () => {
    for (const [table, rows, next] of [
      ["run", 10, 11],
      ["execution_log", 10, 11],
      ["log_event", 1, 2],
      ["audit_entry", 1, 2],
    ] as const) {
      const [{ kept, following }] = await db.query(
        `SELECT (SELECT count(*)::int FROM ${table}_p1) AS kept, nextval('${table}_id_seq') AS following`,
      );
      expect([kept, following], table).to.deep.equal([rows, next]);
    }
    expect((await db.query("SELECT count(*)::int AS n FROM console_line_p1"))[0].n).to.equal(5);
  });

  it("finds the log entry of an earlier run, with the payload of its run", async () => {
    const entry = await new ExecutionLogs(db).readEntryOfRun(3);
    expect([entry?.id, JSON.parse(entry!.data.text)]).to.deep.equal([8, { payload: { n: 3 } }]);
  });

  it("keeps an idempotency key of the last 24 hours, and none that is older", async () => {
    const run = {
      appId: 1,
      actionId: 1,
      copy: "master",
      trigger: "manual",
      payload: "{}",
      personId: null,
      credentialId: 1,
    } as const;
    const holder = "00000000-0000-4000-8000-000000000001";
    expect(await insertRunByActionId(db, { ...run, idempotencyKey: "key 10" }, holder)).to.deep.equal({
      id: 10,
      isRepeated: true,
    });
    expect(await insertRunByActionId(db, { ...run, idempotencyKey: "key 9" }, holder)).to.include({
      isRepeated: false,
    });
    expect(await insertRunByActionId(db, { ...run, idempotencyKey: null }, holder)).to.include({ isRepeated: false });
  });
});
