/** Checks that SECURITY.md states a limit for each table, and that rows without an expiry stay within their limit. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { PAGE_SESSIONS_PER_APP_MAX, SETTINGS_PER_APP_MAX_BYTES } from "../../src/limits.js";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import { createLogTrimming } from "../../src/operations/upkeep/trimming.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { startProcess } from "../harness/process.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const quietLog = { warn: () => {} };

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const incompressibleText = (bytes: number) => randomBytes(bytes / 2).toString("hex");

it("SECURITY.md has the limit of every table", () => {
  const read = (path: string) => readFileSync(ROOT + path, "utf8");
  const tables = [...read("schema/database.sql").matchAll(/^CREATE (?:UNLOGGED )?TABLE (\w+)/gm)].map(
    ([, name]) => name,
  );
  const section = read("SECURITY.md")
    .split(/^## /m)
    .find((text) => text.startsWith("Disk"))!;
  const documented = [...section.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| .{20,} \|$/gm)].flatMap(([, names]) =>
    [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(documented.sort()).to.deep.equal(tables.sort());
});

describe("the disk space of an app", () => {
  let database: ConnectedDatabase;
  let db: Db;

  beforeEach(async () => {
    database = await connectedDatabase(10);
    ({ db } = database);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b');
      INSERT INTO credential (kind, hash, app_id) VALUES ('live', 'x', 1)`);
  });
  afterEach(() => database.stop());

  /** Adds finished runs, each with a log entry of `bytes` random bytes. If `visitor` is true, a visitor started the runs. */
  async function addFinishedRuns(appId: number, runs: number, bytes: number, visitor = false): Promise<void> {
    for (let made = 0; made < runs; made += 1) {
      await db.query(
        `WITH made AS (
           INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, credential_id)
           VALUES ($1, 1, 'production', 'manual', '{}', 'completed', clock_timestamp(), $3) RETURNING id, app_id),
         printed AS (INSERT INTO console_line (run_id, seq, level, at, text) SELECT id, 0, 'log', now(), 'x' FROM made)
         INSERT INTO execution_log (app_id, task_id, run_id, type, data)
         SELECT app_id, 1, id, 'app.task.completed', to_json($2::text) FROM made`,
        [appId, incompressibleText(bytes), visitor ? 1 : null],
      );
    }
  }
  async function addEvents(appId: number, events: number, bytes: number, type: string): Promise<void> {
    for (let made = 0; made < events; made += 1) {
      const values = [appId, type, JSON.stringify({ text: incompressibleText(bytes) })];
      await db.query(
        "INSERT INTO log_event (app_id, type, data, request_id) VALUES ($1, $2, $3, gen_random_uuid())",
        values,
      );
    }
  }
  const count = async (sql: string) => Number((await db.query(`SELECT count(*) AS n FROM ${sql}`))[0].n);

  it("is limited to its newest runs with their log entries and console lines; other apps keep theirs", async () => {
    const trimming = createLogTrimming({ db, log: quietLog, maxBytes: 100_000 });
    await trimming.trim();
    await addFinishedRuns(1, 30, 9_000);
    await addFinishedRuns(2, 5, 9_000);
    await trimming.trim();
    const storedRuns = await db.query("SELECT id FROM run WHERE app_id = 1 ORDER BY id");
    expect(storedRuns).to.have.length.within(9, 11);
    expect(storedRuns.at(-1).id).to.equal(30);
    expect(await count("run WHERE app_id = 2")).to.equal(5);
    for (const table of ["execution_log", "console_line"]) expect(await count(table)).to.equal(storedRuns.length + 5);
    await trimming.trim();
    expect(await count("run WHERE app_id = 1")).to.equal(storedRuns.length);
  });

  it("is limited also for rows from before the start of the process, and after the limit was lowered", async () => {
    await addFinishedRuns(1, 30, 9_000);
    await addEvents(1, 30, 9_000, "t");
    await createLogTrimming({ db, log: quietLog, maxBytes: 200_000 }).trim();
    expect(await count("run WHERE app_id = 1")).to.be.within(19, 22);
    expect(await count("log_event")).to.be.within(19, 22);
    await createLogTrimming({ db, log: quietLog, maxBytes: 100_000 }).trim();
    expect(await count("run WHERE app_id = 1")).to.be.within(9, 11);
    expect(await count("log_event")).to.be.within(9, 11);
  });

  longTest("is measured again after an hour, also if the app has written little", async () => {
    let now = 0;
    const trimming = createLogTrimming({ db, log: quietLog, maxBytes: 100_000, now: () => now });
    await addFinishedRuns(1, 10, 9_000);
    await trimming.trim();
    await addFinishedRuns(1, 1, 9_000);
    await trimming.trim();
    const before = await count("run");
    now += 3_600_000;
    await trimming.trim();
    expect(await count("run")).to.equal(before - 1);
  });

  longTest("is limited by a process that starts with a lower LOG_MAX_MB", async () => {
    await addEvents(1, 300, 9_000, "t");
    const service = startProcess({ DATABASE_URL: database.url, LOG_MAX_MB: "1" });
    try {
      await service.ready();
      await until(async () => (await count("log_event")) < 130);
      expect(await count("log_event")).to.be.above(90);
    } finally {
      service.signal("SIGTERM");
      await service.ended;
      await service.clean();
    }
  });

  longTest("cannot be used up by visitors: their rows are removed first, the app's own stay", async () => {
    const trimming = createLogTrimming({ db, log: quietLog, maxBytes: 100_000 });
    await trimming.trim();
    await addFinishedRuns(1, 8, 9_000);
    await addFinishedRuns(1, 30, 9_000, true);
    await addEvents(1, 8, 9_000, "email.bounced");
    await addEvents(1, 30, 9_000, "app.analytics.event");
    await trimming.trim();
    expect(await count("run WHERE credential_id IS NULL")).to.equal(8);
    expect(await count("run WHERE credential_id = 1")).to.be.within(4, 6);
    expect(await count("log_event WHERE type = 'email.bounced'")).to.equal(8);
    expect(await count("log_event WHERE type = 'app.analytics.event'")).to.be.within(4, 6);
  });

  it("is limited although the rows of another app cannot be deleted; the failure is logged once", async () => {
    await addFinishedRuns(1, 10, 9_000);
    await addFinishedRuns(2, 10, 9_000);
    await db.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'slow' USING ERRCODE = '57014'; END $$;
      CREATE TRIGGER fail BEFORE DELETE ON run FOR EACH ROW WHEN (OLD.app_id = 1) EXECUTE FUNCTION fail();
    `);
    try {
      let warnings = 0;
      await createLogTrimming({ db, log: { warn: () => (warnings += 1) }, maxBytes: 20_000 }).trim();
      expect(await count("run WHERE app_id = 1")).to.equal(10);
      expect(await count("run WHERE app_id = 2")).to.be.within(1, 3);
      expect(warnings).to.equal(1);
    } finally {
      await db.query("DROP FUNCTION fail CASCADE");
    }
  });

  it("is limited in the next pass if a deletion failed, and in smaller batches if it took too long", async () => {
    const trimming = createLogTrimming({ db, log: quietLog, maxBytes: 20_000, now: () => 0 });
    await trimming.trim();
    await addFinishedRuns(1, 20, 9_000);
    const createFailFunctionSql = (condition: string) => `
      CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF ${condition} THEN RAISE EXCEPTION 'slow' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$;`;
    await db.query(`${createFailFunctionSql("true")}
      CREATE TRIGGER fail AFTER DELETE ON run REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION fail()`);
    try {
      await trimming.trim();
      expect(await count("run")).to.equal(20);
      await db.query(createFailFunctionSql("(SELECT count(*) FROM old) > 5"));
      await trimming.trim();
      expect(await count("run")).to.be.within(1, 3);
    } finally {
      await db.query("DROP FUNCTION fail CASCADE");
    }
  });

  it("keeps an event that a run still refers to, and runs that have not ended", async () => {
    const trimming = createLogTrimming({ db, log: quietLog, maxBytes: 20_000 });
    await trimming.trim();
    await addEvents(1, 1, 9_000, "t");
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, state, event_id) VALUES (1, 1, 'production', 'log', 'queued', 1)`,
    );
    await addEvents(1, 10, 9_000, "t");
    await addFinishedRuns(1, 10, 9_000);
    await trimming.trim();
    expect(await count("log_event WHERE id = 1")).to.equal(1);
    expect(await count("run WHERE state = 'queued'")).to.equal(1);
    expect(await count("log_event")).to.be.within(2, 4);
  });

  longTest(
    "keeps the newest rows of tables without an age limit: audit log, visitors' sessions, snapshots, idempotency keys",
    async () => {
      const extra = 1_500;
      await db.query(`
      INSERT INTO credential (kind, hash, app_id, page_session, expires_at)
        SELECT 'live', int4send(n), 1, true, now() + interval '1 day' FROM generate_series(1, ${PAGE_SESSIONS_PER_APP_MAX + extra}) n;
      INSERT INTO audit_entry (app_id, type, data)
        SELECT 1, 't', '{}' FROM generate_series(1, ${PAGE_SESSIONS_PER_APP_MAX + extra});
      INSERT INTO audit_entry (app_id, type, data) VALUES (2, 't', '{}')`);
      await createDataRetention({ db, days: 30, log: quietLog }).clean();
      expect(await count("credential WHERE page_session")).to.equal(PAGE_SESSIONS_PER_APP_MAX);
      expect(await count("audit_entry WHERE app_id = 1")).to.equal(PAGE_SESSIONS_PER_APP_MAX);
      expect(await count("audit_entry WHERE app_id = 2")).to.equal(1);
      expect(await count("credential WHERE NOT page_session")).to.equal(1);
    },
  );
});

