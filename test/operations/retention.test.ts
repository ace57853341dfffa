import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { AUDIT_ENTRIES_PER_ACCOUNT_MAX, AUDIT_ENTRIES_PER_APP_MAX } from "../../src/limits.js";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { longTest } from "../harness/samples.js";

const quietLog = { warn: () => {} };

const OLD_ROWS = 2_500;
const TABLES = ["log_event", "execution_log", "run", "credential"];

describe("retention", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(10);
    ({ db } = database);
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
    );
    const days = `(CASE WHEN n <= ${OLD_ROWS} THEN 31 ELSE 29 END) * interval '1 day'`;
    const numbers = `generate_series(1, ${OLD_ROWS} + 10) n`;
    await db.query(`
      INSERT INTO log_event (app_id, type, data, request_id, created_at)
        SELECT 1, 't', '{}', gen_random_uuid(), now() - ${days} FROM ${numbers};
      INSERT INTO execution_log (app_id, task_id, run_id, type, data, created_at)
        SELECT 1, 1, n, 'app.task.completed', '{}', now() - ${days} FROM ${numbers};
      INSERT INTO credential (kind, hash, app_id, expires_at)
        SELECT 'task', int4send(n), 1, now() - ${days} FROM ${numbers};
      INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, credential_id)
        SELECT 1, 1, 'master', 'manual', '{}', 'completed', now() - ${days}, n FROM ${numbers};
      INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at)
        VALUES (1, 1, 'master', 'manual', '{}', 'queued', now() - interval '1 year');
      INSERT INTO credential (kind, hash, app_id) VALUES ('api', 'x', 1);
    `);
  });
  after(() => database.stop());

  const counts = () =>
    Promise.all(TABLES.map(async (table) => (await db.query(`SELECT count(*) FROM ${table}`))[0].count));

  it("deletes what is older than its days, and keeps the rest: also what is unfinished", async () => {
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    expect(await counts()).to.deep.equal([10, 10, 11, 11]);
  });

  it("deletes nothing more the second time, and runs again in an hour", async () => {
    const next = await createDataRetention({ db, days: 30, log: quietLog }).clean();
    expect(await counts()).to.deep.equal([10, 10, 11, 11]);
    expect(next).to.be.within(Date.now() + 3_500_000, Date.now() + 3_600_000);
  });

  it("drops events of HTTP triggers after 24 hours, however many", async () => {
    const action = `INSERT INTO action (app_id, name, code, active, environment, action_version, triggers, dependencies, assets, updated_at)
      VALUES (1, 'hook', '', true, 'server', 'v3', '[]', '[]', '[]', now()) RETURNING id`;
    const [{ id }] = await db.query(action);
    await db.query(
      `INSERT INTO http_event (action_id, key, run_id, created_at)
       SELECT $1, int4send(n), n, now() - (CASE WHEN n <= ${OLD_ROWS} THEN interval '25 hours' ELSE interval '23 hours' END)
         FROM generate_series(1, ${OLD_ROWS} + 10) n`,
      [id],
    );
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    const [left] = await db.query("SELECT count(*)::int AS count, min(run_id)::int AS first FROM http_event");
    expect(left).to.deep.equal({ count: 10, first: OLD_ROWS + 1 });
  });

  it("deletes values of settings that were replaced more than an hour ago, and rechecks what its app knows", async () => {
    await db.query(`
      INSERT INTO app (organization_id, name, secrets_version, secrets_forgotten) VALUES (1, 'b', 9, 0), (1, 'c', 9, 8);
      INSERT INTO replaced_setting (app_id, key, sealed, version, replaced_at) VALUES
        (2, '_a', 'x', 3, now() - interval '61 minutes'), (2, '_a', 'x', 4, now() - interval '62 minutes'),
        (2, '_a', 'x', 5, now() - interval '59 minutes'), (3, '_a', 'x', 2, now() - interval '1 day')`);
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    expect(await db.query("SELECT app_id, version FROM replaced_setting")).to.deep.equal([{ app_id: 2, version: 5 }]);
    const known = await db.query("SELECT secrets_forgotten AS forgotten FROM app WHERE id > 1 ORDER BY id");
    expect(known).to.deep.equal([{ forgotten: 4 }, { forgotten: 8 }]);
  });

  it("deletes expired tokens, and audit entries and counts of deleted apps", async () => {
    await db.query(`
      INSERT INTO credential (kind, hash, app_id, expires_at) VALUES
        ('api', 'expired', 1, now() - interval '31 days'), ('api', 'ending', 1, now() - interval '29 days');
      INSERT INTO audit_entry (app_id, type, data, created_at)
        SELECT app_id, 't', '{}', now() - days * interval '1 day' FROM unnest(ARRAY[1, 99]) AS app_id, unnest(ARRAY[29, 31]) AS days;
      INSERT INTO rate_window (app_id, class, hits) VALUES (0, 'run', '{}'), (1, 'run', '{}'), (99, 'run', '{}')`);
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    const tokens = "SELECT convert_from(hash, 'UTF8') AS hash FROM credential WHERE hash IN ('expired', 'ending')";
    expect(await db.query(tokens)).to.deep.equal([{ hash: "ending" }]);
    const entries = "SELECT app_id, count(*)::int AS n FROM audit_entry WHERE type = 't' GROUP BY 1 ORDER BY 1";
    expect(await db.query(entries)).to.deep.equal([
      { app_id: 1, n: 2 },
      { app_id: 99, n: 1 },
    ]);
    expect(await db.query("SELECT app_id FROM rate_window ORDER BY 1")).to.deep.equal([{ app_id: 0 }, { app_id: 1 }]);
  });

  longTest(
    "limits the audit log of access separately for each organization, each account and failed sign-ins",
    async () => {
      await db.query(`
      INSERT INTO organization (name) VALUES ('quiet'), ('busy');
      INSERT INTO person (organization_id, first_name, last_name, email) VALUES
        (1, 'q', 'q', 'quiet@example.com'), (1, 'b', 'b', 'busy@example.com')`);
      const ids = async (sql: string): Promise<number[]> =>
        (await db.query(sql)).map(({ id }: { id: number }) => Number(id));
      const [quiet, busy] = await ids("SELECT id FROM organization WHERE name IN ('quiet', 'busy') ORDER BY name DESC");
      const [quietPerson, busyPerson] = await ids(
        "SELECT id FROM person WHERE first_name IN ('q', 'b') ORDER BY first_name DESC",
      );
      const add = (count: number, organization: number | null, subject: number | null, type = "t") =>
        db.query(
          `INSERT INTO access_event (type, organization_id, subject_id, data)
         SELECT $1, $2::bigint, $3::bigint, '{}' FROM generate_series(1, $4::int)`,
          [type, organization, subject, count],
        );
      // The entries of the quiet organization, of the quiet account and of failed sign-ins are written first, so that they are the oldest.
      await add(3, quiet!, quietPerson!);
      await add(4, null, quietPerson!);
      await add(5, null, null, "person.signInFailed");
      await add(AUDIT_ENTRIES_PER_APP_MAX + 5, busy!, busyPerson!);
      await add(AUDIT_ENTRIES_PER_ACCOUNT_MAX + 5, null, busyPerson!);
      await add(AUDIT_ENTRIES_PER_ACCOUNT_MAX + 5, null, null);
      await createDataRetention({ db, days: 30, log: quietLog }).clean();
      const left = await db.query(`
      SELECT organization_id AS organization, subject_id AS subject, type, count(*)::int AS count
        FROM access_event GROUP BY 1, 2, 3 ORDER BY 4, 1, 2`);
      const row = (organization: number | null, subject: number | null, count: number, type = "t") => {
        return { organization, subject, type, count };
      };
      expect(left).to.have.deep.members([
        row(quiet!, quietPerson!, 3),
        row(null, quietPerson!, 4),
        row(null, null, 5, "person.signInFailed"),
        row(null, busyPerson!, AUDIT_ENTRIES_PER_ACCOUNT_MAX),
        row(null, null, AUDIT_ENTRIES_PER_ACCOUNT_MAX),
        row(busy!, busyPerson!, AUDIT_ENTRIES_PER_APP_MAX),
      ]);
    },
  );

  it("deletes tokens and secrets of programs that ended, then grants without any, and keeps valid ones", async () => {
    await db.query(`
      INSERT INTO person (organization_id, first_name, last_name, email) VALUES (1, 'a', 'b', 'a@example.com');
      INSERT INTO oauth_client (id, name, redirect_uris, grant_types) VALUES ('c', 'c', '[]', '[]');
      INSERT INTO oauth_grant (client_id, person_id, app_id, scopes, created_at)
        SELECT 'c', (SELECT max(id) FROM person), 1, '{read}', now() - (CASE WHEN n = 4 THEN 1 ELSE 90 END) * interval '1 day'
          FROM generate_series(1, 4) n ORDER BY n;
      INSERT INTO oauth_secret (hash, kind, grant_id, expires_at) VALUES
        ('\\x01', 'refresh', 1, now() - interval '31 days'), ('\\x02', 'refresh', 2, now() - interval '29 days'),
        ('\\x03', 'refresh', 3, now() + interval '1 day');
      INSERT INTO credential (kind, hash, app_id, grant_id, expires_at) VALUES
        ('api', '\\x11', 1, 1, now() - interval '31 days'), ('api', '\\x12', 1, 2, now() - interval '29 days'),
        ('api', '\\x13', 1, 3, now() + interval '1 hour')`);
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    const idsOf = async (sql: string) =>
      (await db.query(`${sql} ORDER BY 1`)).map(({ id }: { id: number }) => Number(id));
    // Grant 4 has no token yet, because the program has not fetched one. The grant remains, because it is new.
    expect(await idsOf("SELECT id FROM oauth_grant")).to.deep.equal([2, 3, 4]);
    expect(await idsOf("SELECT grant_id AS id FROM oauth_secret")).to.deep.equal([2, 3]);
    expect(await idsOf("SELECT grant_id AS id FROM credential WHERE grant_id IS NOT NULL")).to.deep.equal([2, 3]);
  });

  it("continues after a statement that fails, logs the first failure, and runs again in an hour", async () => {
    await db.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'slow' USING ERRCODE = '57014'; END $$;
      CREATE TRIGGER fail BEFORE DELETE ON message FOR EACH STATEMENT EXECUTE FUNCTION fail();
      INSERT INTO instance (id, roles, lease_until) VALUES (gen_random_uuid(), '{}', now() - interval '2 days');
    `);
    try {
      let warnings = 0;
      const next = await createDataRetention({ db, days: 30, log: { warn: () => (warnings += 1) } }).clean();
      expect(next).to.be.within(Date.now() + 3_500_000, Date.now() + 3_600_000);
      expect(await db.query("SELECT FROM instance WHERE lease_until < now()")).to.have.length(0);
      expect(warnings).to.equal(1);
    } finally {
      await db.query("DROP FUNCTION fail CASCADE");
    }
  });

  it("keeps other audit entries although a caller with few rights writes very many", async () => {
    const add = (type: string, count: number) =>
      db.query("INSERT INTO audit_entry (app_id, type, data) SELECT 1, $1, '{}' FROM generate_series(1, $2::int)", [
        type,
        count,
      ]);
    await db.query("DELETE FROM audit_entry");
    const frequent = ["dataSource.entries", "app.mcp.call", "media.file.create"];
    await add("token.create", 3);
    for (const type of frequent) await add(type, AUDIT_ENTRIES_PER_APP_MAX + 5);
    await createDataRetention({ db, days: 30, log: quietLog }).clean();
    const left = await db.query("SELECT type, count(*)::int AS count FROM audit_entry WHERE app_id = 1 GROUP BY 1");
    expect(left).to.have.deep.members([
      { type: "token.create", count: 3 },
      ...frequent.map((type) => ({ type, count: AUDIT_ENTRIES_PER_APP_MAX })),
    ]);
    await db.query("DELETE FROM audit_entry");
  });

  it("groups a table once for each maximum, however many batches it deletes", async () => {
    await db.query(
      `INSERT INTO audit_entry (app_id, type, data) SELECT 1, 'app.update', '{}' FROM generate_series(1, ${AUDIT_ENTRIES_PER_APP_MAX} + 2500)`,
    );
    const statements: string[] = [];
    const watched = new Proxy(db, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== "query") return value;
        return (sql: string, parameters?: unknown[]) => {
          statements.push(sql);
          return target.query(sql, parameters);
        };
      },
    });
    await createDataRetention({ db: watched, days: 30, log: quietLog }).clean();
    const ofEntries = statements.filter((sql) => sql.includes("audit_entry"));
    expect(ofEntries.filter((sql) => sql.includes("GROUP BY"))).to.have.length(4);
    expect(ofEntries.filter((sql) => sql.includes("DELETE") && sql.includes("= $1"))).to.have.length(3);
    expect((await db.query("SELECT count(*) FROM audit_entry WHERE app_id = 1"))[0].count).to.equal(
      AUDIT_ENTRIES_PER_APP_MAX,
    );
  });
});
