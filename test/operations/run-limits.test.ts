/** Tests the limits (other than slots) for which runs wait, with two processes on separate connections to one database. */
import { expect } from "chai";
import type { Concurrency, Debounce } from "../../src/data/action-types.js";
import { type Db, openDatabase } from "../../src/data/database.js";
import { QueuedRuns } from "../../src/operations/history/queued-runs.js";
import { ExecutionLogs } from "../../src/operations/records/execution-logs.js";
import { QueueLimits } from "../../src/operations/records/queue-limits.js";
import { RunAdmission } from "../../src/operations/runs/run-admission.js";
import { insertDebouncedRun, insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import type { Caller } from "../../src/rules/access.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { longTest } from "../harness/samples.js";
import { until } from "../harness/until.js";

const HOLDER = "00000000-0000-4000-8000-000000000001";
const DEAD_PROCESS_ID = "00000000-0000-4000-8000-000000000002";
const BOUNDS = { maxRuns: 1_000_000, maxRunsPerApp: 100_000, maxPayloadBytes: 2 ** 30 };
const TABLES = [
  ...["run", "execution_log", "run_concurrency", "concurrency_due", "debounced_run"],
  ...["audit_entry", "action", "app", "organization"],
];
const EDITOR = { kind: "editor", personId: null, credentialId: null } as unknown as Caller;

const concurrencyOf = (policy: Concurrency["policy"], more: Partial<Concurrency> = {}): Concurrency => ({
  policy,
  limit: 1,
  key: null,
  ...more,
});

describe("the limits of an action's runs", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let second: Db;
  let processes: { repository: RunRepository; limiter: RunAdmission }[];

  before(async () => {
    database = await connectedDatabase(8);
    ({ db } = database);
    second = await openDatabase(database.url, 8);
    processes = [db, second].map((processDb) => {
      const repository = new RunRepository(processDb);
      const limiter = new RunAdmission(processDb, repository, new ServiceMetrics(), { warn: () => undefined });
      return { repository, limiter };
    });
  });
  beforeEach(async () => {
    await emptyTables(db, TABLES);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name, published_at) VALUES (1, 'a', now()), (1, 'b', now());
      INSERT INTO action (app_id, name, code, environment) VALUES (1, 'one', '', 'server')`);
  });
  after(async () => {
    await second.destroy();
    await database.stop();
  });

  const limit = (concurrency: Concurrency | null, debounce: Debounce | null = null) =>
    db.query("UPDATE action SET concurrency = $1, debounce = $2", [concurrency, debounce]);

  /** Adds a run that waits for the concurrency limit. One of the two processes then checks if the run can start at once. */
  async function addRun(
    payload: string | object = {},
    { by = 0, trigger = "manual" as const, personId = null as number | null } = {},
  ) {
    const { limiter } = processes[by % 2]!;
    const text = typeof payload === "string" ? payload : JSON.stringify(payload);
    const facts = {
      appId: 1,
      actionId: 1,
      copy: "master",
      payload: text,
      credentialId: null,
      idempotencyKey: null,
    } as const;
    const { id } = await insertRunByActionId(
      [db, second][by % 2]!,
      { ...facts, trigger, personId, waitsFor: "concurrency" },
      null,
    );
    await limiter.checkRun(id, null);
    return id;
  }
  const claim = (by = 0) => processes[by % 2]!.repository.claim(HOLDER, new Map(), 9);
  const complete = async (id: number, by = 0) => {
    const data = { text: "{}", payloadAt: null };
    expect(await processes[by % 2]!.repository.finish({ id, holder: HOLDER, state: "completed", data })).to.equal(true);
  };
  const releaseDueRuns = (by = 0) => processes[by % 2]!.limiter.releaseDueRuns();
  const states = async () =>
    (await db.query("SELECT id, state, waits_for AS waits FROM run ORDER BY id")).map(
      ({ id, state, waits }: { id: number; state: string; waits: string | null }) =>
        `${id} ${state}${waits ? ` for ${waits}` : ""}`,
    );
  const kept = async () =>
    (
      await db.query(`SELECT (SELECT count(*)::int FROM run_concurrency) AS runs, (SELECT count(*)::int FROM concurrency_due) AS due,
                             (SELECT count(*)::int FROM debounced_run) AS debounced`)
    )[0];

  longTest("start one of 60 runs that two processes accept at once, and then the next, to the last", async () => {
    await limit(concurrencyOf("queue"));
    await Promise.all(Array.from({ length: 60 }, (_, by) => addRun({}, { by })));
    for (let run = 0; run < 60; run += 1) {
      const claimed = [await claim(run), await claim(run + 1)].filter((found) => found !== null);
      expect(claimed).to.have.length(1);
      await complete(claimed[0]!.id, run);
      await Promise.all([releaseDueRuns(0), releaseDueRuns(1)]);
    }
    expect(await kept()).to.deep.equal({ runs: 0, due: 0, debounced: 0 });
  });

  it("start as many as the limit allows, whichever process accepts and ends them", async () => {
    await limit(concurrencyOf("queue", { limit: 3 }));
    await Promise.all(Array.from({ length: 20 }, (_, by) => addRun({}, { by })));
    const running = [await claim(0), await claim(1), await claim(0)].map((run) => run!.id);
    expect(await claim(1)).to.equal(null);
    await Promise.all(running.map((id, by) => complete(id, by)));
    await Promise.all([releaseDueRuns(0), releaseDueRuns(1)]);
    const next = [await claim(0), await claim(1), await claim(0), await claim(1)];
    expect(next.map((run) => run !== null)).to.deep.equal([true, true, true, false]);
  });

  it("skip all of many concurrent runs except one, with the reason, without the payload", async () => {
    await limit(concurrencyOf("skip", { key: "who" }));
    await Promise.all(Array.from({ length: 30 }, (_, by) => addRun({ who: "hidden" }, { by })));
    const [counts] = await db.query(`
      SELECT count(*) FILTER (WHERE state = 'queued' AND waits_for IS NULL)::int AS started,
             count(*) FILTER (WHERE state = 'skipped' AND reason LIKE 'concurrency: %' AND reason NOT LIKE '%hidden%')::int AS skipped
        FROM run`);
    expect(counts).to.deep.equal({ started: 1, skipped: 29 });
    expect(await kept()).to.deep.equal({ runs: 1, due: 0, debounced: 0 });
  });

  it("keep the newest of many with `cancel`: waiting ones end at once, the active one is asked to end", async () => {
    await limit(concurrencyOf("cancel"));
    const first = await addRun();
    expect((await claim())!.id).to.equal(first);
    const notices: string[] = [];
    const client = await listen(database.url, "svc_cancel", notices);
    await Promise.all(Array.from({ length: 20 }, (_, by) => addRun({}, { by })));
    // Each notification names a cancelled run and the run that replaces it.
    await until(async () => notices.includes(`${first}:${first + 20}`));
    await client.end();
    expect((await states()).filter((state: string) => !state.includes("cancelled"))).to.deep.equal([
      `${first} running`,
      `${first + 20} queued for concurrency`,
    ]);
    const entry = JSON.parse((await new ExecutionLogs(db).readEntryOfRun(first + 1))!.data.text);
    expect(entry.error).to.include({ name: "CancelledError" });
    expect(entry.error.message).to.match(
      /^the run was cancelled: the action's "concurrency" setting replaced it by run \d+$/,
    );
    await complete(first);
    await releaseDueRuns();
    expect((await claim())!.id).to.equal(first + 20);
  });

  it("ask the replaced run again until it has ended", async () => {
    await limit(concurrencyOf("cancel"));
    const first = await addRun();
    await claim();
    await addRun();
    await releaseDueRuns();
    const [{ ahead }] = await db.query("SELECT max(at) > now() - interval '1 hour' AS ahead FROM concurrency_due");
    expect(ahead).to.equal(true);
    await complete(first);
    await db.query("UPDATE concurrency_due SET at = now()");
    await releaseDueRuns();
    expect((await kept()).due).to.equal(0);
  });

  it("release the slot of a run whose process was killed, when it is ended", async () => {
    await limit(concurrencyOf("queue"));
    const { repository } = processes[0]!;
    const lost = await addRun();
    const next = await addRun();
    expect((await repository.claim(DEAD_PROCESS_ID, new Map(), 9))!.id).to.equal(lost);
    expect(await claim(1)).to.equal(null);
    expect(await processes[1]!.repository.finishLost()).to.equal(1);
    await releaseDueRuns(1);
    expect((await claim(1))!.id).to.equal(next);
  });

  it("keep the slot of a run that returns to the queue", async () => {
    await limit(concurrencyOf("queue"));
    const run = await addRun();
    await addRun();
    await claim();
    expect(await processes[0]!.repository.returnClaim(run, HOLDER)).to.equal(true);
    await releaseDueRuns();
    expect((await claim(1))!.id).to.equal(run);
    expect(await claim()).to.equal(null);
  });

  it("count by a property of the payload: missing and null together, values of any kind and length, also characters that text cannot store", async () => {
    await limit(concurrencyOf("queue", { key: "order.id" }));
    const huge = "x".repeat(900_000);
    const payloads = [
      {},
      { order: null },
      { order: { id: null } },
      { order: "text" },
      { order: { id: 7 } },
      { order: { id: "7" } },
      { order: { id: { deep: [1] } } },
      { order: { id: huge } },
      { order: { id: `${huge}y` } },
      { order: { id: "nul\0" }, other: "\0" },
      { order: { id: "half \ud800" }, other: "\udfff" },
      { order: { id: ["\\u0000"] } },
    ];
    for (const payload of payloads) await addRun(payload);
    const started = [];
    for (let run = await claim(); run !== null; run = await claim()) started.push(run.id);
    // The claims take the first run without a key, the first of key 7, and the first of each other key.
    expect(started).to.deep.equal([1, 5, 7, 8, 9, 10, 11, 12]);
    const [{ longest }] = await db.query("SELECT max(octet_length(key)) AS longest FROM run_concurrency");
    expect(longest).to.equal(32);
  });

  it("start all waiting runs after the limit is removed, also those of a deleted action", async () => {
    await limit(concurrencyOf("queue"));
    const many = 250;
    await addRun();
    const first = (await claim())!;
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, waits_for)
       SELECT 1, 1, 'master', 'manual', '{}', 'queued', 'concurrency' FROM generate_series(2, $1::int)`,
      [many],
    );
    await releaseDueRuns();
    await limit(null);
    await complete(first.id);
    await releaseDueRuns();
    expect(new Set((await states()).slice(1).map((state: string) => state.replace(/^\d+ /, "")))).to.deep.equal(
      new Set(["queued"]),
    );
    await db.query("DELETE FROM action");
    expect((await claim())!.id).to.equal(2);
    await complete(2);
    expect((await kept()).runs).to.equal(many - 2);
  });

  it("are released when a whole backlog is cancelled", async () => {
    await limit(concurrencyOf("queue"));
    for (let run = 0; run < 30; run += 1) await addRun();
    const backlogs = new QueuedRuns(db, new QueueLimits(db, BOUNDS), async () => false);
    expect(await backlogs.cancel(EDITOR, 1, {})).to.deep.equal({ cancelled: 30, more: false });
    await releaseDueRuns();
    expect(await kept()).to.deep.equal({ runs: 0, due: 0, debounced: 0 });
    expect(await addRun()).to.equal(31);
    expect((await claim())!.id).to.equal(31);
  });

  it("cost a run of an action without limits no row and no key", async () => {
    const facts = {
      appId: 1,
      actionId: 1,
      copy: "master",
      payload: "{}",
      credentialId: null,
      idempotencyKey: null,
    } as const;
    const { id } = await insertRunByActionId(db, { ...facts, trigger: "manual", personId: null }, HOLDER);
    expect(await kept()).to.deep.equal({ runs: 0, due: 0, debounced: 0 });
    await complete(id);
    expect(await kept()).to.deep.equal({ runs: 0, due: 0, debounced: 0 });
  });

  describe("that follow each other closely", () => {
    const MANUAL_DEBOUNCE: Debounce = { delayMs: 60_000, maxWaitMs: 120_000, manual: true };
    const facts = {
      appId: 1,
      actionId: 1,
      copy: "master",
      trigger: "manual",
      credentialId: null,
      idempotencyKey: null,
    } as const;

    async function start(payload: object, { by = 0, personId = 1 } = {}): Promise<number> {
      const manager = [db, second][by % 2]!;
      const run = { ...facts, personId, payload: JSON.stringify(payload) };
      return (await manager.transaction((executor) => insertDebouncedRun(executor, run))).id;
    }
    const quiet = () => db.query("UPDATE debounced_run SET due_at = now()");

    it("become one run with the last payload, in one row, for any number of starts at two processes", async () => {
      await limit(null, MANUAL_DEBOUNCE);
      const ids = await Promise.all(Array.from({ length: 100 }, (_, n) => start({ n }, { by: n })));
      expect(new Set(ids)).to.deep.equal(new Set([ids[0]]));
      await start({ n: "last" });
      expect(await states()).to.deep.equal([`${ids[0]} queued for debounce`]);
      expect(await claim()).to.equal(null);
      await quiet();
      await releaseDueRuns(1);
      expect(JSON.parse((await claim())!.payload)).to.deep.equal({ n: "last" });
      expect(await kept()).to.deep.equal({ runs: 0, due: 0, debounced: 0 });
    });

    it("wait for a pause, and no longer than the longest wait", async () => {
      await limit(null, MANUAL_DEBOUNCE);
      const waits = async () =>
        (await db.query("SELECT round(extract(epoch FROM due_at - first_at))::int AS seconds FROM debounced_run"))[0]
          .seconds;
      await start({});
      expect(await waits()).to.equal(60);
      await db.query("UPDATE debounced_run SET first_at = first_at - interval '30 seconds'");
      await start({});
      expect(await waits()).to.equal(90);
      await db.query("UPDATE debounced_run SET first_at = first_at - interval '80 seconds'");
      await start({});
      expect(await waits()).to.equal(120);
    });

    it("are merged per caller: no one's payload becomes another one's run", async () => {
      await limit(null, MANUAL_DEBOUNCE);
      const [mine, theirs] = [await start({ of: 1 }, { personId: 1 }), await start({ of: 2 }, { personId: 2 })];
      expect(mine).to.not.equal(theirs);
      await quiet();
      await releaseDueRuns();
      expect([await claim(), await claim()].map((run) => [run!.personId, run!.payload])).to.deep.equal([
        [1, '{"of":1}'],
        [2, '{"of":2}'],
      ]);
    });

    it("survive the process that accepted them, and start another run if theirs was cancelled", async () => {
      await limit(null, MANUAL_DEBOUNCE);
      const first = await start({ n: 1 });
      const backlogs = new QueuedRuns(db, new QueueLimits(db, BOUNDS), async () => false);
      expect((await backlogs.cancel(EDITOR, 1, {})).cancelled).to.equal(1);
      const next = await start({ n: 2 });
      expect(next).to.not.equal(first);
      await quiet();
      await releaseDueRuns(1);
      expect((await claim())!.id).to.equal(next);
    });

    it("then wait for a slot under the action's limit, with the last payload", async () => {
      await limit(concurrencyOf("queue", { key: "n" }), MANUAL_DEBOUNCE);
      await addRun({ n: 2 });
      await claim();
      await start({ n: 1 });
      const id = await start({ n: 2 });
      await quiet();
      await releaseDueRuns();
      expect((await states()).at(-1)).to.equal(`${id} queued for concurrency`);
      await complete(1);
      await releaseDueRuns(1);
      expect((await claim())!.id).to.equal(id);
    });
  });

  it("do not delay other apps' runs, nor make a healthy runner look idle", async () => {
    await limit(concurrencyOf("queue"));
    for (let run = 0; run < 12; run += 1) await addRun();
    await db.query("UPDATE run SET queued_at = now() - interval '1 hour'");
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state) VALUES (2, 9, 'master', 'manual', '{}', 'queued')`,
    );
    const { repository } = processes[0]!;
    expect((await claim())!.id).to.equal(1);
    expect((await claim())!.appId).to.equal(2);
    expect(await repository.findLongestWait(new Map(), 9)).to.equal(0);
  });
});

async function listen(url: string, channel: string, received: string[]) {
  const { createClient } = await import("../../src/postgres.js");
  const client = createClient(url, "test");
  client.on("notification", ({ payload }) => received.push(payload ?? ""));
  await client.connect();
  await client.query(`LISTEN ${channel}`);
  return client;
}