describe("data that an app's authors can store", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.stop());

  longTest("is at most 8 MB of settings: a larger write is rejected as a whole, with both numbers", async () => {
    const path = `/v1/apps/${service.appId}/settings`;
    const answers = [];
    for (let at = 0; at < 9; at += 1)
      answers.push(await service.rest("POST", path, { body: { [`k${at}`]: incompressibleText(1_000_000) } }));
    expect(answers.map(({ http }) => http)).to.deep.equal([...Array(8).fill(200), 400]);
    const { status, error } = answers.at(-1)!.body;
    expect(status).to.equal("SETTINGS_INVALID");
    expect(error).to.match(
      new RegExp(
        `^the settings of one app must be at most ${SETTINGS_PER_APP_MAX_BYTES} bytes in total \\(got 9\\d{6} with this change\\)$`,
      ),
    );
    expect((await service.rest("POST", path, { body: { k0: "smaller" } })).http).to.equal(200);
  });

  longTest("is at most 256 MB of code: an action above that is rejected", async () => {
    const path = `/v3/apps/${service.appId}/actions`;
    const code = "async function execute() { return 1 }";
    const made = await service.rest("POST", path, { body: { name: "small", code } });
    await service.db.query(
      `INSERT INTO action (app_id, name, code, environment)
       SELECT $1, 'large-' || n, repeat('x', 1000000), 'server' FROM generate_series(1, 268) n`,
      [service.appId],
    );
    const refused = await service.rest("POST", path, {
      body: { name: "one-more", code: `${code}//${"x".repeat(900_000)}` },
    });
    expect([refused.http, refused.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(refused.body.error).to.match(/^the actions of one app can use at most 268435456 bytes/);
    const activation = await service.rest("PUT", `${path}/${made.body.action.id}`, { body: { active: true } });
    expect(activation.http).to.equal(200);
  });

  longTest("is at most 1,000 tokens of the app, without revoked ones", async () => {
    const path = `/v1/apps/${service.appId}/tokens`;
    await service.db.query(
      "INSERT INTO credential (kind, hash, app_id, revoked_at) SELECT 'api', int4send(n), $1, CASE WHEN n > 990 THEN now() END FROM generate_series(1, 1000) n",
      [service.appId],
    );
    const answers = [];
    for (let at = 0; at < 11; at += 1) answers.push((await service.rest("POST", path, { body: { kind: "api" } })).http);
    // An app can have 1,000 valid tokens. 990 of the inserted ones are valid, and the set-up has created three, so seven more fit.
    expect(answers).to.deep.equal([...Array(7).fill(201), ...Array(4).fill(400)]);
  });

  longTest("is at most 100 snapshots of the app; the oldest are removed", async () => {
    const path = `/v1/apps/${service.appId}/versions`;
    await service.db.query("DELETE FROM setting");
    await service.db.query("INSERT INTO app_version (app_id, data) SELECT $1, '{}' FROM generate_series(1, 100)", [
      service.appId,
    ]);
    const { version } = (await service.rest("POST", path)).body;
    const { body } = await service.rest("GET", path);
    expect([body.pagination.total, body.versions[0].id]).to.deep.equal([100, version.id]);
  });
});
