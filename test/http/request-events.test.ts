/** Tests which repeated events of HTTP triggers start another run, and the rate limits of requests to these triggers. */
import { expect } from "chai";
import { HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR, RATE_WINDOW_MS } from "../../src/limits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { KEY_SETTINGS, SAMPLES } from "./signed-samples.js";
import { makeAction, publishApp, type Received, type Sent, send } from "./support.js";

const NO_AUTH = { type: "none" } as const;

describe("requests to HTTP triggers, as events", () => {
  let service: TestService;
  const live = (path: string, sent?: Sent): Promise<Received> => send(service.url, `/h/${service.appId}/${path}`, sent);
  const post = (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
    live(path, { method: "POST", body, headers });
  const settings = (body: object) => service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
  const runsOf = async (id: number): Promise<number> => {
    const [row] = await service.db.query(
      "SELECT count(*)::int AS runs FROM run JOIN action ON action.id = run.action_id WHERE coalesce(master_id, action.id) = $1",
      [id],
    );
    return row.runs;
  };

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
    await publishApp(service);
    expect((await settings(KEY_SETTINGS)).http).to.equal(200);
  });
  after(() => service.stop());

  describe("events", () => {
    const event = (name: string, body: string) => {
      const sample = SAMPLES.find((candidate) => candidate.name === name)!;
      return sample.make(body, service.url, Math.floor(Date.now() / 1000));
    };

    it("run once; a repeat gets the same response; at another trigger it is another event", async () => {
      const { auth } = SAMPLES.find(({ name }) => name === "stripe")!;
      const code = `async function execute() { return Svc.App.V3.Actions.response({ status: 201, headers: { "X-Run": String(Math.random()) }, body: "done" }); }`;
      const { id } = await makeAction(service, { method: "POST", path: "events/a", auth }, { code });
      await makeAction(service, { method: "POST", path: "events/b", auth }, { code });
      const { body, headers } = event("stripe", '{"id":"evt_once"}');
      const first = await post("events/a", body, headers);
      expect([first.http, first.text, first.headers["svc-replayed"]]).to.deep.equal([201, "done", undefined]);
      const later = event("stripe", '{"id":"evt_once","attempt":2}');
      const second = await post("events/a", later.body, later.headers);
      expect(second.headers["svc-replayed"]).to.equal("true");
      for (const name of ["x-run", "svc-run-id", "content-type"]) {
        expect(second.headers[name], name).to.equal(first.headers[name]);
      }
      expect([second.http, second.text]).to.deep.equal([201, "done"]);
      expect(await runsOf(id)).to.equal(1);
      const elsewhere = await post("events/b", body, headers);
      expect(elsewhere.headers["svc-replayed"]).to.equal(undefined);
      await service.db.query("UPDATE http_event SET created_at = now() - interval '24 hours 1 minute'");
      expect((await post("events/a", body, headers)).headers["svc-replayed"], "a day later").to.equal(undefined);
    });

    it("run again after a failure, and after a response that was not 2xx", async () => {
      const code = `async function execute({ payload }) {
        const { fails } = payload.request.body;
        if (fails === "throw") throw new Error("the author's message");
        if (fails === "answer") return Svc.App.V3.Actions.response({ status: 503 });
        return "well";
      }`;
      const where = { method: "POST", path: "again", auth: NO_AUTH, idempotencyHeader: "X-Event" } as const;
      await makeAction(service, where, { code });
      const attempt = (fails: string) =>
        post("again", JSON.stringify({ fails }), { "content-type": "application/json", "x-event": "1" });
      expect((await attempt("throw")).http).to.equal(500);
      expect((await attempt("answer")).http).to.equal(503);
      expect((await attempt("")).json).to.equal("well");
      const repeat = await attempt("throw");
      expect([repeat.http, repeat.json, repeat.headers["svc-replayed"]]).to.deep.equal([200, "well", "true"]);
    });

    it("are recognized after the action was unpublished and published again", async () => {
      const where = { method: "POST", path: "back", auth: NO_AUTH, idempotencyHeader: "X-Event" } as const;
      const { id } = await makeAction(service, where);
      const first = await post("back", "x", { "x-event": "1" });
      const path = `/v3/apps/${service.appId}/actions/${id}`;
      for (const change of ["unpublish", "publish"]) await service.rest("POST", `${path}/${change}`);
      const second = await post("back", "x", { "x-event": "1" });
      expect([second.text, second.headers["svc-replayed"]]).to.deep.equal([first.text, "true"]);
      expect(await runsOf(id)).to.equal(1);
    });

    it("that are sent concurrently run once: the others wait for the first", async () => {
      const code =
        "async function execute() { await new Promise((end) => setTimeout(end, 300)); return Math.random(); }";
      const where = { method: "POST", path: "together", auth: NO_AUTH, idempotencyHeader: "X-Event" } as const;
      const { id } = await makeAction(service, where, { code });
      const all = await Promise.all(Array.from({ length: 8 }, () => post("together", "", { "x-event": "same" })));
      expect(new Set(all.map(({ text }) => text)).size).to.equal(1);
      expect(all.filter(({ headers }) => headers["svc-replayed"] === "true")).to.have.length(7);
      expect(await runsOf(id)).to.equal(1);
    });

    it("that get an immediate response are stored before it, and recognized again", async () => {
      const where = {
        method: "POST",
        path: "later",
        auth: NO_AUTH,
        respond: "immediately",
        idempotencyHeader: "X-Event",
      } as const;
      const { id } = await makeAction(service, where);
      const first = await post("later", "x", { "x-event": "1" });
      expect(first.http).to.equal(202);
      expect(first.json).to.deep.equal({ runId: Number(first.headers["svc-run-id"]) });
      const [row] = await service.db.query("SELECT trigger, copy FROM run WHERE id = $1", [first.json.runId]);
      expect(row).to.deep.equal({ trigger: "http", copy: "production" });
      const second = await post("later", "x", { "x-event": "1" });
      expect([second.json, second.headers["svc-replayed"]]).to.deep.equal([first.json, "true"]);
      expect(await runsOf(id)).to.equal(1);
    });
  });
});

