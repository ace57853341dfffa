/** Tests requests to HTTP triggers against a whole service: signatures and secrets, responses, and payloads. */
import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { KEY_SETTINGS, SAMPLES } from "./signed-samples.js";
import { makeAction, publishApp, type Received, type Sent, send } from "./support.js";

const NONE = { type: "none" } as const;
const RAW_CODE = "async function execute({ payload }) { return { run: Math.random(), raw: payload.request.rawBody }; }";

describe("requests to HTTP triggers", () => {
  let service: TestService;
  let actions: string;
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
  const countRefusedSignatures = async (): Promise<number> => {
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    return Number(/^svc_refusals_total\{status="SIGNATURE_INVALID"\} (\d+)$/m.exec(metrics)![1]);
  };
  /** Creates an API token with one scope. */
  const createScopedToken = async (scope: string): Promise<string> => {
    const made = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "api" } });
    await service.db.query("UPDATE credential SET scopes = $1 WHERE id = $2", [[scope], made.body.id]);
    return made.body.token;
  };
  const endpointOf = async (id: number): Promise<string> =>
    (await service.rest("GET", `${actions}/${id}`)).body.action.endpoints[0].url;
  const pathOf = (url: string) => url.slice(`${service.url}/h/${service.appId}/`.length);

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
    actions = `/v3/apps/${service.appId}/actions`;
    await publishApp(service);
    expect((await settings(KEY_SETTINGS)).http).to.equal(200);
  });
  after(() => service.stop());

  describe("the check of the caller", () => {
    for (const [at, sample] of sampleOf([...SAMPLES.entries()], 0, 3)) {
      it(`accepts a request with a ${sample.name} signature, and no other`, async () => {
        const path = `signed/${at}`;
        const { id } = await makeAction(service, { method: "POST", path, auth: sample.auth }, { code: RAW_CODE });
        const url = `${service.url}/h/${service.appId}/${path}`;
        const now = Math.floor(Date.now() / 1000);
        const { headers, url: signedUrl, body } = sample.make('{"id":"evt","event_id":"evt"} grüße\r\n', url, now);
        const signed = await post(pathOf(signedUrl), body, headers);
        expect(signed.http, signed.text).to.equal(200);
        expect(Buffer.from(signed.json.raw, "base64").toString()).to.equal(body);
        const before = await runsOf(id);
        const countedBefore = await countRefusedSignatures();
        const refusals = [
          await post(pathOf(signedUrl), `${body} `, headers),
          await post(pathOf(signedUrl), body, { ...headers, [sample.signed[0]!]: "x" }),
          await post(pathOf(signedUrl), body, { "content-type": headers["content-type"]! }),
        ];
        if (sample.isTimed) {
          const old = sample.make(body, url, now - 400);
          refusals.push(await post(pathOf(old.url), old.body, old.headers));
        }
        for (const { http, json } of refusals) {
          expect([http, json.status]).to.deep.equal([401, "SIGNATURE_INVALID"]);
        }
        expect(await runsOf(id), "refusals write no run").to.equal(before);
        expect(await countRefusedSignatures()).to.equal(countedBefore + refusals.length);
        const { body: listed } = await service.rest("GET", `${actions}/${id}/refused-requests`);
        expect(listed.refusedRequests).to.have.length(1);
        const [counted] = listed.refusedRequests;
        expect(counted).to.include({ status: "SIGNATURE_INVALID", count: refusals.length });
        expect(counted.reason).to.include(sample.auth.scheme);
        expect(counted.lastAddress).to.match(/127\.0\.0\.1|::1/);
      });
    }

    it("includes the raw body in a signature: 1 MB, compressed, and bytes that are no text", async () => {
      const github = SAMPLES.find(({ name }) => name === "hmac in hex")!;
      await makeAction(service, { method: "POST", path: "raw", auth: github.auth }, { code: RAW_CODE });
      const { createHmac } = await import("node:crypto");
      const bodies = [Buffer.alloc(2 ** 20, "ü"), gzipSync('{"a":1}'), randomBytes(1_000)];
      for (const body of bodies) {
        const signature = `sha256=${createHmac("sha256", github.key).update(body).digest("hex")}`;
        const type = { "content-type": "application/json", "content-encoding": "gzip", "x-signature": signature };
        const answer = await post("raw", body, type);
        expect(answer.http, answer.text.slice(0, 200)).to.equal(200);
        expect(Buffer.from(answer.json.raw, "base64").equals(body)).to.equal(true);
      }
      const large = await post("raw", Buffer.alloc(2 ** 20 + 1), {});
      expect([large.http, large.json.status]).to.deep.equal([413, "PAYLOAD_TOO_LARGE"]);
    });

    it("rejects every request if the setting is missing, empty or invalid; a new value applies at once", async () => {
      const auth = { type: "basic", setting: "__login" } as const;
      await makeAction(service, { path: "basic", auth });
      const login = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
      const status = async (text: string) => (await live("basic", { headers: login(text) })).http;
      for (const value of [null, "", " ", [], {}, 5, ["", ""]]) {
        if (value !== null) await settings({ __login: value });
        for (const text of ["", ":", " ", "user:password"])
          expect(await status(text), JSON.stringify(value)).to.equal(401);
      }
      await settings({ __login: "user:pass:word" });
      expect(await status("user:pass:word")).to.equal(200);
      expect(await status("user:pass")).to.equal(401);
      await settings({ __login: ["new:one", "user:pass:word"] });
      expect([await status("new:one"), await status("user:pass:word")]).to.deep.equal([200, 200]);
      await settings({ __login: "new:one" });
      expect(await status("user:pass:word")).to.equal(401);
      const refused = await live("basic");
      expect(refused.json.status).to.equal("UNAUTHORIZED");
      expect(refused.headers["www-authenticate"]).to.equal('Basic realm="action", charset="UTF-8"');
      const { json } = await live("basic", { headers: login("new:one") });
      expect(json.request.headers).to.not.have.property("authorization");
    });

    it("accepts as a bearer token only an API token of this app that may run actions", async () => {
      await makeAction(service, { path: "bearer", auth: { type: "bearer" } });
      const status = async (token: string) =>
        (await live("bearer", { headers: { authorization: `Bearer ${token}` } })).http;
      expect(await status(service.tokens.api)).to.equal(200);
      expect(await status(await createScopedToken("run"))).to.equal(200);
      expect(await status(await createScopedToken("read"))).to.equal(401);
      for (const kind of ["editor", "admin", "viewer", "live"] as const) {
        expect(await status(service.tokens[kind]), kind).to.equal(401);
      }
      const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
      const other = await service.rest("POST", `/v1/apps/${body.app.id}/tokens`, {
        as: "admin",
        body: { kind: "api" },
      });
      expect(await status(other.body.token), "of another app").to.equal(401);
      const { json } = await live("bearer", { headers: { authorization: `Bearer ${service.tokens.api}` } });
      expect(json.request.headers).to.not.have.property("authorization");
    });

    it("uses the last segment of the URL as a secret, which the action does not see, and which can be replaced at once", async () => {
      const { id, action } = await makeAction(service, { path: "secret/:x", auth: { type: "secret" } });
      const url = action.endpoints[0].url as string;
      const secret = url.split("/").at(-1)!;
      expect(secret).to.match(/^[\w-]{43}$/);
      const filled = pathOf(url).replace(":x", "value");
      const { http, json } = await live(filled, { headers: { "x-original-uri": `/h/1/${filled}` } });
      expect(http).to.equal(200);
      expect(json.request.path).to.equal("secret/value");
      expect(json.request.params).to.deep.equal({ x: "value" });
      expect(JSON.stringify(json)).to.not.include(secret);
      const encoded = filled.replace(secret, `%${secret.charCodeAt(0).toString(16)}${secret.slice(1)}`);
      const normalized = await live(encoded, { headers: { "x-original-uri": `/h/1/${filled}` } });
      expect([normalized.http, normalized.text.includes(secret)]).to.deep.equal([200, false]);
      for (const path of ["secret/value", `secret/value/${secret}x`, "secret/value/x", `secret/value/${secret}/x`]) {
        const refused = await live(path);
        expect([refused.http, refused.json.status], path).to.deep.equal([404, "NOT_FOUND"]);
      }
      const stored = await service.db.query("SELECT encode(sealed, 'escape') AS sealed FROM http_secret");
      expect(JSON.stringify(stored)).to.not.include(secret);
      const tag = (await service.rest("GET", `${actions}/${id}`)).headers.get("etag")!;
      const rotated = await service.rest("POST", `${actions}/${id}/rotate-secret`);
      expect([rotated.http, rotated.body.status]).to.deep.equal([200, "SECRET_ROTATED"]);
      expect((await live(filled)).http).to.equal(404);
      const next = await endpointOf(id);
      expect(next).to.equal(rotated.body.action.endpoints[0].url).and.to.not.equal(url);
      expect((await live(pathOf(next).replace(":x", "value"))).http).to.equal(200);
      const known = await service.rest("GET", `${actions}/${id}`, { headers: { "if-none-match": tag } });
      expect(known.http, "a read from before the rotation is stale").to.equal(200);
      const none = await makeAction(service, { path: "no-secret", auth: NONE });
      const refused = await service.rest("POST", `${actions}/${none.id}/rotate-secret`);
      expect(refused.body.status).to.equal("TRIGGER_NOT_ALLOWED");
    });

    it("prefers the URL of a secret to a pattern that would match it as a value", async () => {
      const { action } = await makeAction(
        service,
        { path: "both", auth: { type: "secret" } },
        { code: "async function execute() { return 'secret'; }" },
      );
      await makeAction(
        service,
        { path: "both/:v", auth: NONE },
        { code: "async function execute() { return 'value'; }" },
      );
      expect((await live(pathOf(action.endpoints[0].url))).json).to.equal("secret");
      expect((await live("both/other")).json).to.equal("value");
    });

    it("shows an action's URLs only to callers who may edit the action", async () => {
      const { id } = await makeAction(service, { path: "shown", auth: { type: "secret" } });
      const reader = await createScopedToken("read");
      const read = await service.rest("GET", `${actions}/${id}`, { as: reader });
      expect(read.http).to.equal(200);
      expect(read.body.action).to.not.have.property("endpoints");
      const list = await service.rest("GET", actions, { as: reader });
      expect(JSON.stringify(list.body)).to.not.include('"endpoints"');
    });
  });

  describe("responses", () => {
    let serial = 0;
    const answerOf = async (code: string, sent?: Sent, where: object = {}): Promise<Received> => {
      serial += 1;
      await makeAction(service, { path: `answer/${serial}`, auth: NONE, ...where }, { code });
      return live(`answer/${serial}`, sent);
    };
    const respond = (options: string) => `async function execute() { return Svc.App.V3.Actions.response(${options}); }`;

    it("are the result as JSON, 204 for undefined, and never HTML of others on the service's origin", async () => {
      const json = await answerOf("async function execute() { return { a: [1, null] }; }");
      expect([json.http, json.json]).to.deep.equal([200, { a: [1, null] }]);
      const nothing = await answerOf("async function execute() {}");
      expect([nothing.http, nothing.text]).to.deep.equal([204, ""]);
      for (const { headers } of [
        json,
        nothing,
        await live("nowhere"),
        await answerOf("async function execute() { throw 1; }"),
      ]) {
        expect(headers["x-content-type-options"]).to.equal("nosniff");
        expect(headers["content-security-policy"]).to.equal("sandbox allow-scripts allow-forms");
        expect(headers).to.not.have.any.keys("access-control-allow-origin", "set-cookie");
      }
      expect(json.headers["svc-run-id"]).to.match(/^\d+$/);
      expect(nothing.headers["svc-run-id"]).to.match(/^\d+$/);
    });

    it("have the status, headers and body that the action sets", async () => {
      const text = await answerOf(
        respond('{ status: 418, headers: { "X-A": "b", "Content-Type": "text/html; charset=latin1" }, body: "<p>ü" }'),
      );
      expect([text.http, text.text, text.headers["x-a"]]).to.deep.equal([418, "<p>ü", "b"]);
      expect(text.headers["content-type"]).to.equal("text/html; charset=utf-8");
      const bytes = await answerOf(respond("{ headers: new Map([['X-B', 'c']]), body: new Uint8Array([104, 105]) }"));
      expect(bytes.text).to.equal("hi");
      expect(bytes.headers).to.include({ "content-type": "application/octet-stream", "x-b": "c" });
      const object = await answerOf(respond("{ body: { a: 1 } }"));
      expect([object.json, object.http]).to.deep.equal([{ a: 1 }, 200]);
      const moved = await answerOf(
        respond('{ headers: new Headers({ "X-C": "d" }), redirect: "https://example.com/" }'),
      );
      expect(moved.http).to.equal(302);
      expect(moved.headers).to.include({ location: "https://example.com/", "x-c": "d" });
      const dropped = await answerOf(
        respond(`{ headers: { "Set-Cookie": "a=b", "Clear-Site-Data": "*", "Service-Worker-Allowed": "/", "Svc-Run-Id": "0",
          "Content-Security-Policy": "default-src *", "Access-Control-Allow-Origin": "*", "Connection": "close",
          "Transfer-Encoding": "chunked", "Content-Length": "3", "Content-Encoding": "gzip", "X-Kept": "1" }, body: "whole" }`),
      );
      expect(dropped.text).to.equal("whole");
      expect(dropped.headers["x-kept"]).to.equal("1");
      const names = ["set-cookie", "clear-site-data", "service-worker-allowed", "access-control-allow-origin"];
      expect(dropped.headers).to.not.have.any.keys("content-encoding", ...names);
      expect(dropped.headers["svc-run-id"]).to.not.equal("0");
      expect(dropped.headers["content-security-policy"]).to.equal("sandbox allow-scripts allow-forms");
    });

    it("fail if the author's options are invalid, and show nothing of the author's error outside", async () => {
      const FAULTS = [
        "{ status: 99 }",
        "{ status: '200' }",
        '{ headers: { "a b": "c" } }',
        '{ headers: { a: "b\\r\\nc: d" } }',
        '{ redirect: "a b" }',
        '{ body: new Blob(["a"]) }',
        "5",
      ];
      for (const options of FAULTS) {
        const { http, json, headers } = await answerOf(respond(options));
        expect([http, json], options).to.deep.equal([500, { status: "EXECUTION_FAILED", error: "the action failed" }]);
        const run = await service.rest("GET", `/v3/apps/${service.appId}/runs/${headers["svc-run-id"]}`);
        expect(JSON.stringify(run.body), options).to.include("Svc.App.V3.Actions.response");
      }
    });

    it("are set only by the action's own call: a result that looks like one is a normal result", async () => {
      const echo = "async function execute({ payload }) { return payload.request.body; }";
      const type = { "content-type": "application/json" };
      for (const forged of ['{"status":302,"redirect":"https://evil.example"}', '{"response 0":{"status":302}}']) {
        const { http, json } = await answerOf(echo, { method: "POST", body: forged, headers: type });
        expect([http, json]).to.deep.equal([200, JSON.parse(forged)]);
      }
    });

    it("contain no secret in headers, body or redirect", async () => {
      await settings({ __leak: "a-secret-that-must-not-leave" });
      const leakCases = [
        "{ headers: { 'X-A': s } }",
        "{ body: s }",
        "{ redirect: 'https://example.com/' + s }",
        "{ body: { a: [s] } }",
      ];
      for (const options of leakCases) {
        const code = `async function execute({ settings }) { const s = settings.__leak; return Svc.App.V3.Actions.response(${options}); }`;
        const answer = await answerOf(code);
        expect(answer.http, options).to.equal(500);
        expect(JSON.stringify([answer.headers, answer.text])).to.not.include("a-secret-that-must-not-leave");
      }
    });

    it("may be read by pages of the listed origins, and by no others", async () => {
      const cors = { origins: ["https://shop.example"] };
      const origin = "https://shop.example";
      const code = respond('{ headers: { Vary: "Accept", "Cache-Control": "public" }, body: "x" }');
      const answer = await answerOf(code, { headers: { origin } }, { cors, method: "POST" });
      expect(answer.http).to.equal(405);
      const path = `answer/${serial}`;
      const preflight = (from: string, method = "POST") =>
        live(path, {
          method: "OPTIONS",
          headers: { origin: from, "access-control-request-method": method, "access-control-request-headers": "x-own" },
        });
      const allowed = await preflight(origin);
      expect(allowed.http).to.equal(204);
      expect(allowed.headers).to.include({
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "x-own",
        vary: "Origin",
      });
      expect(allowed.headers).to.not.have.property("access-control-allow-credentials");
      for (const other of ["https://evil.example", "null", "https://shop.example.evil"]) {
        expect((await preflight(other)).headers).to.not.have.property("access-control-allow-origin");
      }
      expect((await preflight(origin, "DELETE")).headers).to.not.have.property("access-control-allow-origin");
      const read = await live(path, { method: "POST", headers: { origin } });
      expect(read.headers).to.include({ "access-control-allow-origin": origin, vary: "Accept, Origin" });
      const hidden = await live(path, { method: "POST", headers: { origin: "https://evil.example" } });
      expect([hidden.http, hidden.headers["access-control-allow-origin"]]).to.deep.equal([200, undefined]);
      const cookie = await live(path, {
        method: "POST",
        headers: { origin: "https://evil.example", cookie: `auth_token=${service.tokens.editor}` },
      });
      expect(cookie.http, "a cookie counts for nothing").to.equal(200);
    });
  });

  describe("payloads", () => {
    const BODY_CASES: [title: string, type: string | null, body: string | Uint8Array, parsed: unknown][] = [
      ["JSON", "application/json; charset=utf-8", '{"a":"ü"}', { a: "ü" }],
      ["JSON of another type", "application/cloudevents+json", "[1]", [1]],
      ["malformed JSON", "application/json", "{", null],
      ["JSON that is no UTF-8", "application/json", Buffer.from([0x22, 0xff, 0x22]), null],
      ["deep JSON", "application/json", `${"[".repeat(5_000)}${"]".repeat(5_000)}`, null],
      ["prototype keys", "application/json", '{"__proto__":{"a":1}}', JSON.parse('{"__proto__":{"a":1}}')],
      [
        "a form",
        "application/x-www-form-urlencoded",
        "a=1&b=%C3%BC&a=2&__proto__=x",
        JSON.parse('{"a":["1","2"],"b":"ü","__proto__":"x"}'),
      ],
      ["text", "text/plain", "grüße\r\n", "grüße\r\n"],
      ["text in Latin-1", "text/plain; charset=iso-8859-1", Buffer.from([0xfc]), "ü"],
      ["XML", "application/xml", "<a/>", "<a/>"],
      ["U+0000", "text/plain", "a\0b", "a\0b"],
      ["bytes", "application/octet-stream", Buffer.from([0, 1, 255]), null],
      ["no type", null, "x", null],
      [
        "a form with a file",
        "multipart/form-data; boundary=b",
        '--b\r\nContent-Disposition: form-data; name="t"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--b--\r\n',
        { t: "x", f: { filename: "a.txt", contentType: "text/plain", base64: "aGk=" } },
      ],
      ["a broken form", "multipart/form-data", "x", null],
    ];
    it("have the body by its type, and its bytes", async () => {
      await makeAction(service, { method: "POST", path: "body", auth: NONE });
      for (const [title, type, body, parsed] of BODY_CASES) {
        const { http, json, text } = await post("body", body, type === null ? {} : { "content-type": type });
        expect(http, `${title}: ${text}`).to.equal(200);
        expect(json.request.body, title).to.deep.equal(parsed);
        expect(json.request.contentType, title).to.equal(type);
        expect(Buffer.from(json.request.rawBody, "base64").equals(Buffer.from(body)), title).to.equal(true);
      }
    });

    it("are stored with the run, whose mode is on-demand, and can be replayed", async () => {
      const { id } = await makeAction(
        service,
        { method: "POST", path: "replayed", auth: NONE },
        { code: "async function execute({ payload }) { throw new Error(payload.request.body.n); }" },
      );
      const { headers } = await post("replayed", '{"n":7}', { "content-type": "application/json" });
      const runs = `/v3/apps/${service.appId}/runs`;
      const { body } = await service.rest("GET", `${runs}/${headers["svc-run-id"]}`);
      expect(JSON.stringify(body)).to.include('"trigger":"http"').and.to.include('"mode":"on-demand"');
      await service.rest("PUT", `${actions}/${id}`, {
        body: { code: "async function execute({ payload }) { return payload.request.body.n; }" },
      });
      await service.rest("POST", `${actions}/${id}/publish`);
      const replay = await service.rest("POST", `${runs}/${headers["svc-run-id"]}/replay`);
      expect(replay.http, JSON.stringify(replay.body)).to.equal(202);
    });
  });
});
