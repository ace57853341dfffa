import { expect } from "chai";
import { type Db, isDatabaseUnavailable, openDatabase } from "../../src/data/database.js";
import { QUEUED_RUNS_PER_APP_RESERVED } from "../../src/limits.js";
import { QueuedRuns } from "../../src/operations/history/queued-runs.js";
import { ExecutionLogs } from "../../src/operations/records/execution-logs.js";
import { QueueLimits } from "../../src/operations/records/queue-limits.js";
import { Enqueuer } from "../../src/operations/runs/enqueue.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import type { NewRun } from "../../src/operations/runs/run-types.js";
import type { Caller } from "../../src/rules/access.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { startCuttingProxy } from "../harness/cutting-proxy.js";

const BOUNDS = { maxRuns: 1_000_000, maxRunsPerApp: 100_000, maxPayloadBytes: 2 ** 30 };
const HOLDER = "00000000-0000-4000-8000-000000000001";
const TABLES = ["run", "execution_log", "audit_entry", "action", "app", "organization"];
const EDITOR = { kind: "editor", personId: null, credentialId: null } as unknown as Caller;

describe("a backlog", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(6);
    ({ db } = database);
  });
  beforeEach(async () => {
    await emptyTables(db, TABLES);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b');
      INSERT INTO action (app_id, name, code, environment) VALUES (1, 'one', '', 'server'), (1, 'two', '', 'server')`);
  });
  after(() => database.stop());

  const addQueuedRuns = (appId: number, runs: number, { actionId = 1, payload = '{"n":1}', trigger = "manual" } = {}) =>
    db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
       SELECT $1, $2, 'master', $5, $3, 'queued' FROM generate_series(1, $4::int)`,
      [appId, actionId, payload, runs, trigger],
    );
  const states = async (appId: number) =>
    (await db.query("SELECT state, count(*)::int AS n FROM run WHERE app_id = $1 GROUP BY 1 ORDER BY 1", [appId])).map(
      ({ state, n }: { state: string; n: number }) => `${n} ${state}`,
    );

  it("is cancelled completely: each run ends in one entry with its payload; runs of other apps and active ones stay", async () => {
    await addQueuedRuns(1, 2_500);
    await addQueuedRuns(2, 3);
    const running = await new RunRepository(db).claim(HOLDER, new Map([[2, 1]]), 1);
    expect(running?.appId).to.equal(1);
    const backlogs = new QueuedRuns(db, new QueueLimits(db, BOUNDS), async () => false);
    expect(await backlogs.cancel(EDITOR, 1, {})).to.deep.equal({ cancelled: 2_499, more: false });
    expect(await states(1)).to.deep.equal(["2499 cancelled", "1 running"]);
    expect(await states(2)).to.deep.equal(["3 queued"]);
    const [counts] = await db.query(`
      SELECT count(*)::int AS entries, count(DISTINCT run_id)::int AS runs FROM execution_log`);
    expect(counts).to.deep.equal({ entries: 2_499, runs: 2_499 });
    const entry = await new ExecutionLogs(db).readEntryOfRun(running!.id + 1);
    expect(entry?.type).to.equal("app.task.failed");
    const data = JSON.parse(entry!.data.text);
    expect([data.payload, data.error.name]).to.deep.equal([{ n: 1 }, "CancelledError"]);
    expect((await db.query("SELECT type, data FROM audit_entry"))[0]).to.deep.equal({
      type: "app.runs.cancel",
      data: { cancelled: 2_499, actionId: null },
    });
  });

  it("is in the audit log with the runs that are cancelled before the database connection is lost", async () => {
    await addQueuedRuns(1, 1_000);
    await addQueuedRuns(1, 5, { trigger: "schedule" });
    const proxy = await startCuttingProxy(database.url);
    const throughProxy = await openDatabase(proxy.url);
    try {
      // The connection is lost at the second batch, because only this batch has runs with the trigger `schedule`.
      proxy.dropAnswer({ with: "schedule" });
      const queuedRuns = new QueuedRuns(throughProxy, new QueueLimits(db, BOUNDS), async () => false);
      const outcome = await queuedRuns.cancel(EDITOR, 1, {}).catch(isDatabaseUnavailable);
      expect([outcome, proxy.droppedAnswers()]).to.deep.equal([true, 1]);
    } finally {
      await throughProxy.destroy();
      await proxy.stop();
    }
    expect(await states(1)).to.deep.equal(["1000 cancelled", "5 queued"]);
    expect(await db.query("SELECT type, data FROM audit_entry")).to.deep.equal([
      { type: "app.runs.cancel", data: { cancelled: 1_000, actionId: null } },
    ]);
  });

  it("is cancelled for one action only if it is named, and never for an action of another app", async () => {
    await addQueuedRuns(1, 5, { actionId: 1 });
    await addQueuedRuns(1, 7, { actionId: 2 });
    await addQueuedRuns(2, 2, { actionId: 1 });
    const backlogs = new QueuedRuns(db, new QueueLimits(db, BOUNDS), async () => false);
    expect((await backlogs.cancel(EDITOR, 1, { actionId: 2 })).cancelled).to.equal(7);
    expect((await backlogs.cancel(EDITOR, 2, { actionId: 1 })).cancelled).to.equal(0);
    expect([await states(1), await states(2)]).to.deep.equal([["7 cancelled", "5 queued"], ["2 queued"]]);
  });

  it("is reported by number, bytes and age, for each app", async () => {
    await addQueuedRuns(1, 3);
    await db.query("UPDATE run SET queued_at = '2026-01-02T03:04:05Z' WHERE id = 2");
    const backlogs = new QueuedRuns(db, new QueueLimits(db, BOUNDS), async () => false);
    expect(await backlogs.read(1)).to.deep.equal({ runs: 3, bytes: 21, oldestAt: "2026-01-02T03:04:05.000Z" });
    expect(await backlogs.read(2)).to.deep.equal({ runs: 0, bytes: 0, oldestAt: null });
    await addQueuedRuns(1, 1);
    expect((await backlogs.read(1)).runs).to.equal(4);
  });

  it("is limited in bytes, for one app to a tenth, and leaves every app its minimum", async () => {
    await addQueuedRuns(1, QUEUED_RUNS_PER_APP_RESERVED, {
      payload: JSON.stringify({ text: "x".repeat(9_990 / QUEUED_RUNS_PER_APP_RESERVED) }),
    });
    const room = new QueueLimits(db, { ...BOUNDS, maxPayloadBytes: 100_000 });
    expect(await room.reserveCapacity(1, 1_000)).to.equal(false);
    expect(await room.reserveCapacity(2, 9_000)).to.equal(true);
    // With this run, app 2 is above its limit of bytes, but below the number of runs that each app can always queue.
    expect(await room.reserveCapacity(2, 9_000)).to.equal(true);
  });

  it("is limited in the bytes of all apps together", async () => {
    await addQueuedRuns(1, 1, { payload: JSON.stringify({ text: "x".repeat(10_000) }) });
    await addQueuedRuns(2, QUEUED_RUNS_PER_APP_RESERVED, { payload: "{}" });
    const [{ bytes }] = await db.query("SELECT sum(payload_bytes)::int AS bytes FROM run");
    const reserve = (more: number) =>
      new QueueLimits(db, { ...BOUNDS, maxPayloadBytes: bytes + 100 }).reserveCapacity(2, more);
    expect([await reserve(100), await reserve(101)]).to.deep.equal([true, false]);
  });

  it("does not count a run whose row was not written", async () => {
    await addQueuedRuns(1, QUEUED_RUNS_PER_APP_RESERVED, { payload: "{}" });
    const queueLimits = new QueueLimits(db, { ...BOUNDS, maxPayloadBytes: 100_000 });
    const enqueuer = new Enqueuer({
      queueLimits,
      dispatcher: { tryAcquireSlot: () => null },
      tracing: { getCurrentTraceparent: () => null },
      db: { query: () => Promise.reject(new Error("not written")) },
    } as unknown as ConstructorParameters<typeof Enqueuer>[0]);
    const payload = JSON.stringify("x".repeat(9_000));
    const run = { appId: 1, payload } as NewRun;
    for (let call = 0; call < 2; call += 1) {
      const error = await enqueuer.queueByActionId(run).catch(({ message }: Error) => message);
      expect(error).to.equal("not written");
    }
  });

  it("is full at its maximum number", async () => {
    await addQueuedRuns(1, 150);
    const room = new QueueLimits(db, { maxRuns: 10_000, maxRunsPerApp: 152, maxPayloadBytes: 2 ** 30 });
    expect(await room.reserveCapacity(1, 2)).to.equal(true);
    await addQueuedRuns(1, 1);
    expect(await room.reserveCapacity(1, 2)).to.equal(true);
    await addQueuedRuns(1, 1);
    expect(await room.reserveCapacity(1, 2)).to.equal(false);
    expect(await room.reserveCapacity(2, 2)).to.equal(true);
  });
});
