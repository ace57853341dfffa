/** Tests calls for which no slot is free: the rows of their runs, and calls behind sleeping runs. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SLEEP = "async function execute() { await new Promise((resolve) => setTimeout(resolve, 100_000)); }";
const QUICK_CODE = "async function execute({ payload }) { return payload.at; }";

describe("callers of one app beyond its slots", () => {
  let service: TestService;
  beforeEach(async () => {
    service = await startTestService({ RUNNER_CONCURRENCY: "2", SHUTDOWN_GRACE_MS: "1" });
    for (const [name, code] of Object.entries({ sleep: SLEEP, quick: QUICK_CODE })) {
      const body = { name, code, active: true, triggers: [{ trigger: "manual" }] };
      expect((await service.rest("POST", "/v3/apps/1/actions", { body })).http).to.equal(201);
    }
  });
  afterEach(() => service.stop());

  const ask = (name: string, body: object = {}, headers: Record<string, string> = {}) =>
    service.rest("POST", `/v3/apps/1/actions/${name}/runWithResult`, { body, headers });

  async function fill(): Promise<void> {
    expect((await service.rest("POST", "/v3/apps/1/actions/sleep/run")).http).to.equal(202);
  }

  const queued = async (): Promise<number[]> => {
    const { runs } = (await service.rest("GET", "/v3/apps/1/runs?state=queued")).body;
    return runs.map(({ id }: { id: number }) => id);
  };

  it("all get a response, each with its own result, one row and one log entry", async () => {
    const asked = Array.from({ length: 40 }, (_, at) => ask("quick", { at }));
    const answers = await Promise.all(asked);
    expect(answers.map(({ body }) => body.result)).to.deep.equal(answers.map((_, at) => at));
    const [counts] = await service.db.query(
      `SELECT count(*) AS runs, count(*) FILTER (WHERE state = 'completed') AS completed,
              count(DISTINCT execution_log.id) AS entries
         FROM run JOIN execution_log ON run_id = run.id`,
    );
    expect(counts).to.deep.equal({ runs: 40, completed: 40, entries: 40 });
  });

  it("are in the list of runs while those before them sleep, and can be cancelled there", async () => {
    await fill();
    const answer = ask("quick", { at: 1 });
    const [id] = await until(async () => ((await queued()).length > 0 ? queued() : null));
    expect((await service.rest("POST", `/v3/apps/1/runs/${id}/cancel`)).body.status).to.equal("RUN_CANCELLED");
    const { http, body } = await answer;
    expect([http, body.status, body.runId]).to.deep.equal([500, "EXECUTION_FAILED", id]);
    expect(body.error).to.contain("CancelledError");
  });

  it("are queued at once if they have an idempotency key, so that a repeat finds the same run", async () => {
    await fill();
    const key = { "idempotency-key": "once" };
    const answers = [ask("quick", { at: 1 }, key), ask("quick", { at: 1 }, key)];
    const [id] = await until(async () => ((await queued()).length > 0 ? queued() : null));
    const [{ holder }] = await service.db.query("SELECT id AS holder FROM run WHERE state = 'running'");
    await service.rest("POST", `/v3/apps/1/runs/${holder}/cancel`);
    for (const { body } of await Promise.all(answers)) expect([body.runId, body.result]).to.deep.equal([id, 1]);
    const [{ runs }] = await service.db.query("SELECT count(*) AS runs FROM run WHERE idempotency_key = 'once'");
    expect(runs).to.equal(1);
  });

  it("get the result of the accepted run, even if its action is switched off while they wait", async () => {
    await fill();
    const answer = ask("quick", { at: 1 });
    await until(async () => (await queued()).length > 0);
    const { actions } = (await service.rest("GET", "/v3/apps/1/actions")).body;
    const { id } = actions.find(({ name }: { name: string }) => name === "quick");
    const { http } = await service.rest("PUT", `/v3/apps/1/actions/${id}`, { body: { active: false } });
    expect(http).to.equal(200);
    const [{ sleeping }] = await service.db.query("SELECT id AS sleeping FROM run WHERE state = 'running'");
    await service.rest("POST", `/v3/apps/1/runs/${sleeping}/cancel`);
    expect((await answer).body.result).to.equal(1);
    expect((await ask("quick", { at: 2 })).body.status).to.equal("ACTION_INACTIVE");
  });

  it("have their queued run cancelled when they disconnect, unless they have an idempotency key", async () => {
    await fill();
    const callers = new AbortController();
    for (const key of [null, "again"]) {
      const headers = { "auth-token": service.tokens.editor, ...(key !== null && { "idempotency-key": key }) };
      const url = `${service.url}/v3/apps/1/actions/quick/runWithResult`;
      void fetch(url, { method: "POST", headers, signal: callers.signal }).catch(() => undefined);
    }
    await until(async () => (await queued()).length === 2);
    callers.abort();
    await until(async () => (await queued()).length === 1);
    const found = await service.db.query(
      "SELECT state, idempotency_key AS key FROM run WHERE state <> 'running' ORDER BY key",
    );
    expect(found).to.deep.equal([
      { state: "queued", key: "again" },
      { state: "cancelled", key: null },
    ]);
  });
});
