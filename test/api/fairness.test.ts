import { expect } from "chai";
import { hashToken } from "../../src/operations/access/tokens.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const WAIT_CODE =
  "async function execute({ payload }) { await new Promise((r) => setTimeout(r, payload.ms)); return 'done'; }";

describe("the slots of a runner", () => {
  let service: TestService;
  let other: number;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1", QUEUE_MAX_PER_APP: "1000" });
    other = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } })).body.app.id;
    for (const app of [1, other]) {
      const body = { name: "wait", code: WAIT_CODE, active: true, triggers: [{ trigger: "manual" }] };
      await service.rest("POST", `/v3/apps/${app}/actions`, { as: "admin", body });
    }
  });
  after(() => service.stop());

  const states = async (): Promise<string[]> =>
    (await service.db.query("SELECT DISTINCT state FROM run ORDER BY state")).map(
      (row: { state: string }) => row.state,
    );

  it("are never all used by one app; its further runs wait, and all run", async () => {
    const start = (ms: number) => service.rest("POST", "/v3/apps/1/actions/wait/run", { body: { ms } });
    const { http, body } = await start(60_000);
    expect(http).to.equal(202);
    for (let count = 0; count < 4; count += 1) expect((await start(10)).http).to.equal(202);
    const path = `/v3/apps/${other}/actions/wait/runWithResult`;
    const answer = await service.rest("POST", path, { as: "admin", body: { ms: 1 } });
    expect(answer.body.result).to.equal("done");
    expect(await states())
      .to.include("running")
      .and.to.include("queued");
    await service.rest("POST", `/v3/apps/1/runs/${body.runId}/cancel`);
    await until(async () => !/queued|running/.test((await states()).join()));
    const [{ count }] = await service.db.query("SELECT count(*) FROM execution_log WHERE app_id = 1");
    expect(count).to.equal(5);
  });

  it("reject a run before accepting it when too many wait", async () => {
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
       SELECT 1, 1, 'master', 'manual', '{"ms": 60000}', 'queued' FROM generate_series(1, 1002)`,
    );
    // The app has one slot, so at most one of the 1,002 runs leaves the queue. The queue stays above its limit of 1,000 runs.
    await service.rest("POST", "/v3/apps/1/actions/wait/run", { body: { ms: 60_000 } });
    const answer = await service.rest("POST", "/v3/apps/1/actions/wait/run", { body: { ms: 60_000 } });
    expect(answer.http).to.equal(503);
    expect(answer.body.status).to.equal("OVERLOADED");
    expect(Number(answer.headers.get("retry-after"))).to.be.greaterThan(0);
    const [{ count }] = await service.db.query("SELECT count(*) FROM run WHERE state IN ('queued', 'running')");
    expect(count).to.be.within(1_002, 1_003);
    await until(async () => (await states()).includes("running"));
    await service.db.query("DELETE FROM run WHERE state = 'queued'");
    const [{ id }] = await service.db.query("SELECT id FROM run WHERE state = 'running'");
    expect((await service.rest("POST", `/v3/apps/1/runs/${id}/cancel`)).body.status).to.equal("RUN_CANCELLED");
    await until(async () => !(await states()).includes("running"));
  });

  it("are released by a run that its caller cancels, with one log entry about it", async () => {
    const { runId } = (await service.rest("POST", "/v3/apps/1/actions/wait/run", { body: { ms: 60_000 } })).body;
    const cancelled = await service.rest("POST", `/v3/apps/1/runs/${runId}/cancel`);
    expect(cancelled.http).to.equal(200);
    const entries = await service.db.query("SELECT type, data FROM execution_log WHERE run_id = $1", [runId]);
    expect(entries).to.have.length(1);
    expect(entries[0].type).to.equal("app.task.failed");
    expect(entries[0].data.error.name).to.equal("CancelledError");
    const again = await service.rest("POST", `/v3/apps/1/runs/${runId}/cancel`);
    expect([again.http, again.body.status]).to.deep.equal([409, "RUN_NOT_CANCELLABLE"]);
    const foreign = await service.rest("POST", `/v3/apps/1/runs/${runId}/cancel`, { as: "viewer" });
    expect([foreign.http, foreign.body.status]).to.deep.equal([403, "FORBIDDEN"]);
    const tokenOf = async () =>
      (await service.rest("POST", "/v1/apps/1/tokens", { body: { kind: "api", name: "own" } })).body.token as string;
    const [firstToken, secondToken] = [await tokenOf(), await tokenOf()];
    const [{ id: runOfFirst }] = await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, credential_id)
       SELECT 1, 1, 'master', 'manual', '{"ms": 60000}', 'queued', id FROM credential WHERE hash = $1 RETURNING id`,
      [hashToken(firstToken)],
    );
    const cancelBySecondToken = await service.rest("POST", `/v3/apps/1/runs/${runOfFirst}/cancel`, { as: secondToken });
    expect([cancelBySecondToken.http, cancelBySecondToken.body.status], "neither token has a person").to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    expect((await service.rest("POST", `/v3/apps/1/runs/${runOfFirst}/cancel`, { as: firstToken })).http).to.equal(200);
    const unknown = await service.rest("POST", "/v3/apps/1/runs/999999/cancel");
    expect([unknown.http, unknown.body.status]).to.deep.equal([404, "RUN_NOT_FOUND"]);
  });
});

describe("runs that wait for runs", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1" });
  });
  after(() => service.stop());

  async function create(name: string, body: string): Promise<void> {
    const code = `async function execute({ payload }) { ${body} }`;
    const fields = { name, code, active: true, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", "/v3/apps/1/actions", { body: fields })).http).to.equal(201);
  }

  it("can run although the waiting run uses the only slot of the runner", async () => {
    await create("inner", "return 'inner'");
    await create("outer", "return Svc.App.V3.Actions.runWithResult('inner')");
    const { body } = await service.rest("POST", "/v3/apps/1/actions/outer/runWithResult", { body: {} });
    expect(body.result).to.equal("inner");
  });

  longTest("are rejected when they are more than eight deep", async () => {
    await create("mirror", "return Svc.App.V3.Actions.runWithResult('mirror').catch((error) => error.error)");
    const { body } = await service.rest("POST", "/v3/apps/1/actions/mirror/runWithResult", { body: {} });
    expect(body.result).to.include("recursion");
    const [{ depth }] = await service.db.query("SELECT max(depth) AS depth FROM run");
    expect(depth).to.equal(8);
  });
});
