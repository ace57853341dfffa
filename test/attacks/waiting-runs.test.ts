/** Tests calls that wait for a slot: each has one run and one log entry, and can be listed, cancelled and repeated while it waits. */
import { expect } from "chai";
import { type Call, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SLEEP_CODE = "async function execute() { await new Promise((resolve) => setTimeout(resolve, 100_000)); }";
const QUICK_CODE = "async function execute({ payload }) { return payload.at; }";

describe("callers of one app beyond its slots", () => {
  let service: TestService;
  /** App of the current test. */
  let appId: number;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1", SHUTDOWN_GRACE_MS: "1" });
  });
  after(() => service.stop());

  const request = (method: string, path: string, call: Call = {}) =>
    service.rest(method, `/v3/apps/${appId}${path}`, { as: "admin", ...call });
  const ask = (name: string, body: object = {}, headers: Record<string, string> = {}) =>
    request("POST", `/actions/${name}/runWithResult`, { body, headers });
  const cancel = (id: number) => request("POST", `/runs/${id}/cancel`);

  async function idsIn(state: "queued" | "running"): Promise<number[]> {
    const { runs } = (await request("GET", `/runs?state=${state}`)).body;
    return runs.map(({ id }: { id: number }) => id);
  }
  const queued = () => idsIn("queued");

  beforeEach(async () => {
    const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "waiting" } })).body;
    appId = app.id;
    for (const [name, code] of Object.entries({ sleep: SLEEP_CODE, quick: QUICK_CODE })) {
      const body = { name, code, active: true, triggers: [{ trigger: "manual" }] };
      expect((await request("POST", "/actions", { body })).http).to.equal(201);
    }
  });
  afterEach(async () => {
    for (const id of [...(await queued()), ...(await idsIn("running"))]) await cancel(id);
    await until(async () => (await idsIn("running")).length === 0);
  });

  /** Starts a run that sleeps in the only slot that the app can use. */
  async function fillSlot(): Promise<void> {
    expect((await request("POST", "/actions/sleep/run")).http).to.equal(202);
  }

  it("all get a response, each with its own result, one row and one log entry", async () => {
    const requests = Array.from({ length: 40 }, (_, at) => ask("quick", { at }));
    const answers = await Promise.all(requests);
    expect(answers.map(({ body }) => body.result)).to.deep.equal(answers.map((_, at) => at));
    const [counts] = await service.db.query(
      `SELECT count(*) AS runs, count(*) FILTER (WHERE state = 'completed') AS completed,
              count(DISTINCT execution_log.id) AS entries
         FROM run JOIN execution_log ON run_id = run.id WHERE run.app_id = $1`,
      [appId],
    );
    expect(counts).to.deep.equal({ runs: 40, completed: 40, entries: 40 });
  });

  it("are in the list of runs while those before them sleep, and can be cancelled there", async () => {
    await fillSlot();
    const answer = ask("quick", { at: 1 });
    const [id] = await until(async () => ((await queued()).length > 0 ? queued() : null));
    expect((await cancel(id!)).body.status).to.equal("RUN_CANCELLED");
    const { http, body } = await answer;
    expect([http, body.status, body.runId]).to.deep.equal([500, "EXECUTION_FAILED", id]);
    expect(body.error).to.contain("CancelledError");
  });

  it("are queued at once if they have an idempotency key, so that a repeat finds the same run", async () => {
    await fillSlot();
    const key = { "idempotency-key": "once" };
    const answers = [ask("quick", { at: 1 }, key), ask("quick", { at: 1 }, key)];
    const [id] = await until(async () => ((await queued()).length > 0 ? queued() : null));
    const [holder] = await idsIn("running");
    await cancel(holder!);
    for (const { body } of await Promise.all(answers)) expect([body.runId, body.result]).to.deep.equal([id, 1]);
    const [{ runs }] = await service.db.query(
      "SELECT count(*) AS runs FROM run WHERE app_id = $1 AND idempotency_key = 'once'",
      [appId],
    );
    expect(runs).to.equal(1);
  });

  it("get the result of the accepted run, even if its action is switched off while they wait", async () => {
    await fillSlot();
    const answer = ask("quick", { at: 1 });
    await until(async () => (await queued()).length > 0);
    const { actions } = (await request("GET", "/actions")).body;
    const { id } = actions.find(({ name }: { name: string }) => name === "quick");
    const { http } = await request("PUT", `/actions/${id}`, { body: { active: false } });
    expect(http).to.equal(200);
    const [sleeping] = await idsIn("running");
    await cancel(sleeping!);
    expect((await answer).body.result).to.equal(1);
    expect((await ask("quick", { at: 2 })).body.status).to.equal("ACTION_INACTIVE");
  });

  it("have their queued run cancelled when they disconnect, unless they have an idempotency key", async () => {
    await fillSlot();
    const callers = new AbortController();
    for (const key of [null, "again"]) {
      const headers = { "auth-token": service.tokens.admin, ...(key !== null && { "idempotency-key": key }) };
      const url = `${service.url}/v3/apps/${appId}/actions/quick/runWithResult`;
      void fetch(url, { method: "POST", headers, signal: callers.signal }).catch(() => undefined);
    }
    await until(async () => (await queued()).length === 2);
    callers.abort();
    await until(async () => (await queued()).length === 1);
    const found = await service.db.query(
      "SELECT state, idempotency_key AS key FROM run WHERE app_id = $1 AND state <> 'running' ORDER BY key",
      [appId],
    );
    expect(found).to.deep.equal([
      { state: "queued", key: "again" },
      { state: "cancelled", key: null },
    ]);
  });
});
