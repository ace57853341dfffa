/** Callers beyond the places: what the ledger holds of them, and what becomes of those who wait behind runs that sleep. */
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SLEEP = "async function execute() { await new Promise((resolve) => setTimeout(resolve, 100_000)); }";
const QUICK = "async function execute({ payload }) { return payload.at; }";

describe("callers of one app beyond its places", () => {
  let service: TestService;
  beforeEach(async () => {
    service = await startTestService({ RUNNER_CONCURRENCY: "2", SHUTDOWN_GRACE_MS: "1" });
    for (const [name, code] of Object.entries({ sleep: SLEEP, quick: QUICK })) {
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

  it("are answered in full, each with its own result, one row and one log entry", async () => {
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

  it("are in the list of runs when those before them sleep, and can be cancelled there", async () => {
    await fill();
    const answer = ask("quick", { at: 1 });
    const [id] = await until(async () => ((await queued()).length > 0 ? queued() : null));
    expect((await service.rest("POST", `/v3/apps/1/runs/${id}/cancel`)).body.status).to.equal("RUN_CANCELLED");
    const { http, body } = await answer;
    expect([http, body.status, body.runId]).to.deep.equal([500, "EXECUTION_FAILED", id]);
    expect(body.error).to.contain("CancelledError");
  });

  it("are queued at once when they may ask again, so that the key finds the one run", async () => {
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

  it("have nothing run for them that was switched off while they waited", async () => {
    await fill();
    const answer = ask("quick", { at: 1 });
    const { actions } = (await service.rest("GET", "/v3/apps/1/actions")).body;
    const { id } = actions.find(({ name }: { name: string }) => name === "quick");
    const { http } = await service.rest("PUT", `/v3/apps/1/actions/${id}`, { body: { active: false } });
    expect(http).to.equal(200);
    const { http: refused, body } = await answer;
    expect([refused, body.status]).to.deep.equal([409, "ACTION_INACTIVE"]);
    const [{ runs }] = await service.db.query("SELECT count(*) AS runs FROM run WHERE action_id = $1", [id]);
    expect(runs).to.equal(0);
  });
});
