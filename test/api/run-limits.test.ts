/** Tests an action's run limits from end to end: authors set them, and the service applies them to callers, schedules and events. */
import { expect } from "chai";
import { SCHEDULE_CHANNEL } from "../../src/operations/triggers/trigger-index.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SLEEP_CODE =
  "async function execute({ payload }) { await new Promise((done) => setTimeout(done, payload.ms ?? 600_000)); return payload; }";
const ECHO = "async function execute({ payload }) { return payload; }";
const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };

describe("the limits of an action", () => {
  let service: TestService;
  let actions: string;

  before(async () => {
    service = await startTestService({ RUNNER_CONCURRENCY: "4", SERVER_TIMEOUT_MS: "600000" });
    actions = `/v3/apps/${service.appId}/actions`;
  });
  after(() => service.stop());

  async function create(name: string, fields: object): Promise<number> {
    const { http, body } = await service.rest("POST", actions, {
      body: { name, code: SLEEP_CODE, ...MANUAL, ...fields },
    });
    expect([http, body.status], JSON.stringify(body)).to.deep.equal([201, "ACTION_CREATED"]);
    return body.action.id;
  }
  const run = (name: string, payload: object = {}, more: object = {}) =>
    service.rest("POST", `${actions}/${name}/run`, { body: payload, ...more });
  const result = (name: string, payload: object = {}) =>
    service.rest("POST", `${actions}/${name}/runWithResult`, { body: payload });
  const found = async (id: number) => (await service.rest("GET", `/v3/apps/${service.appId}/runs/${id}`)).body.run;
  const waitForState = (id: number, state: string) => until(async () => (await found(id)).state === state);
  const cancel = (id: number) => service.rest("POST", `/v3/apps/${service.appId}/runs/${id}/cancel`);

  it("are missing in responses if they are not set, and present if they are", async () => {
    const plain = await create("plain", {});
    expect((await service.rest("GET", `${actions}/${plain}`)).body.action).to.not.have.any.keys(
      "concurrency",
      "debounce",
      "timeoutMs",
    );
    const limits = { concurrency: { policy: "queue" }, debounce: { delayMs: 50 }, timeoutMs: 500 };
    const storedLimits = {
      concurrency: { policy: "queue", limit: 1, key: null },
      debounce: { delayMs: 50, maxWaitMs: 500, manual: false },
      timeoutMs: 500,
    };
    const id = await create("limited", limits);
    expect((await service.rest("GET", `${actions}/${id}`)).body.action).to.deep.include(storedLimits);
    await service.rest("PUT", `${actions}/${id}`, { body: { timeoutMs: null, debounce: null } });
    const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
    const first = await service.rest("GET", `${actions}/${id}/versions/${versions.at(-1).id}`);
    expect(first.body.version.data).to.deep.include(storedLimits);
    const restored = await service.rest("POST", `${actions}/${id}/versions/${versions.at(-1).id}/restore`);
    expect(restored.body.action).to.deep.include(storedLimits);
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    expect((await service.rest("POST", `${actions}/${id}/publish`)).body.action).to.deep.include(storedLimits);
    const document = (await service.rest("GET", `${actions}/export`)).body;
    const exported = document.actions.find(({ name }: { name: string }) => name === "limited");
    expect(exported).to.deep.include(storedLimits);
    const cleared = { ...exported, concurrency: null, debounce: null, timeoutMs: null };
    const imported = await service.rest("POST", `${actions}/import`, { body: { ...document, actions: [cleared] } });
    expect(imported.body.updated).to.deep.equal([
      { name: "limited", fields: ["concurrency", "debounce", "timeoutMs"] },
    ]);
    const { data } = await service.graphql(`mutation { updateAction(appId: ${service.appId}, id: ${id}, data:
      { concurrency: { policy: cancel, limit: 2, key: "order.id" } }) { concurrency { policy limit key } debounce { delayMs } timeoutMs } }`);
    expect(data.updateAction).to.deep.equal({
      concurrency: { policy: "cancel", limit: 2, key: "order.id" },
      debounce: null,
      timeoutMs: null,
    });
  });

  for (const [field, fields] of [
    ["concurrency", { concurrency: 1 }],
    ["concurrency.policy", { concurrency: { policy: "wait" } }],
    ["concurrency.limit", { concurrency: { policy: "skip", limit: 0 } }],
    ["concurrency.limit", { concurrency: { policy: "skip", limit: 1e9 } }],
    ["concurrency.key", { concurrency: { policy: "skip", key: "a..b" } }],
    ["concurrency.key", { concurrency: { policy: "skip", key: "a\0b" } }],
    [
      'concurrency.group is not a known field; the nearest known field is "',
      { concurrency: { policy: "skip", group: "x" } },
    ],
    ["concurrency must not", { concurrency: { policy: "skip" }, environment: "client" }],
    ["debounce.delayMs", { debounce: {} }],
    ["debounce.maxWaitMs", { debounce: { delayMs: 50, maxWaitMs: 49 } }],
    ["debounce.manual", { debounce: { delayMs: 50, manual: "yes" } }],
    ["timeoutMs", { timeoutMs: 600_001 }],
    ["timeoutMs", { timeoutMs: "5000" }],
  ] as const) {
    it(`are rejected with the name of the field: ${field} of ${JSON.stringify(fields)}`, async () => {
      const body = { name: "odd", code: ECHO, ...fields };
      const answer = await service.rest("POST", actions, { body });
      expect([answer.http, answer.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(answer.body.error.startsWith(field), answer.body.error).to.equal(true);
    });
  }

  it("end a run after the action's own timeout, which its error names", async () => {
    await create("short", { timeoutMs: 300 });
    const { http, body } = await result("short");
    expect([http, body.status]).to.deep.equal([500, "EXECUTION_FAILED"]);
    expect(body.error).to.include("limit of 0.3 seconds");
  });

  it("skip a run while another one executes: its caller and its row get the reason", async () => {
    await create("skipping", { concurrency: { policy: "skip", key: "who" } });
    const first = (await run("skipping", { who: "a" })).body.runId;
    await waitForState(first, "running");
    const refused = [await run("skipping", { who: "a" }), await result("skipping", { who: "a" })];
    for (const { http, body } of refused) {
      expect([http, body.status]).to.deep.equal([409, "RUN_SKIPPED"]);
      expect(await found(body.runId)).to.deep.include({ state: "skipped", waitsFor: null });
    }
    expect((await result("skipping", { who: "b", ms: 1 })).body.result).to.deep.equal({ who: "b", ms: 1 });
    await cancel(first);
    expect((await result("skipping", { who: "a", ms: 1 })).http).to.equal(200);
  });

  it("skip a tick while a run on demand executes: its row has the reason, and metrics count it", async () => {
    const triggers = [{ trigger: "manual" }, { trigger: "schedule" }];
    const concurrency = { policy: "skip", limit: 1, key: null } as const;
    const fields = { name: "ticking", code: SLEEP_CODE, triggers, frequency: "0 4 * * *", concurrency };
    const [copy] = await insertPublishedActions(service.db, service.appId, [fields]);
    const counted = async () => {
      const text = await (await fetch(`${service.url}/metrics`)).text();
      return Number(/^svc_ticks_total\{fate="concurrency"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    const first = (await run("ticking", {}, { as: "live" })).body.runId;
    await waitForState(first, "running");
    expect(await counted()).to.equal(0);
    await service.db.query("UPDATE schedule SET next_tick = now() - interval '1 second' WHERE action_id = $1", [
      copy!.id,
    ]);
    await service.db.query(`SELECT pg_notify('${SCHEDULE_CHANNEL}', '')`);
    const tick = await until(async () => {
      const sql = "SELECT id FROM run WHERE action_id = $1 AND tick IS NOT NULL AND finished_at IS NOT NULL";
      return (await service.db.query(sql, [copy!.id]))[0] ?? null;
    });
    const { state, reason } = await found(tick.id);
    expect([state, reason]).to.deep.equal([
      "skipped",
      "concurrency: the action's limit of concurrent runs was reached",
    ]);
    // The service counts the skipped run in a metric after it has stored the run, so the test waits for the metric.
    await until(async () => (await counted()) === 1);
    await cancel(first);
    await service.db.query("DELETE FROM schedule WHERE action_id = $1", [copy!.id]);
  });

  it("return the skipped run for a repeated key, and run again if the caller asks for it", async () => {
    await create("keyed", { concurrency: { policy: "skip" } });
    const first = (await run("keyed")).body.runId;
    await waitForState(first, "running");
    const headers = { "idempotency-key": "k-1" };
    const skipped = await run("keyed", { ms: 1 }, { headers });
    const again = await run("keyed", { ms: 1 }, { headers });
    expect([skipped.body.status, again.body.status]).to.deep.equal(["RUN_SKIPPED", "RUN_SKIPPED"]);
    expect(again.body.runId).to.equal(skipped.body.runId);
    await cancel(first);
    const retried = await run("keyed", { ms: 1 }, { headers: { ...headers, "idempotency-retry": "failed" } });
    await waitForState(retried.body.runId, "completed");
  });

  it("queue a run behind another one, and return its result to waiting callers", async () => {
    await create("queueing", { concurrency: { policy: "queue" } });
    const first = (await run("queueing")).body.runId;
    await waitForState(first, "running");
    const waiting = (await run("queueing", { ms: 1 })).body.runId;
    expect(await found(waiting)).to.deep.include({ state: "queued", waitsFor: "concurrency" });
    const answer = result("queueing", { n: 3, ms: 1 });
    await cancel(first);
    expect((await answer).body.result).to.deep.equal({ n: 3, ms: 1 });
    await waitForState(waiting, "completed");
  });

  it("cancel the previous run for the next one, and name it", async () => {
    await create("cancelling", { concurrency: { policy: "cancel" } });
    const first = (await run("cancelling")).body.runId;
    await waitForState(first, "running");
    expect((await result("cancelling", { ms: 1 })).http).to.equal(200);
    await waitForState(first, "cancelled");
    expect((await found(first)).log.data.error.message).to.match(/replaced it by run \d+/);
  });

  it("fail a run at once that would wait for a run that waits for it", async () => {
    const SELF_CALLING_CODE = `async function execute({ payload }) {
      if (payload.inner) return 1;
      return Svc.App.V3.Actions.runWithResult("own", { inner: true }).then(() => "no", ({ error }) => error);
    }`;
    await create("own", { code: SELF_CALLING_CODE, concurrency: { policy: "queue" } });
    expect((await result("own")).body.result).to.include("ConcurrencyError");
  });

  /**
   * Sets the debounce delay to 1 ms, so that the run starts soon after the next call. The delay is long until then, so that a slow machine
   * does not start the run too early.
   */
  const shortenDelay = (actionId: number) =>
    service.db.query("UPDATE action SET debounce = jsonb_set(debounce::jsonb, '{delayMs}', '1') WHERE id = $1", [
      actionId,
    ]);

  it("make one run of events that follow each other closely, with the last payload", async () => {
    const debounce = { delayMs: 60_000, maxWaitMs: 120_000, manual: false };
    const triggers = [{ trigger: "log", where: { type: "app.view" } }];
    const [copy] = await insertPublishedActions(service.db, service.appId, [
      { name: "gathering", code: ECHO, triggers, debounce },
    ]);
    const send = (n: number) =>
      service.rest("POST", `/v1/apps/${service.appId}/logs`, { body: { type: "app.view", data: { n } }, as: "api" });
    await Promise.all(Array.from({ length: 20 }, (_, n) => send(n)));
    await shortenDelay(copy!.id);
    expect((await send(99)).http).to.equal(201);
    const runs = async () =>
      (await service.rest("GET", `/v3/apps/${service.appId}/runs?actionId=${copy!.id}`)).body.runs;
    await until(async () => (await runs()).some(({ state }: { state: string }) => state === "completed"));
    const all = await runs();
    expect(all.map(({ state }: { state: string }) => state)).to.deep.equal(["completed"]);
    expect((await found(all[0].id)).log.data.payload.log.data).to.deep.equal({ n: 99 });
  });

  it("limit runs of events by one of their properties", async () => {
    const concurrency = { policy: "skip", limit: 1, key: "log.data.room" } as const;
    const triggers = [{ trigger: "log", where: { type: "app.update" } }];
    const [copy] = await insertPublishedActions(service.db, service.appId, [
      { name: "rooms", code: SLEEP_CODE, triggers, concurrency },
    ]);
    for (const room of [1, 1, 2, 1]) {
      await service.rest("POST", `/v1/apps/${service.appId}/logs`, {
        body: { type: "app.update", data: { room } },
        as: "api",
      });
    }
    const runs = async (): Promise<{ id: number; state: string }[]> =>
      (await service.rest("GET", `/v3/apps/${service.appId}/runs?actionId=${copy!.id}`)).body.runs;
    const states = async () => (await runs()).map(({ state }) => state).sort();
    await until(async () => String(await states()) === "running,running,skipped,skipped");
    for (const { id } of await runs()) await cancel(id);
  });

  it("make one run of a caller's runs on demand if the author asks for it, and return it to each caller", async () => {
    const id = await create("typing", { code: ECHO, debounce: { delayMs: 60_000, maxWaitMs: 120_000, manual: true } });
    const first = (await run("typing", { n: 1 })).body.runId;
    expect((await run("typing", { n: 2 })).body.runId).to.equal(first);
    await shortenDelay(id);
    expect((await result("typing", { n: 3 })).body.result).to.deep.equal({ n: 3 });
    expect((await found(first)).log.data.payload).to.deep.equal({ n: 3 });
  });

  it("keep a debounced run for its other callers if one of them disconnects", async () => {
    const id = await create("shared", { code: ECHO, debounce: { delayMs: 60_000, maxWaitMs: 120_000, manual: true } });
    const leaving = new AbortController();
    const left = fetch(`${service.url}${actions}/shared/runWithResult`, {
      method: "POST",
      headers: { "auth-token": service.tokens.editor, "content-type": "application/json" },
      body: '{"n": 1}',
      signal: leaving.signal,
    }).catch((error: Error) => error.name);
    const first = await until(async () => {
      const { runs } = (await service.rest("GET", `/v3/apps/${service.appId}/runs?actionId=${id}`)).body;
      return runs[0]?.id;
    });
    const remaining = result("shared", { n: 2 });
    await until(async () => {
      const [row] = await service.db.query("SELECT payload::text FROM run WHERE id = $1", [first]);
      return row.payload === '{"n":2}';
    });
    leaving.abort();
    expect(await left).to.equal("AbortError");
    await shortenDelay(id);
    expect((await run("shared", { n: 3 })).body.runId).to.equal(first);
    expect((await remaining).body.result).to.deep.equal({ n: 3 });
  });
});
