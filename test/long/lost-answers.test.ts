/**
 * Tests a lost response of the database. The database has assigned a run to this process, but the connection is cut before the response
 * arrives.
 */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import type { RunOutcome } from "../../src/operations/records/execution-logs.js";
import { Dispatcher } from "../../src/operations/runs/dispatcher.js";
import { LOST_OUTCOME } from "../../src/operations/runs/outcomes.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import type { RunRecord } from "../../src/operations/runs/run-types.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { type CuttingProxy, startCuttingProxy } from "../harness/cutting-proxy.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("a run whose claim was committed but whose response was lost", () => {
  let proxy: CuttingProxy;
  let service: TestService;
  let actionId: number;

  before(async () => {
    service = await startTestService({ RUNNER_CONCURRENCY: "1" }, async (url) => {
      proxy = await startCuttingProxy(url);
      return proxy.url;
    });
    const code = "async function execute() { return 7; }";
    const fields = { name: "seven", code, active: true, triggers: [{ trigger: "manual" }] };
    actionId = (await service.rest("POST", "/v3/apps/1/actions", { body: fields })).body.action.id;
  });
  after(async () => {
    await service.stop();
    await proxy.stop();
  });

  const entries = () =>
    service.db.query("SELECT run_id, type, data->'result' AS result FROM execution_log ORDER BY id");

  async function expectCompleted(runId: number): Promise<void> {
    await until(async () => (await entries()).some((entry: { run_id: number }) => entry.run_id === runId));
    const [entry] = (await entries()).filter((candidate: { run_id: number }) => candidate.run_id === runId);
    expect(entry).to.deep.include({ type: "app.task.completed", result: { data: 7, success: true } });
  }

  it("is started anyway if it came from the queue", async () => {
    // Only the response to the claim of this run contains this payload.
    proxy.dropAnswer({ with: "the payload of a run" });
    const queued = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
      VALUES (1, $1, 'master', 'manual', '{"is": "the payload of a run"}', 'queued') RETURNING id`;
    const [{ id }] = await service.db.query(queued, [actionId]);
    await expectCompleted(id);
    expect(proxy.droppedAnswers()).to.equal(1);
  });

  it("is started anyway if it was to start at once, and a repeat with its key gets its result", async () => {
    const headers = { "Idempotency-Key": "once" };
    proxy.dropAnswer({ to: "INSERT INTO run" });
    const first = await service.rest("POST", "/v3/apps/1/actions/seven/runWithResult", { headers });
    expect(first.http).to.equal(503);
    const again = await service.rest("POST", "/v3/apps/1/actions/seven/runWithResult", { headers });
    expect([again.http, again.body.result]).to.deep.equal([200, 7]);
    const [{ count }] = await service.db.query("SELECT count(*) FROM run WHERE idempotency_key = 'once'");
    expect(count).to.equal(1);
  });
});

describe("a run that this process holds and does not execute", () => {
  const holder = randomUUID();
  let database: ConnectedDatabase;
  let db: Db;
  let dispatcher: Dispatcher;
  /** Promise that the dispatcher awaits as the execution of a run. The test settles it. */
  let execution: PromiseWithResolvers<RunOutcome>;
  let run: RunRecord;

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
  });
  beforeEach(async () => {
    execution = Promise.withResolvers();
    const repository = new RunRepository(db);
    const executeRun = () => execution.promise;
    dispatcher = new Dispatcher({ repository, executeRun, processId: holder, concurrency: 1 });
    await db.query("DELETE FROM run");
    const insertHeldRun = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
      VALUES (1, 1, 'master', 'manual', '{}', 'running', $1, now()) RETURNING id`;
    const [{ id }] = await db.query(insertHeldRun, [holder]);
    run = (await repository.find(id))!;
  });
  after(() => database.stop());

  const state = async () => (await db.query("SELECT state FROM run WHERE id = $1", [run.id]))[0].state;
  const execute = () => dispatcher.execute(run, dispatcher.tryAcquireSlot(1)!);

  it("returns to the queue at the second check if this process waits for no response to a claim", async () => {
    expect(await dispatcher.settleHeldRuns()).to.equal(0);
    expect(await dispatcher.settleHeldRuns()).to.equal(1);
    expect(await state()).to.equal("queued");
  });

  it("stays assigned while the response to its claim is still in transit, and after the response has arrived", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const claiming = dispatcher.trackClaim(promise, () => void execute());
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await dispatcher.settleHeldRuns()).to.equal(0);
    resolve();
    await claiming;
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await dispatcher.settleHeldRuns()).to.equal(0);
    expect(await state()).to.equal("running");
  });

  it("never starts again if it was executed and its end could not be written: it ends with the lease of this process", async () => {
    execution.reject(new Error("the database is away"));
    expect(await execute().catch(String)).to.contain("the database is away");
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await dispatcher.settleHeldRuns()).to.equal(0);
    expect(await state()).to.equal("running");
    expect(await new RunRepository(db).finishLost()).to.equal(1);
    const [{ name }] = await db.query("SELECT data->'error'->>'name' AS name FROM execution_log WHERE run_id = $1", [
      run.id,
    ]);
    expect([await state(), name]).to.deep.equal(["failed", "RunLostError"]);
  });

  it("is aborted if another process has ended it", async () => {
    const signals: AbortSignal[] = [];
    const executeRun = (_run: RunRecord, _holder: string, signal: AbortSignal) => {
      signals.push(signal);
      return execution.promise;
    };
    dispatcher = new Dispatcher({ repository: new RunRepository(db), executeRun, processId: holder, concurrency: 1 });
    void execute();
    await dispatcher.settleHeldRuns();
    expect(signals[0]!.aborted).to.equal(false);
    await db.query("UPDATE run SET state = 'failed', holder = NULL, finished_at = now() WHERE id = $1", [run.id]);
    await dispatcher.settleHeldRuns();
    expect([signals[0]!.reason, dispatcher.onRunAwaited(run.id, 0)]).to.deep.equal([LOST_OUTCOME, false]);
  });
});
