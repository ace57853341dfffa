/** Tests secret bindings: the service adds keys to requests, code receives none of them, and values in responses are masked. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { SecretBindingStore } from "../../src/operations/requests/secret-bindings.js";
import { tlsServer } from "../harness/localhost-tls.js";
import type { TestService } from "../harness/service.js";
import { BoundRequests, OTHER, REQUEST_CODE, SECRET } from "./bound-requests.js";

describe("secret bindings", () => {
  let bound: BoundRequests;
  let service: TestService;
  let origin: string;

  before(async () => {
    bound = await BoundRequests.start();
    ({ service, origin } = bound);
  });
  after(() => bound.stop());
  beforeEach(() => bound.reset());

  it("are listed without values, replaced as a whole, with a state, over REST and GraphQL", async () => {
    const empty = await service.rest("GET", bound.path);
    expect(empty.body).to.deep.equal({ bindings: [] });
    const binding = {
      key: "__stripe",
      origin: "https://API.stripe.com:443/",
      in: "header",
      name: "Authorization",
      format: "Bearer {value}",
    };
    const defaults = { sealed: false, tokenUrl: null, clientId: null, scopes: [], grant: null };
    const { body, headers } = await bound.put([{ ...binding, value: SECRET }]);
    expect(body.bindings).to.deep.equal([{ ...binding, origin: "https://api.stripe.com", ...defaults }]);
    const read = await service.rest("GET", bound.path);
    expect(read.body).to.deep.equal(body);
    expect(JSON.stringify(read.body)).to.not.include(SECRET);
    expect((await bound.put([], { headers: { "if-match": empty.headers.get("etag")! } })).body.status).to.equal(
      "RESOURCE_CHANGED",
    );
    expect((await bound.put(body.bindings, { headers: { "if-match": headers.get("etag")! } })).http).to.equal(200);
    const { data, errors } = await service.graphql(`mutation { setSecretBindings(appId: ${service.appId}, bindings: [
      { key: "_token", origin: "https://a.example", in: "query", name: "k" }]) { bindings { key origin in name sealed } } }`);
    expect(errors).to.equal(undefined);
    expect(data.setSecretBindings.bindings).to.deep.equal([
      { key: "_token", origin: "https://a.example", in: "query", name: "k", sealed: false },
    ]);
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit`)).body;
    expect(JSON.stringify(entries)).to.include("app.secretBindings.update").and.not.include(SECRET);
  });

  it("are read again by the next request if they change during a read", async () => {
    await bound.bind([{ key: "_late", origin: "https://a.example", in: "header" }]);
    const sql = "SELECT secrets_version AS version FROM app WHERE id = $1";
    const readVersion = async (appId: number) =>
      (await rows<{ version: number }>(service.db, sql, [appId]))[0]!.version;
    let reads = 0;
    const read = async (appId: number) => {
      reads += 1;
      if (reads === 1) await bound.bind([{ key: "_late", origin: "https://b.example", in: "header" }]);
      return {
        version: await readVersion(appId),
        deletedUpToVersion: 0,
        privateAndProtected: [["_late", SECRET]],
        entries: [],
      };
    };
    const parts = { db: service.db, settings: { secretValues: { readVersion, read } }, allowPrivateNetwork: true };
    const stored = new SecretBindingStore(parts as unknown as ConstructorParameters<typeof SecretBindingStore>[0]);
    await stored.runBindings.getCredential(service.appId, "_late", "https://a.example");
    await stored.runBindings.getCredential(service.appId, "_late", "https://b.example");
    expect(reads).to.equal(2);
  });

  it("are for editors only", async () => {
    for (const as of ["api", "viewer", "live", null] as const) {
      expect((await service.rest("GET", bound.path, { as })).http).to.equal(as === null ? 401 : 403);
      expect((await bound.put([], { as })).http).to.equal(as === null ? 401 : 403);
    }
  });

  for (const [field, binding] of [
    ["bindings must", "x"],
    ["bindings[0] must", [1]],
    ["bindings[0].key", [{}]],
    ["bindings[0].key", [{ key: "public" }]],
    ["bindings[0].in", [{ in: "cookie" }]],
    ["bindings[0].origin", [{ origin: "https://a.example/v1" }]],
    ["bindings[0].origin", [{ origin: "ftp://a.example" }]],
    ["bindings[0].name", [{ in: "query" }]],
    ["bindings[0].name", [{ name: "Host" }]],
    ["bindings[0].name", [{ name: "a\r\nb" }]],
    ["bindings[0].format", [{ format: "Bearer" }]],
    ["bindings[0].format", [{ format: "{value}{value}" }]],
    ["bindings[0].format", [{ format: "{value}\r\nX: y" }]],
    ["bindings[0].format", [{ in: "basic", format: "{value}" }]],
    ["bindings[0].sealed", [{ sealed: "yes" }]],
    ["bindings[0].sealed", [{ key: "_private", sealed: true }]],
    ["bindings[0].tokenUrl", [{ tokenUrl: "https://a.example/token" }]],
    ["bindings[0].tokenUrl", [{ in: "oauth2", clientId: "c", grant: "client_credentials" }]],
    ["bindings[0].clientId", [{ in: "oauth2", tokenUrl: "https://a.example/t", grant: "client_credentials" }]],
    ["bindings[0].grant", [{ in: "oauth2", tokenUrl: "https://a.example/t", clientId: "c", grant: "password" }]],
    ["bindings[1] must not have the same key and origin", [{}, {}]],
    [
      "bindings[1].sealed",
      [
        { key: "__k", sealed: true },
        { key: "__k", origin: "https://b.example" },
      ],
    ],
    ["bindings[0].nme", [{ nme: "x" }]],
  ] as const) {
    it(`reject ${JSON.stringify(binding)} and name ${field}`, async () => {
      const valid = { key: "_k", origin: "https://a.example", in: "header" };
      const bindings = Array.isArray(binding)
        ? binding.map((item) =>
            typeof item === "object"
              ? field === "bindings[0].key" && !("key" in item)
                ? item
                : { ...valid, ...item }
              : item,
          )
        : binding;
      const { http, body } = await bound.put(bindings);
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error.startsWith(field), body.error).to.equal(true);
    });
  }

  describe("as credentials", () => {
    before(() => bound.set({ __key: SECRET, __pair: `user:${SECRET}` }));

    for (const [title, binding, check] of [
      ["a header", { name: "X-Api-Key" }, (r: IncomingMessage) => r.headers["x-api-key"] === SECRET],
      ["a header by default", {}, (r: IncomingMessage) => r.headers.authorization === `Bearer ${SECRET}`],
      [
        "a header with a format",
        { name: "Authorization", format: "Token $& {value}" },
        (r: IncomingMessage) => r.headers.authorization === `Token $& ${SECRET}`,
      ],
      ["a query parameter", { in: "query", name: "key" }, (r: IncomingMessage) => r.url === `/x?a=1&key=${SECRET}`],
      [
        "basic credentials",
        { key: "__pair", in: "basic" },
        (r: IncomingMessage) => r.headers.authorization === `Basic ${btoa(`user:${SECRET}`)}`,
      ],
      [
        "a key as basic user",
        { in: "basic" },
        (r: IncomingMessage) => r.headers.authorization === `Basic ${btoa(`${SECRET}:`)}`,
      ],
      [
        "a password of a user",
        { in: "basic", name: "ann" },
        (r: IncomingMessage) => r.headers.authorization === `Basic ${btoa(`ann:${SECRET}`)}`,
      ],
    ] as const) {
      it(`are sent as ${title}`, async () => {
        const key = "key" in binding ? binding.key : "__key";
        await bound.bind([{ key, origin, in: "header", ...binding }]);
        const options = {
          auth: key,
          query: { a: 1 },
          headers: { "x-api-key": "of the code", authorization: "of the code" },
        };
        const { result, error } = await bound.run(REQUEST_CODE, { options });
        expect(result, error).to.include({ status: 200, body: "fine" });
        expect(
          check(bound.received[0]!),
          JSON.stringify([bound.received[0]!.url, bound.received[0]!.headers]),
        ).to.equal(true);
      });
    }

    it("sign requests by AWS Signature Version 4", async () => {
      await bound.set({
        __aws: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" },
      });
      await bound.bind([{ key: "__aws", origin, in: "aws-sigv4", name: "iam/us-east-1" }]);
      const { result, error } = await bound.run(REQUEST_CODE, {
        options: { auth: "__aws", method: "POST", body: "a=1" },
      });
      expect(result, error).to.include({ status: 200 });
      expect(bound.received[0]!.headers.authorization).to.match(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/iam\/aws4_request, SignedHeaders=\S*host\S*, Signature=[0-9a-f]{64}$/,
      );
      expect(bound.received[0]!.headers).to.have.any.keys("x-amz-date", "x-amz-content-sha256");
    });

    it("fetch OAuth 2 tokens once, renew them, and store them encrypted", async () => {
      let tokens = 0;
      let seconds = 3_600;
      bound.answer = (request, response) => {
        if (request.url !== "/token") return response.end(request.headers.authorization);
        tokens += 1;
        response.end(JSON.stringify({ access_token: `token-${tokens}-${"a".repeat(20)}`, expires_in: seconds }));
      };
      await bound.set({ __oauth: SECRET });
      const oauth = {
        tokenUrl: `${origin}/token`,
        clientId: "client",
        scopes: ["a", "b"],
        grant: "client_credentials",
      };
      await bound.bind([{ key: "__oauth", origin, in: "oauth2", ...oauth }]);
      const options = { auth: "__oauth" };
      const first = await bound.run(REQUEST_CODE, { options });
      expect(first.result, first.error).to.deep.include({ status: 200, body: "Bearer «__oauth»" });
      await bound.run("await Promise.all([1, 2, 3].map(() => request({ url: payload.origin, auth: '__oauth' })));");
      expect(tokens).to.equal(1);
      expect(bound.received[0]!.headers.authorization).to.equal(`Basic ${btoa(`client:${SECRET}`)}`);
      const stored = await service.db.query("SELECT encode(sealed, 'escape') AS sealed FROM integration_token");
      expect(stored).to.have.length(1);
      expect(stored[0].sealed).to.not.include("token-1");
      // A new client secret makes the cached access token invalid. A lifetime of 20 seconds makes the service request a token for each run.
      seconds = 20;
      await bound.set({ __oauth: OTHER });
      await bound.run(REQUEST_CODE, { options });
      await bound.run(REQUEST_CODE, { options });
      expect(tokens).to.equal(3);
      bound.answer = (_request, response) => response.writeHead(400).end(SECRET);
      const { result } = await bound.run(REQUEST_CODE, { options });
      expect(result.code).to.equal("TRANSPORT");
      expect(result.message).to.include("400").and.not.include(SECRET);
    });

    it("replace an OAuth 2 token that the origin rejects, once, for every method", async () => {
      let tokens = 0;
      let accepted = 2;
      const bodies: string[] = [];
      bound.answer = (request, response) => {
        if (request.url === "/token") {
          tokens += 1;
          return response.end(JSON.stringify({ access_token: `replaced-${tokens}-${"b".repeat(20)}` }));
        }
        bodies.push(request.method!);
        const isAccepted = request.headers.authorization?.startsWith(`Bearer replaced-${accepted}-`);
        response.writeHead(isAccepted ? 200 : 401).end("done");
      };
      await bound.set({ __rejected: SECRET });
      const oauth = { tokenUrl: `${origin}/token`, clientId: "client", grant: "client_credentials" };
      await bound.bind([{ key: "__rejected", origin, in: "oauth2", ...oauth }]);
      const options = { auth: "__rejected", method: "POST", json: { amount: 1 } };
      expect((await bound.run(REQUEST_CODE, { options })).result).to.deep.include({ status: 200 });
      expect([tokens, bodies]).to.deep.equal([2, ["POST", "POST"]]);
      // From now on, the origin also rejects the new token. The service has just replaced a token, so for a while it requests no other one.
      accepted = 0;
      for (let turn = 0; turn < 3; turn += 1) {
        expect((await bound.run(REQUEST_CODE, { options })).result).to.deep.include({ status: 401 });
      }
      expect(tokens).to.equal(2);
      // The service sends this key as a header and has no access token to replace. So the action receives the status 401.
      await bound.bind([{ key: "__rejected", origin, in: "header" }]);
      const before = bodies.length;
      expect((await bound.run(REQUEST_CODE, { options })).result).to.deep.include({ status: 401 });
      expect(bodies).to.have.length(before + 1);
    });

    it("are rejected for other keys and origins, and if the setting is not set", async () => {
      await bound.bind([
        { key: "__key", origin: "https://a.example", in: "header" },
        { key: "__unset", origin, in: "header" },
      ]);
      for (const auth of ["__key", "__none", "__unset", "constructor"]) {
        const { result } = await bound.run(REQUEST_CODE, { options: { auth } });
        expect(result.code, auth).to.equal("POLICY");
        expect(result.message).to.include(origin).and.not.include(SECRET);
      }
      expect(bound.received).to.have.length(0);
    });

    it("stay on their origin if a redirect leads elsewhere", async () => {
      await bound.bind([{ key: "__key", origin, in: "header" }]);
      const second = tlsServer((request, response) => {
        bound.received.push(request);
        response.end("there");
      });
      second.listen(0, "127.0.0.1");
      await once(second, "listening");
      const other = `https://localhost:${(second.address() as AddressInfo).port}`;
      bound.answer = (_request, response) => response.writeHead(302, { location: `${other}/` }).end();
      const { result } = await bound.run(REQUEST_CODE, { options: { auth: "__key" } }, [origin, other]);
      second.closeAllConnections();
      second.close();
      expect(result.code).to.equal("POLICY");
      expect(bound.received).to.have.length(1);
    });
  });

  describe("when they are tested", () => {
    const trial = async (body: object, as?: "api") =>
      service.rest("POST", `${bound.path}/test`, { body, ...(as && { as }) });

    before(async () => {
      await bound.set({ __key: SECRET, __short: "4071" });
      await bound.bind([
        { key: "__key", origin, in: "header", sealed: true },
        { key: "__short", origin, in: "header" },
        { key: "__unset", origin, in: "header" },
      ]);
    });

    it("send one request with the credential, and show the response without the value", async () => {
      bound.answer = (request, response) =>
        response.writeHead(418).end(`${"x".repeat(4_500)}`.replace("x", request.method!));
      const { http, body } = await trial({ key: "__key", origin, method: "POST", path: "/v1/balance?a=1" });
      expect(http, JSON.stringify(body)).to.equal(200);
      expect(body.trial).to.deep.include({ status: 418, receivedBytes: 4_503, code: null, error: null });
      expect(body.trial.body).to.equal(`POST${"x".repeat(3_996)}`);
      expect(body.trial.durationMs).to.be.a("number");
      expect([bound.received[0]!.url, bound.received[0]!.headers.authorization]).to.deep.equal([
        "/v1/balance?a=1",
        `Bearer ${SECRET}`,
      ]);
      bound.answer = (request, response) => response.end(JSON.stringify(request.headers));
      const echoed = JSON.stringify((await trial({ key: "__key", origin })).body);
      expect(echoed).to.include("«__key»").and.not.include(SECRET);
      const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit`)).body;
      expect(entries[0]).to.deep.include({
        type: "app.secretBindings.test",
        data: { key: "__key", origin, method: "GET" },
      });
    });

    it("say why there was no response", async () => {
      bound.answer = (_request, response) => response.destroy();
      const failed = (await trial({ key: "__key", origin })).body.trial;
      expect([failed.status, failed.body, failed.code]).to.deep.equal([null, null, "TRANSPORT"]);
      const unset = (await trial({ key: "__unset", origin })).body.trial;
      expect([unset.code, unset.error]).to.deep.equal([
        "POLICY",
        `the setting __unset, which is bound to ${origin}, is not set`,
      ]);
      const urlTrial = (await trial({ key: "__key", origin, path: `/${SECRET}` })).body.trial;
      expect([urlTrial.code, JSON.stringify(urlTrial).includes(SECRET)]).to.deep.equal(["POLICY", false]);
      const inQuery = (await trial({ key: "__short", origin, path: "/?pin=4071" })).body.trial;
      expect([inQuery.code, JSON.stringify(inQuery).includes("4071")]).to.deep.equal(["POLICY", false]);
      const outsideTrial = await trial({ key: "__key", origin, path: "/../..//evil.example/" });
      expect(outsideTrial.http).to.equal(200);
      expect(bound.received.at(-1)!.headers.host).to.equal(new URL(origin).host);
    });

    for (const [field, fields] of [
      ["key", { key: 1 }],
      ["origin", { origin: null }],
      ["method", { method: "DELETE" }],
      ["path", { path: "@evil.example/" }],
      ["path", { path: `/${"x".repeat(2_000)}` }],
      ["the app has no secret binding", { key: "__other" }],
      ["the app has no secret binding", { origin: "https://evil.example" }],
      ["pth", { pth: "/" }],
    ] as const) {
      it(`reject ${JSON.stringify(fields).slice(0, 60)} and name ${field}`, async () => {
        const { http, body } = await trial({ key: "__key", origin, ...fields });
        expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(body.error.startsWith(field), body.error).to.equal(true);
        expect(bound.received).to.have.length(0);
      });
    }

    it("list the actions that use each: those that list the origin and name the key", async () => {
      const make = async (name: string, auth: string, integrationOrigins: string[]) => {
        const code = `async function execute() { return Svc.App.V3.Actions.request({ url: "${origin}", auth: "${auth}" }); }`;
        const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
          body: { name, code, active: true, triggers: [{ trigger: "manual" }], integrationOrigins },
        });
        return { id: body.action.id, name };
      };
      const uses = await make("uses", "__key", [origin]);
      await make("another-origin", "__key", ["https://a.example"]);
      await make("another-key", "__keys", [origin]);
      const { body } = await service.rest("GET", `${bound.path}/uses`);
      expect(body.uses).to.deep.equal([
        { key: "__key", origin, actions: [uses] },
        { key: "__short", origin, actions: [] },
        { key: "__unset", origin, actions: [] },
      ]);
      const { data } = await service.graphql(`{ secretBindingUses(appId: ${service.appId}) { key actions { name } } }`);
      expect(data.secretBindingUses[0]).to.deep.equal({ key: "__key", actions: [{ name: "uses" }] });
      const { data: sent, errors } = await service.graphql(`mutation { testSecretBinding(appId: ${service.appId},
        data: { key: "__key", origin: "${origin}" }) { status body } }`);
      expect(sent, JSON.stringify(errors)).to.deep.equal({ testSecretBinding: { status: 200, body: "fine" } });
      const request = { key: "__key", origin: `${origin.toUpperCase()}/`, path: "/" };
      const tested = await service.rest("POST", `/v1/apps/${service.appId}/secret-bindings/test`, { body: request });
      expect(tested.body.trial, "an origin that is not normalized").to.deep.include({ status: 200, body: "fine" });
    });
  });
});
