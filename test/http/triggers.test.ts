/** Tests HTTP triggers over HTTP: their URLs, the payload of the action, the response, and access. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { ECHO, makeAction, publishApp, type Received, type Sent, send } from "./support.js";

const NONE = { type: "none" } as const;

describe("HTTP triggers", () => {
  let service: TestService;
  let actions: string;
  const live = (path: string, sent?: Sent): Promise<Received> => send(service.url, `/h/${service.appId}/${path}`, sent);
  const draft = (path: string, sent: Sent = {}): Promise<Received> =>
    send(service.url, `/h/${service.appId}/draft/${path}`, {
      ...sent,
      headers: { "auth-token": service.tokens.editor, ...sent.headers },
    });
  const create = (name: string, triggers: unknown[], more: object = {}) =>
    service.rest("POST", actions, { body: { name, code: ECHO, active: true, triggers, ...more } });

  before(async () => {
    service = await useSharedService("api,runner");
    actions = `/v3/apps/${service.appId}/actions`;
    await publishApp(service);
  });
  after(() => service.stop());

  describe("URLs", () => {
    it("run the live version, with the pattern's parameters", async () => {
      await makeAction(service, { method: "GET", path: "orders/:id", auth: NONE });
      const { http, json } = await live("orders/7?a=1&b=2&a=3");
      expect(http).to.equal(200);
      expect(json.trigger).to.equal("http");
      expect(json.request).to.include({ method: "GET", path: "orders/7", body: null, rawBody: "", contentType: null });
      expect(json.request.params).to.deep.equal({ id: "7" });
      expect(json.request.query).to.deep.equal({ a: ["1", "3"], b: "2" });
      expect(json.request.ip).to.match(/127\.0\.0\.1|::1/);
      expect(json.request.requestId).to.match(/^[0-9a-f-]{36}$/);
    });

    it("prefer literal segments from left to right, in any order of creation", async () => {
      const code = (text: string) => `async function execute() { return "${text}"; }`;
      await makeAction(service, { path: ":any/fixed", auth: NONE }, { code: code("parameter first") });
      await makeAction(service, { path: "best/:any", auth: NONE }, { code: code("literal first") });
      await makeAction(service, { path: "best/exact", auth: NONE }, { code: code("exact") });
      expect((await live("best/exact")).json).to.equal("exact");
      expect((await live("best/fixed")).json).to.equal("literal first");
      expect((await live("other/fixed")).json).to.equal("parameter first");
    });

    const PATHS: [path: string, title: string, http: number, params?: object][] = [
      ["values/a%2Fb", "an encoded slash is part of a value", 200, { v: "a/b" }],
      ["values/gr%C3%BC%C3%9Fe", "a value is decoded", 200, { v: "grüße" }],
      ["values/x/", "one slash at the end is ignored", 200, { v: "x" }],
      ["values/%3Aname", "a colon is a value", 200, { v: ":name" }],
      ["values//", "an empty segment matches nothing", 404],
      ["values//x", "an empty segment in the middle matches nothing", 404],
      ["values/..", "dots match nothing", 404],
      ["values/%2e%2e", "encoded dots match nothing", 404],
      ["values/a%00b", "U+0000 matches nothing", 404],
      ["VALUES/x", "case counts", 404],
      ["values/x/y", "a longer path is another", 404],
      ["values", "a shorter path is another", 404],
      ["values/%zz", "a broken escape is a fault of the request", 400],
      ["values/%ff", "bytes that are no UTF-8 are a fault of the request", 400],
      [`values/${"x".repeat(1_025)}`, "a value of more than 1,024 characters matches nothing", 404],
      ["a/b/c/d/e/f/g/h/i/j", "more segments than a pattern can have match nothing", 404],
    ];
    it("are decoded once", async () => {
      await makeAction(service, { path: "values/:v", auth: NONE });
      for (const [path, title, http, params] of PATHS) {
        const answer = await live(path);
        expect(answer.http, title).to.equal(http);
        if (params) expect(answer.json.request.params, title).to.deep.equal(params);
        if (http === 404) expect(answer.json, title).to.include({ status: "NOT_FOUND" });
      }
    });

    it("can have literal segments of any script, in either Unicode form", async () => {
      await makeAction(service, { path: "grüße/日本", auth: NONE });
      const decomposed = encodeURIComponent("gru\u0308ße");
      expect((await live(`${encodeURIComponent("grüße")}/${encodeURIComponent("日本")}`)).http).to.equal(200);
      expect((await live(`${decomposed}/${encodeURIComponent("日本")}`)).http).to.equal(200);
    });

    it("answer another method with 405 and Allow, OPTIONS with 204, and HEAD without a body", async () => {
      await makeAction(service, { method: "GET", path: "methods", auth: NONE });
      await makeAction(service, { method: "POST", path: "methods", auth: NONE });
      const refused = await live("methods", { method: "DELETE" });
      expect(refused.http).to.equal(405);
      expect(refused.json).to.include({ status: "METHOD_NOT_ALLOWED" });
      expect(refused.headers["allow"]!.split(", ")).to.have.members(["GET", "HEAD", "POST", "OPTIONS"]);
      const options = await live("methods", { method: "OPTIONS" });
      expect([options.http, options.headers["allow"]]).to.deep.equal([204, refused.headers["allow"]]);
      const head = await live("methods", { method: "HEAD" });
      expect([head.http, head.text]).to.deep.equal([200, ""]);
      expect(Number(head.headers["content-length"])).to.be.greaterThan(0);
    });

    it("for all methods leave a method to the trigger that names it", async () => {
      const code = (text: string) =>
        `async function execute({ payload }) { return "${text} " + payload.request.method; }`;
      await makeAction(service, { path: "any", auth: NONE }, { code: code("any") });
      await makeAction(service, { method: "PUT", path: "any", auth: NONE }, { code: code("put") });
      expect((await live("any", { method: "PUT" })).json).to.equal("put PUT");
      for (const method of ["GET", "POST", "PATCH", "DELETE"]) {
        expect((await live("any", { method })).json).to.equal(`any ${method}`);
      }
      const { headers } = await live("any", { method: "OPTIONS" });
      const allowed = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
      expect(headers["allow"]!.split(", ")).to.have.members(allowed);
    });

    it("are 404 for an unpublished, inactive or unknown action, and for another app", async () => {
      const { id } = await makeAction(service, { path: "gone", auth: NONE }, { publish: false });
      expect((await live("gone")).http, "unpublished").to.equal(404);
      await service.rest("PUT", `${actions}/${id}`, { body: { active: false } });
      await service.rest("POST", `${actions}/${id}/publish`);
      expect((await live("gone")).http, "inactive").to.equal(404);
      await service.rest("PUT", `${actions}/${id}`, { body: { active: true } });
      await service.rest("POST", `${actions}/${id}/publish`);
      expect((await live("gone")).http, "published").to.equal(200);
      for (const app of [String(service.appId + 1), "0", "x", "9".repeat(30), "-1", "1.0"]) {
        expect((await send(service.url, `/h/${app}/gone`)).http, app).to.equal(404);
      }
      await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
      expect((await live("gone")).http, "app unpublished").to.equal(404);
      await publishApp(service);
      expect((await live("gone")).http, "app published again").to.equal(200);
      await service.rest("POST", `${actions}/${id}/unpublish`);
      expect((await live("gone")).http, "action unpublished").to.equal(404);
    });
  });

  describe("an address that was requested before", () => {
    const returningText = (text: string) => ({ code: `async function execute() { return "${text}"; }` });
    const answer = async (path: string, sent?: Sent) => {
      const { http, json } = await live(path, sent);
      return http === 200 ? json : http;
    };
    const update = async (id: number, where: object) => {
      await service.rest("PUT", `${actions}/${id}`, { body: { triggers: [{ trigger: "http", where }] } });
      expect((await service.rest("POST", `${actions}/${id}/publish`)).http).to.equal(200);
    };

    it("uses a better trigger as soon as it is published, and the other one once it is unpublished", async () => {
      await makeAction(service, { path: "cached/:any", auth: NONE }, returningText("parameter"));
      expect(await answer("cached/exact")).to.equal("parameter");
      const exact = await makeAction(service, { path: "cached/exact", auth: NONE }, returningText("literal"));
      expect(await answer("cached/exact")).to.equal("literal");
      const get = await makeAction(service, { method: "GET", path: "cached/exact", auth: NONE }, returningText("get"));
      expect(await answer("cached/exact")).to.equal("get");
      await service.rest("POST", `${actions}/${get.id}/unpublish`);
      expect(await answer("cached/exact")).to.equal("literal");
      await service.rest("DELETE", `${actions}/${exact.id}`);
      expect(await answer("cached/exact")).to.equal("parameter");
    });

    it("uses the current authentication, response and origins", async () => {
      const headers = { "auth-token": service.tokens.api, origin: "https://a.test" };
      const { id } = await makeAction(service, { path: "changed", auth: NONE }, returningText("ran"));
      const answerOfChanged = () => answer("changed");
      expect(await answerOfChanged()).to.equal("ran");
      await update(id, { path: "changed", auth: { type: "bearer" } });
      expect(await answerOfChanged()).to.equal(401);
      expect(await answer("changed", { headers })).to.equal("ran");
      await update(id, { path: "changed", auth: NONE });
      expect(await answerOfChanged()).to.equal("ran");
      await update(id, { path: "changed", auth: NONE, cors: { origins: ["https://a.test"] } });
      const allowed = async () => (await live("changed", { headers })).headers["access-control-allow-origin"];
      expect(await allowed()).to.equal("https://a.test");
      await update(id, { path: "changed", auth: NONE, respond: "immediately" });
      expect([await answerOfChanged(), await allowed()]).to.deep.equal([202, undefined]);
      await update(id, { method: "POST", path: "changed", auth: NONE });
      expect(await answerOfChanged()).to.equal(405);
      expect(await answer("changed", { method: "POST" })).to.equal("ran");
    });

    it("answers OPTIONS and HEAD by the current triggers", async () => {
      const origin = "https://a.test";
      const preflight = () =>
        live("options", { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST" } });
      const { id } = await makeAction(service, { path: "options", auth: NONE }, returningText("ran"));
      expect(await answer("options")).to.equal("ran");
      await update(id, { path: "options", auth: NONE, cors: { origins: [origin] } });
      expect((await preflight()).headers["access-control-allow-origin"]).to.equal(origin);
      await update(id, { path: "options", auth: NONE });
      expect(await answer("options")).to.equal("ran");
      await service.rest("POST", `${actions}/${id}/unpublish`);
      expect((await preflight()).http).to.equal(404);
      expect((await live("options", { method: "HEAD" })).http).to.equal(404);
    });

    it("uses the current secrets", async () => {
      const settings = (password: string) =>
        service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __cached: `user:${password}` } });
      const basic = (password: string) => ({
        headers: { authorization: `Basic ${Buffer.from(`user:${password}`).toString("base64")}` },
      });
      await settings("first-password");
      const where = { path: "keys", auth: { type: "basic", setting: "__cached" } } as const;
      await makeAction(service, where, returningText("ran"));
      expect(await answer("keys", basic("first-password"))).to.equal("ran");
      await settings("other-password");
      expect(await answer("keys", basic("first-password"))).to.equal(401);
      expect(await answer("keys", basic("other-password"))).to.equal("ran");
      const sealed = await makeAction(service, { path: "sealed", auth: { type: "secret" } }, returningText("ran"));
      const { action } = (await service.rest("GET", `${actions}/${sealed.id}`)).body;
      const path = new URL(action.endpoints[0].url).pathname.split(`/h/${service.appId}/`)[1]!;
      expect(await answer(path)).to.equal("ran");
      await service.rest("POST", `${actions}/${sealed.id}/rotate-secret`);
      expect(await answer(path)).to.equal(404);
    });
  });

  describe("drafts", () => {
    it("run for editors by header, and by cookie only from the service's own pages", async () => {
      await makeAction(service, { path: "drafted", auth: { type: "basic", setting: "__never" } }, { publish: false });
      const path = `/h/${service.appId}/draft/drafted`;
      const { editor, admin, api, live: visitor, viewer } = service.tokens;
      const status = async (headers: Record<string, string>) => (await send(service.url, path, { headers })).http;
      expect(await status({ "auth-token": editor })).to.equal(200);
      expect(await status({ authorization: `Bearer ${admin}` })).to.equal(200);
      expect(await status({})).to.equal(401);
      expect(await status({ "auth-token": "svc_editor_nothing" })).to.equal(401);
      for (const token of [api, visitor, viewer]) expect(await status({ "auth-token": token })).to.equal(403);
      const cookie = `auth_token=${editor}`;
      expect(await status({ cookie, "sec-fetch-site": "same-origin" })).to.equal(200);
      for (const site of ["none", "same-site", "cross-site"]) {
        expect(await status({ cookie, "sec-fetch-site": site }), site).to.equal(401);
      }
      expect(await status({ cookie })).to.equal(401);
    });

    it("answer a preflight, which has no credential, in the same way whether or not they exist", async () => {
      await makeAction(service, { path: "planned", auth: NONE }, { publish: false });
      const headers = { origin: "https://a.test", "access-control-request-method": "POST" };
      const preflight = async (path: string) => {
        const answer = await send(service.url, `/h/${service.appId}/draft/${path}`, { method: "OPTIONS", headers });
        return { ...answer, headers: { ...answer.headers, date: undefined } };
      };
      const answer = await preflight("planned");
      expect(answer.http).to.equal(204);
      expect(await preflight("nowhere")).to.deep.equal(answer);
    });

    it("run the draft, and show the action neither the token nor a cookie", async () => {
      await makeAction(service, { path: "hidden", auth: NONE }, { publish: false });
      const { json } = await draft("hidden", {
        headers: { authorization: "Bearer other", cookie: "a=b", "X-Own": "1" },
      });
      expect(json.request.headers).to.not.have.any.keys("authorization", "cookie", "auth-token");
      expect(json.request.headers).to.include({ "x-own": "1" });
      expect(JSON.stringify(json)).to.not.include(service.tokens.editor);
    });
  });

  it("can have jitterSeconds beside, which applies to schedules", async () => {
    const scheduled = { triggers: [{ trigger: "schedule" }], frequency: "0 9 * * *" };
    const made = await create("jitter", [], { ...scheduled, jitterSeconds: 120 });
    expect([made.http, made.body.action.jitterSeconds]).to.deep.equal([201, 120]);
    const path = `${actions}/${made.body.action.id}`;
    const { errors, data } = await service.graphql(
      `mutation ($app: Int!, $id: Int!) { updateAction(appId: $app, id: $id, data: { jitterSeconds: 300 }) { jitterSeconds } }`,
      { app: service.appId, id: made.body.action.id },
    );
    expect([errors, data?.updateAction.jitterSeconds]).to.deep.equal([undefined, 300]);
    const exported = await service.rest("GET", `${actions}/export`);
    const entry = exported.body.actions.find(({ name }: { name: string }) => name === "jitter");
    expect(entry.jitterSeconds).to.equal(300);
    const { body } = await service.rest("GET", `${path}/versions`);
    const oldest = await service.rest("POST", `${path}/versions/${body.versions.at(-1).id}/restore`);
    expect(oldest.body.action.jitterSeconds).to.equal(120);
    for (const jitterSeconds of [-1, 301, 1.5, "5", true]) {
      const refused = await service.rest("PUT", path, { body: { jitterSeconds } });
      expect(refused.body.status, String(jitterSeconds)).to.equal("REQUEST_INVALID");
      expect(refused.body.error).to.match(/^jitterSeconds must be a whole number from 0 to 300/);
    }
    const without = await service.rest("PUT", path, { body: { triggers: [{ trigger: "manual" }] } });
    expect(without.body.error).to.match(/^jitterSeconds must be 0 or null for an action without a schedule trigger/);
    for (const none of [0, null]) {
      const cleared = await service.rest("PUT", path, { body: { jitterSeconds: none } });
      expect(cleared.body.action).to.not.have.property("jitterSeconds");
    }
  });
});
