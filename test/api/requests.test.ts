/** Tests requests of server actions to other services from end to end: the allowed origins of an action, and what its code may send. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const ECHO = "async function execute({ payload }) { return payload; }";
const MANUAL = { active: true, triggers: [{ trigger: "manual" }] };

describe("requests of server actions", () => {
  let service: TestService;
  let actions: string;
  let undoTrust: () => void;
  let origin: string;
  let answer: RequestListener;
  let received: (IncomingMessage & { text: string })[];

  const server = tlsServer(async (request, response) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += part;
    received.push(Object.assign(request, { text }));
    answer(request, response);
  });

  before(async () => {
    undoTrust = trustLocalhost();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
    actions = `/v3/apps/${service.appId}/actions`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(async () => {
    await service.stop();
    server.closeAllConnections();
    server.close();
    undoTrust();
  });
  beforeEach(() => {
    received = [];
    answer = (request, response) => response.setHeader("x-path", request.url!).end("fine");
  });

  async function create(name: string, fields: object = {}): Promise<number> {
    const { http, body } = await service.rest("POST", actions, { body: { name, code: ECHO, ...MANUAL, ...fields } });
    expect([http, body.status], JSON.stringify(body)).to.deep.equal([201, "ACTION_CREATED"]);
    return body.action.id;
  }

  let made = 0;
  async function run(body: string, fields: object = {}, payload: object = {}) {
    made += 1;
    const name = `request-${made}`;
    await create(name, {
      code: `async function execute({ payload, settings }) { ${body} }`,
      integrationOrigins: [origin],
      ...fields,
    });
    const { body: result } = await service.rest("POST", `${actions}/${name}/runWithResult`, {
      body: { origin, ...payload },
    });
    return result;
  }
  const details = async (runId: number) =>
    (await service.rest("GET", `/v3/apps/${service.appId}/runs/${runId}`)).body.run;
  const code = async (options: string, fields: object = {}) =>
    (
      await run(
        `try { await Svc.App.V3.Actions.request(${options}); } catch (error) {
           return [error instanceof Error, error.code, error.message]; }`,
        fields,
      )
    ).result;

  // The service selects a run's sandbox by the globals in its code. So the test adds the second text to the code of each action.
  const sandboxes = [
    ["network-isolate", ""],
    ["document", "document.title;"],
    ["document", "void Svc.configure;"],
  ] as const;
  for (const [mode, feature] of sampleOf(sandboxes, 0, 3)) {
    describe(`request() in the sandbox ${mode} (${feature})`, () => {
      it("resolves with status, headers, body, ok and json() for every status", async () => {
        answer = (_request, response) =>
          response.writeHead(404, { "content-type": "application/json", "set-cookie": "a=1" }).end('{"a":"ü"}');
        const { result, runId, ...rest } = await run(`${feature}
          const response = await Svc.App.V3.Actions.request({ url: payload.origin + "/p", query: { q: "x y" } });
          return { ...response, json: response.json(), keys: Object.keys(response.headers) }`);
        expect(result, JSON.stringify(rest)).to.deep.include({
          status: 404,
          ok: false,
          body: '{"a":"ü"}',
          json: { a: "ü" },
        });
        expect(result.keys).to.include("content-type").and.not.include("set-cookie");
        expect(received[0]!.url).to.equal("/p?q=x+y");
        expect(received[0]!.headers).to.not.have.any.keys("origin", "cookie", "referer", "auth-token");
        const found = await details(runId);
        expect(found.sandbox).to.equal(mode);
        expect(found.hosts).to.include(new URL(origin).host);
        const [{ durationMs, ...request }] = found.requests;
        expect(durationMs).to.be.a("number");
        const host = new URL(origin).host;
        const sizes = { sentBytes: 0, receivedBytes: 10 };
        expect(request).to.deep.equal({ host, method: "GET", status: 404, ...sizes, code: null });
      });

      it("sends text, bytes, JSON and forms, and returns JSON and bytes of any size", async () => {
        answer = (request, response) =>
          response.setHeader("content-encoding", "gzip").end(gzipSync(`"${request.method}"`));
        const { result, error } = await run(`${feature}
          const { request } = Svc.App.V3.Actions;
          const send = (options) => request({ url: payload.origin, method: "POST", responseType: "json", ...options });
          const text = await send({ body: "grüße" });
          await send({ body: new Uint8Array([0, 255, 10]).subarray(1) });
          await send({ method: "PUT", json: { a: [1] } });
          await send({ form: new URLSearchParams("a=1&a=2&b=3") });
          await send({ body: "x".repeat(1024 * 1024) });
          await send({ body: new URLSearchParams("a=1&a=2") });
          await send({ body: new URLSearchParams("a=1"), headers: { "content-type": "text/csv" } });
          return text.body;`);
        expect(result, error).to.equal("POST");
        expect(received.map(({ text }) => text.slice(0, 10))).to.deep.equal([
          ...["grüße", "\ufffd\n", '{"a":[1]}', "a=1&a=2&b=", "xxxxxxxxxx", "a=1&a=2", "a=1"],
        ]);
        expect(received[4]!.text).to.have.length(1024 * 1024);
        expect(received[2]!.headers["content-type"]).to.equal("application/json");
        const form = "application/x-www-form-urlencoded;charset=UTF-8";
        const sent = received.map(({ text, headers }) => [text.slice(0, 10), headers["content-type"]]);
        expect(sent.slice(5)).to.deep.equal([
          ["a=1&a=2", form],
          ["a=1", "text/csv"],
        ]);
        const bytes = Buffer.alloc(5 * 1024 * 1024, "grüße\u{1f600}");
        answer = (_request, response) => response.end(bytes);
        const long = await run(`${feature}
          const { request } = Svc.App.V3.Actions;
          const { body } = await request({ url: payload.origin, responseType: "bytes" });
          const text = (await request({ url: payload.origin })).body;
          return [body instanceof Uint8Array, body.length, text === new TextDecoder().decode(body)];`);
        expect(long.result, long.error).to.deep.equal([true, bytes.length, true]);
      });

      it("sends eight at once and queues more, and ends with the run", async () => {
        const respondLater: (() => void)[] = [];
        let isReleased = false;
        answer = (_request, response) => {
          if (isReleased) return response.end("x");
          respondLater.push(() => response.end("x"));
          if (respondLater.length < 8) return;
          // If the service sent more than eight requests at once, the ninth request would arrive within 100 ms.
          setTimeout(() => {
            isReleased = true;
            for (const end of respondLater) end();
          }, 100);
        };
        const all = `${feature} const { request } = Svc.App.V3.Actions;
          const all = Array.from({ length: 30 }, () => request({ url: payload.origin }));`;
        const { result } = await run(`${all} return (await Promise.all(all)).length;`);
        expect([result, respondLater.length]).to.deep.equal([30, 8]);
        let isOpen = false;
        const closed = new Promise<void>((resolve) => {
          // The server answers each request except the first. That request is still open when the run ends.
          answer = (request, response) => {
            if (isOpen) return response.end("x");
            isOpen = true;
            request.socket.once("close", resolve);
          };
        });
        const ended = await run(`${all} await Promise.race(all); return 1;`);
        expect([ended.result, isOpen]).to.deep.equal([1, true]);
        await closed;
      });

      it("rejects with an Error and its code, and runs nothing without a listed origin", async () => {
        const policy = await run(
          `${feature} try { await Svc.App.V3.Actions.request({ url: payload.origin }); } catch (error) {
             return [error instanceof Error, error.code, error.message]; }`,
          { integrationOrigins: [] },
        );
        const message = `${origin} is not allowed for this action: add it to the action's integrationOrigins`;
        expect(policy.result).to.deep.equal([true, "POLICY", message]);
        expect(received).to.deep.equal([]);
      });

      it("reads settings by Svc.App.Settings.get", async () => {
        await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { _list: { a: [1] } } });
        const { result, error } = await run(`${feature}
          const { Settings } = Svc.App; return [Svc.App.Settings.get("_list"), Settings.get("_none") === undefined, Settings.get("toString") === undefined]`);
        expect(result, error).to.deep.equal([{ a: [1] }, true, true]);
      });
    });
  }

  it("fail with the code of the contract, and a message that names the origin", async () => {
    const FAULTY_OPTIONS: readonly [options: string, code: string][] = [
      ['{ url: payload.origin, headers: { Cookie: "a=1" } }', "POLICY"],
      ['{ url: payload.origin, method: "TRACE" }', "POLICY"],
      ["{ url: payload.origin, bodies: 1 }", "POLICY"],
      ['{ url: payload.origin, responseType: "xml" }', "POLICY"],
      ["{ url: payload.origin, timeoutMs: 1e9 }", "POLICY"],
      ["{ url: payload.origin, retry: 1 }", "POLICY"],
      ['{ url: payload.origin, auth: "__none" }', "POLICY"],
      ['{ url: payload.origin, method: "POST", body: "x".repeat(2 ** 20 + 1) }', "LIMIT"],
      ['{ url: payload.origin, responseType: "json" }', "TRANSPORT"],
    ];
    answer = (_request, response) => response.end("no JSON");
    for (const [options, expected] of FAULTY_OPTIONS) {
      const [, found, message] = await code(options);
      expect(found, options).to.equal(expected);
      expect(message, options).to.include(origin);
    }
    expect((await code("undefined"))[1]).to.equal("POLICY");
    answer = () => undefined;
    expect((await code("{ url: payload.origin, timeoutMs: 100 }"))[1]).to.equal("TIMEOUT");
    answer = (_request, response) => response.setHeader("content-type", "text/plain; charset=none-such").end("x");
    expect((await code("{ url: payload.origin }"))[1]).to.equal("UNSUPPORTED");
    answer = (_request, response) => response.destroy();
    expect((await code("{ url: payload.origin }"))[1]).to.equal("TRANSPORT");
    // The other server chooses a redirect's target, and could put data into it. So the error must not contain the target.
    answer = (_request, response) => response.writeHead(302, { location: "https://elsewhere.example/" }).end();
    const [, refused, reason] = await code("{ url: payload.origin }");
    expect(refused).to.equal("POLICY");
    expect(reason).to.include(origin).and.include("a redirect").and.not.include("elsewhere");
    const any = await code("{ url: payload.origin }", { environment: "any", integrationOrigins: [] });
    expect(any[1]).to.equal("INTEGRATION_UNAVAILABLE");
    expect(any[2]).to.include(origin);
  });

  it("reject private settings in URLs, and allow them in headers and bodies", async () => {
    const value = "a private value of some length";
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __key: value } });
    const [, refused, message] = await code("{ url: payload.origin, query: { k: settings.__key } }");
    expect(refused).to.equal("POLICY");
    expect(message).to.include("__key").and.not.include(value);
    expect(received).to.have.length(0);
    await run(
      `await Svc.App.V3.Actions.request({ url: payload.origin, method: "POST", body: settings.__key, headers: { "x-key": settings.__key } });`,
    );
    expect([received[0]!.text, received[0]!.headers["x-key"]]).to.deep.equal([value, value]);
  });

  it("reject private settings in URLs that were set during the run, by whichever way code received them", async () => {
    // `fetch` runs in Chromium, which does not trust the certificate of the TLS server. So this server does not use TLS.
    const plainServer = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1");
    await once(plainServer, "listening");
    const plain = `http://127.0.0.1:${(plainServer.address() as AddressInfo).port}`;
    const requestCodes = [
      "(await Svc.App.V3.Actions.request({ url: payload.origin })).body",
      "await (await fetch(payload.plain)).text()",
      "(await Svc.App.V3.Actions.request({ url: payload.origin + '/redirect' })).body",
      // Without a body, the other server can still pass data to the code: by when or how the request fails.
      "await Svc.App.V3.Actions.request({ url: payload.origin + '/failure' }).catch(() => payload.known)",
    ];
    try {
      for (const [at, requestCode] of requestCodes.entries()) {
        const value = `a later value of some length ${at}`;
        received = [];
        answer = async ({ url }, response) => {
          await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { _late: value } });
          response.setHeader("access-control-allow-origin", "*");
          if (url === "/failure") return response.destroy();
          if (url === "/redirect") response.writeHead(302, { location: `/?k=${encodeURIComponent(value)}` });
          response.end(value);
        };
        const { result, error } = await run(
          `try { await Svc.App.V3.Actions.request({ url: payload.origin, query: { k: ${requestCode} } });
           } catch (error) { return [error.code, error.message.includes("_late")]; }`,
          {},
          { plain, known: value },
        );
        expect(result, `${requestCode}: ${error}`).to.deep.equal(["POLICY", true]);
        expect(received.filter(({ url }) => url!.includes("?"))).to.deep.equal([]);
      }
    } finally {
      plainServer.closeAllConnections();
      plainServer.close();
    }
  });

  it("use the origins of the version that runs", async () => {
    const id = await create("copies", {
      code: "async function execute({ payload }) { return (await Svc.App.V3.Actions.request({ url: payload.origin })).status; }",
      integrationOrigins: [origin],
    });
    await service.rest("POST", `${actions}/${id}/publish`);
    await service.rest("PUT", `${actions}/${id}`, { body: { integrationOrigins: [] } });
    const by = (as: "editor" | "api") =>
      service.rest("POST", `${actions}/copies/runWithResult`, { as, body: { origin } });
    expect((await by("api")).body.result).to.equal(200);
    expect((await by("editor")).body.error).to.include("integrationOrigins");
  });

  describe("integrationOrigins", () => {
    it("is [] by default, and is normalized, published, exported, versioned and compared", async () => {
      const id = await create("plain");
      const get = async () => (await service.rest("GET", `${actions}/${id}`)).body.action;
      expect(await get()).to.deep.include({ integrationOrigins: [] });
      const origins = ["https://API.Example.com:443/", "http://localhost:8080"];
      const normal = ["https://api.example.com", "http://localhost:8080"];
      const put = await service.rest("PUT", `${actions}/${id}`, { body: { integrationOrigins: origins } });
      expect(put.body.action).to.deep.include({ integrationOrigins: normal });
      const published = await service.rest("POST", `${actions}/${id}/publish`);
      expect(published.body.action).to.deep.include({ integrationOrigins: normal });

      await service.rest("PUT", `${actions}/${id}`, { body: { integrationOrigins: [normal[0]] } });
      const { diff } = (await service.rest("GET", `${actions}/${id}/diff`)).body;
      expect(diff.changes).to.deep.equal([{ field: "integrationOrigins", before: normal, after: [normal[0]] }]);
      const document = (await service.rest("GET", `${actions}/export`)).body;
      const exported = document.actions.find(({ name }: { name: string }) => name === "plain");
      expect(exported.integrationOrigins).to.deep.equal([normal[0]]);
      const imported = { ...document, actions: [{ ...exported, integrationOrigins: normal }] };
      const report = await service.rest("POST", `${actions}/import`, { body: imported });
      expect(report.body.updated).to.deep.equal([{ name: "plain", fields: ["integrationOrigins"] }]);

      const { versions } = (await service.rest("GET", `${actions}/${id}/versions`)).body;
      const [newest, , second, first] = versions as { id: number }[];
      const version = await service.rest("GET", `${actions}/${id}/versions/${newest!.id}`);
      expect(version.body.version.data.integrationOrigins).to.deep.equal(normal);
      const restored = await service.rest("POST", `${actions}/${id}/versions/${second!.id}/restore`);
      expect(restored.body.action.integrationOrigins).to.deep.equal(normal);
      // Removes `integrationOrigins` from the first snapshot, as in snapshots of earlier releases.
      await service.db.query(
        "UPDATE action_version SET data = (data::jsonb - 'integrationOrigins')::json WHERE id = $1",
        [first!.id],
      );
      const compared = await service.rest("GET", `${actions}/${id}/versions/${first!.id}/diff?against=master`);
      expect(compared.body.diff.changes).to.deep.equal([{ field: "integrationOrigins", before: [], after: normal }]);
      const { data } =
        await service.graphql(`{ actionVersion(appId: ${service.appId}, actionId: ${id}, versionId: ${first!.id})
        { data { integrationOrigins } } }`);
      expect(data.actionVersion.data.integrationOrigins).to.deep.equal([]);
      await service.rest("POST", `${actions}/${id}/versions/${first!.id}/restore`);
      expect((await get()).integrationOrigins).to.deep.equal([]);
    });

    it("is rejected with its own status, after the specification's fields and before unknown fields", async () => {
      const wrong = { integrationOrigins: ["ftp://x"] };
      for (const [status, fields] of [
        ["INTEGRATION_ORIGINS_INVALID", wrong],
        ["INTEGRATION_ORIGINS_INVALID", { integrationOrigins: ["https://a.example"], environment: "client" }],
        ["INTEGRATION_ORIGINS_INVALID", { ...wrong, nmae: "x" }],
        ["DEPENDENCIES_INVALID", { ...wrong, dependencies: 1 }],
        ["NAME_ALREADY_EXISTS", { ...wrong, name: "plain" }],
      ] as const) {
        const body = { name: "refused", code: ECHO, ...fields };
        const { http, body: answer } = await service.rest("POST", actions, { body });
        expect([answer.status, http]).to.deep.equal([status, status === "NAME_ALREADY_EXISTS" ? 409 : 400]);
      }
      const { errors } = await service.graphql(`mutation { createAction(appId: ${service.appId}, data:
        { name: "refused", code: "${ECHO}", integrationOrigins: ["https://a.example/v1"] }) { id } }`);
      expect(errors?.[0].extensions.status).to.equal("INTEGRATION_ORIGINS_INVALID");
      const id = await create("becomes-client", { integrationOrigins: ["https://a.example"] });
      const changed = await service.rest("PUT", `${actions}/${id}`, { body: { environment: "any" } });
      expect(changed.body.status).to.equal("INTEGRATION_ORIGINS_INVALID");
    });
  });
});
