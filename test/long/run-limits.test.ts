/** Tests limits of an action's runs in extreme cases: many keys, a deep queue of one key, floods, and killed processes. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { RunAdmission } from "../../src/operations/runs/run-admission.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import { connectedDatabase } from "../harness/connected-database.js";
import { freshDatabase } from "../harness/postgres.js";
import { startProcess } from "../harness/process.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { createFirstCredentials, startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createEditor, WAITING_CODE } from "../service/support.js";

const HOLDER = "00000000-0000-4000-8000-000000000001";
const MANY_RUNS = 100_000;
const ROUNDS = 200;
/** Number of rows in one statement: few enough for the statement's time limit on a slow machine. */
const ROWS_PER_INSERT = 5_000;

const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!;

/** Inserts `count` queued runs that share `keys` concurrency keys. The first run of each key counts as admitted. */
async function insertRuns(db: Db, prefix: string, keys: number, count: number): Promise<void> {
  for (let first = 0; first < count; first += ROWS_PER_INSERT) {
    const inserted: { id: number }[] = await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, waits_for)
       SELECT 2, 1, 'master', 'manual', json_build_object('k', $1::text || n % $2::int), 'queued', 'concurrency'
         FROM generate_series($3::int, $4::int) AS n ORDER BY n
       RETURNING id`,
      [prefix, keys, first, Math.min(first + ROWS_PER_INSERT, count) - 1],
    );
    const admitted = inserted.slice(0, Math.max(0, keys - first)).map(({ id }) => id);
    await db.query("UPDATE run_concurrency SET admitted = true WHERE run_id = ANY ($1::bigint[])", [admitted]);
    await db.query("UPDATE run SET waits_for = NULL, ready_at = now() WHERE id = ANY ($1::bigint[])", [admitted]);
  }
}

async function createFilledQueue(keys: number, ofOne: number) {
  const database = await connectedDatabase(4);
  const { db } = database;
  const concurrency = JSON.stringify({ policy: "queue", limit: 1, key: "k" });
  await db.query(`
    INSERT INTO organization (name) VALUES ('o');
    INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b');
    INSERT INTO action (app_id, name, code, environment, concurrency) VALUES (1, 'one', '', 'server', '${concurrency}')`);
  await insertRuns(db, "many ", keys, keys);
  await insertRuns(db, "one ", 1, ofOne);
  await db.query("TRUNCATE concurrency_due");
  await db.query("VACUUM ANALYZE run, run_concurrency");
  const repository = new RunRepository(db);
  return {
    ...database,
    db,
    repository,
    limiter: new RunAdmission(db, repository, new ServiceMetrics(), { warn: () => undefined }),
  };
}

describe("limits of an action's runs", () => {
  it("cost at most one and a half times as much with 100,000 keys and 100,000 runs of one key as with 100 of each", async () => {
    const [small, large] = [await createFilledQueue(100, 100), await createFilledQueue(MANY_RUNS, MANY_RUNS)];
    const times = new Map([
      [small, [] as number[]],
      [large, [] as number[]],
    ]);
    const run = { appId: 1, actionId: 1, copy: "master", trigger: "manual", personId: null } as const;
    const more = { credentialId: null, idempotencyKey: null, waitsFor: "concurrency" } as const;
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [{ db, repository, limiter }, durations] of times) {
        const start = performance.now();
        for (const k of ["one 0", `new ${round}`]) {
          const { id } = await insertRunByActionId(db, { ...run, ...more, payload: JSON.stringify({ k }) }, null);
          await limiter.checkRun(id, null);
        }
        // The claim returns the run of app 1 with the new key. It skips app 2, because this app uses more slots than the limit.
        const claimed = await repository.claim(HOLDER, new Map([[2, 9]]), 3);
        expect(claimed!.appId).to.equal(1);
        durations.push(performance.now() - start);
      }
    }
    const [before, after] = [median(times.get(small)!), median(times.get(large)!)];
    const ratio = (after / before).toFixed(2);
    process.stdout.write(`      median ${before.toFixed(2)} ms, ${after.toFixed(2)} ms: ${ratio} times\n`);
    await small.stop();
    await large.stop();
    expect(after).to.be.below(before * 1.5);
  });

  it("apply to two processes of which one is killed: no two runs of a key overlap, and each run ends", async () => {
    const database = await freshDatabase();
    const folder = mkdtempSync(join(tmpdir(), "svc-limits-"));
    const { tokens } = await createFirstCredentials(database.url, folder);
    const db = await openDatabase(database.url, 2);
    const settings = {
      DATABASE_URL: database.url,
      DATA_DIR: folder,
      SETTINGS_KEY: randomBytes(32).toString("base64"),
      RATE_LIMIT_RUN: "0",
    };
    const processes = [startProcess(settings), startProcess(settings)];
    const urls = await Promise.all(processes.map((started) => started.ready()));
    const editors = urls.map((url) => createEditor(url, tokens.editor));
    const { call } = editors[0]!;
    const fields = { active: true, triggers: [{ trigger: "manual" }], concurrency: { policy: "queue", key: "k" } };
    await call("POST", "", { name: "one", code: WAITING_CODE, ...fields });
    const posted = Array.from({ length: 80 }, (_, n) =>
      editors[n % 2]!.call("POST", "/one/run", { k: n % 4, wait: 100 + n }),
    );
    expect((await Promise.all(posted)).map(({ http }) => http).filter((http) => http >= 300)).to.deep.equal([]);
    await until(async () => (await db.query("SELECT FROM run WHERE state = 'completed' LIMIT 5")).length === 5);
    processes[1]!.signal("SIGKILL");
    await processes[1]!.ended;
    const left = "SELECT count(*)::int AS n FROM run WHERE finished_at IS NULL";
    await until(async () => (await db.query(left))[0].n === 0, 120_000);
    const [overlaps] = await db.query(`
      SELECT count(*)::int AS n FROM run AS a JOIN run AS b ON b.id > a.id AND (a.payload->>'k') = (b.payload->>'k')
       WHERE tstzrange(a.started_at, a.finished_at) && tstzrange(b.started_at, b.finished_at)`);
    expect(overlaps.n).to.equal(0);
    const states = await db.query("SELECT state, count(*)::int AS n FROM run GROUP BY 1 ORDER BY 1");
    process.stdout.write(`      ${JSON.stringify(states)}\n`);
    expect(states.reduce((sum: number, { n }: { n: number }) => sum + n, 0)).to.equal(80);
    expect((await db.query("SELECT count(*)::int AS n FROM run_concurrency"))[0].n).to.equal(0);
    processes[0]!.signal("SIGTERM");
    await processes[0]!.ended;
    await Promise.all(processes.map((started) => started.clean()));
    await db.destroy();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("store one run for 5,000 debounced events, and reject calls when the app's queue is full", async () => {
    const service = await startTestService({ ROLES: "api", QUEUE_MAX_PER_APP: "200" });
    const debounce = { delayMs: 60_000, maxWaitMs: 60_000, manual: false };
    const concurrency = { policy: "queue", limit: 1, key: null } as const;
    await insertPublishedActions(service.db, service.appId, [
      { name: "gathers", triggers: [{ trigger: "log", where: { type: "app.view" } }], debounce },
      {
        name: "queues",
        triggers: [{ trigger: "manual" }, { trigger: "log", where: { type: "app.update" } }],
        concurrency,
      },
    ]);
    const send = (type: string, n: number) =>
      service.rest("POST", `/v1/apps/${service.appId}/logs`, { body: { type, data: { n } }, as: "api" });
    for (let n = 0; n < 5_000; n += 50) {
      const sent = await Promise.all(Array.from({ length: 50 }, (_, more) => send("app.view", n + more)));
      expect(sent.every(({ http }) => http === 201)).to.equal(true);
    }
    const rows = "SELECT count(*)::int AS n FROM run WHERE state <> 'skipped'";
    expect((await service.db.query(rows))[0].n).to.equal(1);
    for (let n = 0; n < 400; n += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, more) => send("app.update", n + more)));
    }
    const most = (await service.db.query(rows))[0].n;
    expect(most).to.be.within(150, 264);
    const refused = await service.rest("POST", `/v3/apps/${service.appId}/actions/queues/run`, {
      body: {},
      as: "live",
    });
    expect([refused.http, refused.body.status]).to.deep.equal([503, "OVERLOADED"]);
    await service.stop();
  });
});