describe("limits of requests to HTTP triggers", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RATE_LIMIT_HTTP: "3", RATE_LIMIT_RUN: "1" });
    await publishApp(service);
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __login: "a:b" } });
  });
  after(() => service.stop());

  it("belong to an app, separate from those of runs, and count requests that pass the check of the caller", async () => {
    await makeAction(service, { path: "limited", auth: { type: "basic", setting: "__login" } });
    const path = `/h/${service.appId}/limited`;
    const headers = { authorization: `Basic ${Buffer.from("a:b").toString("base64")}` };
    for (let at = 0; at < 6; at += 1) expect((await send(service.url, path)).http).to.equal(401);
    for (let at = 0; at < 3; at += 1) {
      // After a change of the app's secrets, the service reads the password again. The rate limit still counts the request only once.
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __other: `value ${at}` } });
      expect((await send(service.url, path, { headers })).http).to.equal(200);
    }
    const refused = await send(service.url, path, { headers });
    expect([refused.http, refused.json.status]).to.deep.equal([429, "RATE_LIMIT_EXCEEDED"]);
    expect(Number(refused.headers["retry-after"])).to.be.within(1, 60);
    expect(refused.json.nextValidRequestDate).to.match(/^\d{4}-/);
    expect((await send(service.url, path)).http, "the response without a credential is still 401").to.equal(401);
    const { id } = await makeAction(service, { path: "manual", auth: NO_AUTH }, { triggers: [{ trigger: "manual" }] });
    const run = await service.rest("POST", `/v3/apps/${service.appId}/actions/${id}/runWithResult`, { body: {} });
    expect(run.http).to.equal(200);
  });

  it("limit one address, whatever happens to its requests", async () => {
    const startedAt = performance.now();
    const statuses: number[] = [];
    // The limit allows another request every two seconds. A slow machine thus sends more requests before the first 429.
    while (!statuses.includes(429)) statuses.push((await send(service.url, `/h/${service.appId}/nowhere`)).http);
    const limit = 3 * HTTP_TRIGGER_ADDRESS_RATE_LIMIT_FACTOR;
    const refilled = ((performance.now() - startedAt) / RATE_WINDOW_MS) * limit;
    expect(new Set(statuses)).to.deep.equal(new Set([404, 429]));
    expect(statuses.length - 1).to.be.at.most(limit + refilled);
  });
});
