/** Tests runs of client actions: pages announce and report them, and each run has one log entry. */
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService, type TokenKind } from "../harness/service.js";
import { until } from "../harness/until.js";
import { clientActions } from "./client-actions.js";

describe("client actions that ran in a browser", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", INTAKE_QUOTA_MB: "2048" });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(() => service.stop());

  const { actions, create, update, publish } = clientActions(() => service);

  const report = (id: number, as: TokenKind | null, body: unknown, headers = {}) =>
    service.rest("POST", `${actions()}/${id}/clientRuns`, { as, body, headers });

  async function entries(id: number) {
    return (await service.rest("POST", `${actions()}/logs`, { body: { id } })).body.logs;
  }

  it("leave one log entry with runOn client and mode on-demand, once for one idempotency key", async () => {
    const id = await create();
    const body = { payload: { type: "analytics.pageView" }, result: { a: 1 }, duration: 12.4 };
    const first = await report(id, "viewer", body, { "Idempotency-Key": "k1" });
    const again = await report(id, "viewer", body, { "Idempotency-Key": "k1" });
    expect(first.http).to.equal(201);
    expect(first.body).to.deep.equal({ status: "RUN_RECORDED", runId: first.body.runId });
    expect(again.body).to.deep.equal(first.body);
    const [entry, ...others] = await entries(id);
    expect(others).to.deep.equal([]);
    expect(entry.type).to.equal("app.task.completed");
    expect(entry.data).to.deep.equal({
      mode: "on-demand",
      runOn: "client",
      taskId: id,
      payload: { type: "analytics.pageView" },
      duration: 12,
      actionVersion: "v3",
      result: { data: { a: 1 }, success: true },
    });
  });

  const start = (id: number, key: string, body: object = {}) =>
    service.rest("POST", `${actions()}/${id}/clientRuns/started`, {
      as: "viewer",
      body,
      headers: { "Idempotency-Key": key },
    });
  const stateOf = async (runId: number) =>
    (await service.db.query("SELECT state FROM run WHERE id = $1", [runId]))[0].state;

  it("are stored from their start, and end by the report with the same key, even if the action has changed", async () => {
    const id = await create();
    const { http, body } = await start(id, "s1", { payload: { n: 1 } });
    expect([http, body.status, await stateOf(body.runId)]).to.deep.equal([201, "RUN_STARTED", "running"]);
    expect((await start(id, "s1", { payload: { n: 1 } })).body.runId).to.equal(body.runId);
    expect(await entries(id)).to.deep.equal([]);
    await update(id, { active: false });
    const ended = await report(id, "viewer", { result: 2, duration: 3 }, { "Idempotency-Key": "s1" });
    expect([ended.http, ended.body.runId]).to.deep.equal([201, body.runId]);
    await report(id, "viewer", { result: 9, duration: 9 }, { "Idempotency-Key": "s1" });
    const logged = await entries(id);
    expect(logged.map(({ data }: { data: object }) => data)).to.deep.equal([
      {
        ...{ mode: "on-demand", runOn: "client", taskId: id, payload: { n: 1 }, duration: 3, actionVersion: "v3" },
        result: { data: 2, success: true },
      },
    ]);
    expect((await start(id, "s1")).body.status).to.equal("ACTION_INACTIVE");
  });

  it("are cancelled at once, and a later report changes nothing", async () => {
    const id = await create();
    const { runId } = (await start(id, "c1")).body;
    const cancelled = await service.rest("POST", `/v3/apps/${service.appId}/runs/${runId}/cancel`);
    expect([cancelled.http, cancelled.body.status, await stateOf(runId)]).to.deep.equal([
      200,
      "RUN_CANCELLED",
      "cancelled",
    ]);
    await report(id, "viewer", { result: 9, duration: 9 }, { "Idempotency-Key": "c1" });
    const logged = await entries(id);
    expect(logged).to.have.length(1);
    expect([logged[0].data.runOn, logged[0].data.error.name]).to.deep.equal(["client", "CancelledError"]);
  });

  it("need an idempotency key at their start, which also ends them", async () => {
    const id = await create();
    const answer = await service.rest("POST", `${actions()}/${id}/clientRuns/started`, { as: "viewer", body: {} });
    expect([answer.http, answer.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
  });

  it("fail if the page reports no end within the limit, and no sooner", async () => {
    const id = await create();
    const earlyRunId = (await start(id, "early")).body.runId;
    const { runId } = (await start(id, "lost", { payload: { n: 2 } })).body;
    // Moves the start of the run `earlyRunId` into the future: this run cannot reach its time limit during the test. Moves the start
    // of the other run 36 s into the past, so that it has exceeded its limit.
    const move = "UPDATE run SET started_at = now() + $2::interval WHERE id = $1";
    await service.db.query(move, [earlyRunId, "2 minutes"]);
    await service.db.query(move, [runId, "-36 seconds"]);
    const [entry, ...others] = await until(async () => {
      const found = await entries(id);
      return found.length > 0 && found;
    });
    expect(others).to.deep.equal([]);
    expect([entry.type, entry.data.runOn, entry.data.payload, entry.data.error.name]).to.deep.equal([
      ...["app.task.failed", "client", { n: 2 }, "TimeoutError"],
    ]);
    expect(await stateOf(earlyRunId)).to.equal("running");
    await report(id, "viewer", { result: 1, duration: 1 }, { "Idempotency-Key": "lost" });
    expect(await entries(id)).to.have.length(1);
    await report(id, "viewer", { result: 1, duration: 1 }, { "Idempotency-Key": "early" });
  });

  longTest("have results of up to 6 MB, and fail with larger ones", async () => {
    const id = await create();
    const sizes = [1, 5.9, 6.1].map((megabytes) => Math.round(megabytes * 2 ** 20));
    for (const size of sizes) {
      const answer = await report(id, "viewer", { payload: {}, result: "x".repeat(size), duration: 1 });
      expect([size, answer.http]).to.deep.equal([size, 201]);
    }
    const logged = (await entries(id)).reverse();
    expect(logged.map(({ data }: { data: { result: { data?: string } } }) => data.result.data?.length)).to.deep.equal([
      ...[sizes[0], sizes[1], undefined],
    ]);
    expect(logged[2].data.error).to.include({ name: "ResultError", message: "the result is larger than 6 MB" });
  });

  describe("whose report is larger than 1 MB", () => {
    const longList = "{},".repeat(400_000).slice(0, -1);
    const post = (id: number, body: string) => report(id, "viewer", body);

    longTest("are not parsed on the main thread, and are stored as they were sent", async () => {
      const id = await create();
      const parse = JSON.parse;
      let longest = 0;
      JSON.parse = (text, reviver) => {
        longest = Math.max(longest, String(text).length);
        return parse(text, reviver);
      };
      try {
        const error = `{"name": "E", "message": "m", "stack": "${"s".repeat(1.5 * 2 ** 20)}"}`;
        for (const outcome of [
          `"result": [${longList}]`,
          `"error": ${error}`,
          `"error": {"name": "E", "message": [${longList}]}`,
        ]) {
          const { http } = await post(id, `{"payload": {"a": 1}, ${outcome}, "duration": 1}`);
          expect(http, outcome.slice(0, 60)).to.equal(outcome.endsWith("]}") ? 400 : 201);
        }
      } finally {
        JSON.parse = parse;
      }
      expect(longest).to.be.below(2 ** 20);
      const [failed, completed] = await entries(id);
      expect(failed.data.error.stack).to.have.length(50_000);
      expect([completed.data.result.data.length, completed.data.payload]).to.deep.equal([400_000, { a: 1 }]);
    });

    for (const [title, body, status] of [
      ["no JSON", `{"result": [${longList}}`, "REQUEST_INVALID"],
      ["too deep", `{"result": ${"[".repeat(600)}${"]".repeat(600)}, "x": [${longList}]}`, "PAYLOAD_INVALID"],
      ["a number beyond a double", `{"result": [1e400, ${longList}], "duration": 1}`, "REQUEST_INVALID"],
      ["a payload that is no object", `{"payload": [${longList}], "duration": 1}`, "PAYLOAD_INVALID"],
      ["an unknown field", `{"resul": 1, "result": [${longList}], "duration": 1}`, "REQUEST_INVALID"],
    ] as const) {
      it(`are rejected for ${title}: ${status}`, async () => {
        const answer = await post(await create(), body);
        expect([answer.http, answer.body.status]).to.deep.equal([400, status]);
      });
    }
  });

  it("fail with the error that the browser reports, cut to a maximum length", async () => {
    const id = await create();
    const error = { name: "TypeError", message: "m".repeat(20_000), stack: "s".repeat(200_000) };
    expect((await report(id, "viewer", { payload: {}, error, duration: 1 })).http).to.equal(201);
    const [entry] = await entries(id);
    expect(entry.type).to.equal("app.task.failed");
    expect(entry.data.error.name).to.equal("TypeError");
    expect(entry.data.error.message).to.have.length(10_000);
    expect(entry.data.error.stack).to.have.length(50_000);
  });

  it("fail as timed out after the limit, whatever the browser reports", async () => {
    const id = await create();
    await report(id, "viewer", { payload: {}, result: "late", duration: 36_000 });
    const [entry] = await entries(id);
    expect(entry.type).to.equal("app.task.failed");
    expect(entry.data.error).to.include({
      name: "TimeoutError",
      message: "the action ran longer than the limit of 30 seconds",
    });
  });

  it("are accepted only from callers who may run the action", async () => {
    const master = await create();
    const production = await publish(master);
    const body = { payload: {}, duration: 1 };
    for (const [id, as, status] of [
      [production, "viewer", "ACTION_NOT_FOUND"],
      [master, "live", "ACTION_NOT_FOUND"],
      [await create({ active: false }), "viewer", "ACTION_INACTIVE"],
      [await create({ environment: "server", triggers: [{ trigger: "manual" }] }), "viewer", "TRIGGER_NOT_ALLOWED"],
      [await create({ triggers: [] }), "viewer", "TRIGGER_NOT_ALLOWED"],
      [master, "api", "FORBIDDEN"],
      [master, null, "UNAUTHORIZED"],
    ] as const) {
      expect((await report(id, as, body)).body.status, `${id} as ${as}`).to.equal(status);
    }
    expect((await report(production, "live", body)).http).to.equal(201);
    expect(await entries(master)).to.deep.equal([]);
  });

  it("are rejected with the name of the invalid field", async () => {
    const id = await create();
    for (const [body, status] of [
      [[], "REQUEST_INVALID"],
      [{ payload: [], duration: 1 }, "PAYLOAD_INVALID"],
      [{ payload: {} }, "REQUEST_INVALID"],
      [{ payload: {}, duration: -1 }, "REQUEST_INVALID"],
      [{ payload: {}, duration: 1, error: "text" }, "REQUEST_INVALID"],
      [{ payload: {}, duration: 1, error: { name: 1 } }, "REQUEST_INVALID"],
      [{ payload: {}, duration: 1, error: {}, result: 1 }, "REQUEST_INVALID"],
    ] as const) {
      expect((await report(id, "viewer", body)).body.status, JSON.stringify(body)).to.equal(status);
    }
  });

  it("cannot be run from the server", async () => {
    const id = await create({ triggers: [{ trigger: "manual" }] });
    const run = await service.rest("POST", `${actions()}/${id}/runWithResult`, { as: "viewer", body: {} });
    expect(run.body.status).to.equal("CLIENT_ACTION_NOT_RUNNABLE");
  });
});
