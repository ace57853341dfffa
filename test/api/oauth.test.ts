/** Sign-in of programs: the official MCP client end to end, the device flow, and what an attacker would try with codes and addresses. */
import { createHash, randomBytes } from "node:crypto";
import { type OAuthClientProvider, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { launchChromium, watchPage } from "../web/chromium.js";

const REDIRECT = "http://127.0.0.1:7777/callback";
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

describe("Programs that people let in", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service?.stop());

  // biome-ignore lint/suspicious/noExplicitAny: answers have the shape of their route
  type Json = any;

  async function form(path: string, fields: Record<string, string>): Promise<{ http: number; body: Json }> {
    const response = await fetch(service.url + path, { method: "POST", body: new URLSearchParams(fields) });
    return { http: response.status, body: await response.json() };
  }

  const register = async (more: object = {}) =>
    service.rest("POST", "/oauth/register", {
      as: null,
      body: { client_name: "Test program", redirect_uris: [REDIRECT], ...more },
    });

  const newClient = async (more: object = {}): Promise<string> => (await register(more)).body.client_id;

  function newRequest(clientId: string, more: Record<string, string> = {}) {
    const verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: REDIRECT,
      response_type: "code",
      scope: "read run manage",
      state: "a state",
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      ...more,
    });
    return { verifier, query: query.toString() };
  }

  const decide = (query: string, more: object = {}, as: string | null = "editor") =>
    service.rest("POST", `/oauth/consent?${query}`, {
      as,
      body: { allow: true, appId: service.appId, scopes: ["read", "run", "manage"], ...more },
    });

  /** Signs a program in; its tokens, its ID and what it would send again. */
  async function signedIn(scopes = ["read", "run", "manage"], as = "editor") {
    const clientId = await newClient();
    const { verifier, query } = newRequest(clientId, { scope: scopes.join(" ") });
    const { body } = await decide(query, { scopes }, as);
    const code = new URL(body.redirectTo).searchParams.get("code")!;
    const exchange = {
      grant_type: "authorization_code",
      client_id: clientId,
      code,
      redirect_uri: REDIRECT,
      code_verifier: verifier,
    };
    const answer = await form("/oauth/token", exchange);
    expect(answer.http, JSON.stringify(answer.body)).to.equal(200);
    return { clientId, exchange, tokens: answer.body as OAuthTokens & { refresh_token: string } };
  }

  const may = async (token: string) =>
    (await service.rest("GET", `/v3/apps/${service.appId}/actions`, { as: token })).http;

  const refresh = (clientId: string, token: string) =>
    form("/oauth/token", { grant_type: "refresh_token", client_id: clientId, refresh_token: token });

  it("sign in by the official MCP client, which finds everything by itself, and work on drafts", async () => {
    const stored: { client?: OAuthClientInformationMixed; tokens?: OAuthTokens; verifier?: string; url?: URL } = {};
    const provider: OAuthClientProvider = {
      redirectUrl: REDIRECT,
      clientMetadata: {
        client_name: "MCP test",
        redirect_uris: [REDIRECT],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
      },
      clientInformation: () => stored.client,
      saveClientInformation: (client) => {
        stored.client = client;
      },
      tokens: () => stored.tokens,
      saveTokens: (tokens) => {
        stored.tokens = tokens;
      },
      redirectToAuthorization: (url) => {
        stored.url = url;
      },
      saveCodeVerifier: (verifier) => {
        stored.verifier = verifier;
      },
      codeVerifier: () => stored.verifier!,
    };
    const newTransport = () =>
      new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { authProvider: provider });
    const client = new Client({ name: "test", version: "1" });
    const first = newTransport();
    let refused: unknown = null;
    await client.connect(first as Parameters<Client["connect"]>[0]).catch((error: unknown) => {
      refused = error;
    });
    expect(refused).to.be.instanceOf(UnauthorizedError);
    expect(stored.url?.href).to.contain(`${service.url}/oauth/authorize?`);
    const { body } = await decide(stored.url!.search.slice(1), { scopes: ["read", "run", "manage"] });
    await first.finishAuth(new URL(body.redirectTo).searchParams.get("code")!);
    await client.connect(newTransport() as Parameters<Client["connect"]>[0]);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).to.include.members(["save_draft", "run_draft", "check_code", "propose_publish"]);
    expect(names).not.to.include("publish_action");
    const call = async (name: string, args: object) => {
      const result = await client.callTool({ name, arguments: args as Record<string, unknown> });
      const [{ text }] = result.content as [{ text: string }];
      expect(result.isError ?? false, text).to.equal(false);
      return text;
    };
    const code = "async function execute({ payload }) { return { twice: 2 * payload.n }; }";
    expect(await call("check_code", { code })).to.contain('"problems": []');
    const fields = { code, active: true, triggers: [{ trigger: "manual" }] };
    expect(await call("save_draft", { name: "twice", fields })).to.contain('"created": true');
    expect(await call("run_draft", { action: "twice", payload: { n: 21 } })).to.match(/"twice": ?42/);
    expect(await call("propose_publish", { action: "twice" })).to.contain("/studio#/");
    await client.close();
  });

  it("get a code only for a person who allows it, and the person's choice of app and scopes", async () => {
    const clientId = await newClient();
    const { query } = newRequest(clientId);
    const asked = await service.rest("GET", `/oauth/consent?${query}`);
    expect(asked.body).to.deep.include({
      client: "Test program",
      to: "127.0.0.1:7777",
      scopes: ["read", "run", "manage"],
    });
    expect(asked.body.apps[0]).to.include({ id: service.appId });
    for (const as of [null, "api", "viewer", "live"]) {
      expect((await decide(query, {}, as)).http, String(as)).to.be.oneOf([401, 403]);
    }
    const { body } = await decide(query, { allow: false });
    const address = new URL(body.redirectTo);
    expect(address.origin + address.pathname).to.equal(REDIRECT);
    expect(Object.fromEntries(address.searchParams)).to.deep.equal({
      state: "a state",
      iss: service.url,
      error: "access_denied",
    });
    for (const wrong of [
      { scopes: [] },
      { scopes: ["publish"] },
      { scopes: ["everything"] },
      { appId: 999 },
      { appId: "1" },
      { allow: "true" },
    ]) {
      expect((await decide(query, wrong)).http, JSON.stringify(wrong)).to.be.within(400, 403);
    }
  });

  it("are never let in by a page of another origin, nor inside a frame", async () => {
    const { query } = newRequest(await newClient());
    const cookie = `auth_token=${service.tokens.editor}`;
    const attempts: Record<string, string>[] = [
      { cookie, origin: "https://evil.example" },
      { cookie, "sec-fetch-site": "cross-site" },
      { cookie },
    ];
    for (const headers of attempts) {
      const { http } = await service.rest("POST", `/oauth/consent?${query}`, {
        as: null,
        headers,
        body: { allow: true, appId: service.appId, scopes: ["read"] },
      });
      expect(http).to.equal(403);
    }
    for (const path of [`/oauth/authorize?${query}`, "/oauth/device", "/oauth/programs"]) {
      const { headers } = await service.rest("GET", path, { as: "editor" });
      expect(headers.get("content-security-policy")).to.contain("frame-ancestors 'none'");
      expect(headers.get("x-frame-options")).to.equal("DENY");
    }
  });

  it("are let in, listed and ended by a person in a browser", async () => {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const { errors } = watchPage(page, service.url);
      await browser.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1", path: "/" });
      const back = `${service.url}/docs/`;
      const clientId = await newClient({ client_name: "<b>Browser</b> test", redirect_uris: [back] });
      await page.goto(`${service.url}/oauth/authorize?${newRequest(clientId, { redirect_uri: back }).query}`);
      await page.waitForSelector("form");
      expect(await page.$eval("#consent", (root) => root.textContent)).to.contain("<b>Browser</b> test wants to work");
      await page.click("input[value=manage]");
      await Promise.all([page.waitForNavigation(), page.click("button.primary")]);
      const address = new URL(page.url());
      expect(address.origin + address.pathname).to.equal(back);
      expect(address.searchParams.get("code")).to.match(/^svc_code_/);
      await page.goto(`${service.url}/oauth/programs`);
      const item = await page.waitForSelector("li");
      expect(await item!.evaluate((element) => element.textContent)).to.match(
        /Browser.* on app \d+: read, run; never used/,
      );
      const { grants } = (await service.rest("GET", "/oauth/grants")).body;
      await page.click("li button");
      await page.waitForFunction(`document.querySelectorAll("li").length < ${grants.length}`);
      expect(errors).to.deep.equal([]);
    } finally {
      await browser.close();
    }
  });

  it("name only addresses that they registered, exactly; this machine's with any port", async () => {
    const refused = [
      "http://example.com/x",
      "javascript:alert(1)",
      "data:text/html,x",
      "https://a@b.example/",
      "https://x.example/#f",
      "file:///etc/passwd",
      "//x",
      "x",
    ];
    for (const uri of refused) {
      expect((await register({ redirect_uris: [uri] })).body.error, uri).to.equal("invalid_redirect_uri");
    }
    const clientId = await newClient({ redirect_uris: [REDIRECT, "https://app.example/cb?x=1"] });
    const answer = async (uri: string) => (await decide(newRequest(clientId, { redirect_uri: uri }).query)).http;
    for (const uri of ["http://127.0.0.1:1/callback", "https://app.example/cb?x=1"])
      expect(await answer(uri), uri).to.equal(200);
    for (const uri of [
      "https://app.example/cb",
      "https://app.example/cb?x=1&y",
      "https://app.example.evil.example/cb?x=1",
      "https://app.example/cb?x=1#",
      "http://127.0.0.1:7777/other",
      "http://localhost:7777/callback",
      "http://127.0.0.1.evil.example/callback",
      "",
    ]) {
      expect(await answer(uri), uri).to.equal(400);
    }
  });

  it("need PKCE with S256, and a known response type and scope", async () => {
    const clientId = await newClient();
    for (const wrong of [
      { code_challenge: "" },
      { code_challenge_method: "plain" },
      { code_challenge_method: "" },
      { response_type: "token" },
      { scope: "root" },
      { client_id: "svc_client_x" },
    ] as Record<string, string>[]) {
      expect((await decide(newRequest(clientId, wrong).query)).http, JSON.stringify(wrong)).to.equal(400);
    }
    const { query } = newRequest(clientId);
    expect((await decide(`${query}&redirect_uri=https://evil.example`)).http).to.equal(400);
  });

  it("use a code once, with the verifier, address and program that it was made for; a second use ends the access", async () => {
    const { exchange, tokens, clientId } = await signedIn();
    expect(tokens.access_token).to.match(/^svc_api_/);
    expect(await may(tokens.access_token)).to.equal(200);
    expect((await form("/oauth/token", exchange)).body.error).to.equal("invalid_grant");
    expect(await may(tokens.access_token)).to.equal(401);
    expect((await refresh(clientId, tokens.refresh_token)).body.error).to.equal("invalid_grant");

    const other = await newClient();
    const { verifier, query } = newRequest(clientId);
    const { body } = await decide(query);
    const code = new URL(body.redirectTo).searchParams.get("code")!;
    const right = { ...exchange, code, code_verifier: verifier };
    for (const wrong of [
      { code_verifier: "x".repeat(43) },
      { code_verifier: "" },
      { redirect_uri: `${REDIRECT}2` },
      { client_id: other },
      { code: `${code}x` },
    ]) {
      const { http, body: fault } = await form("/oauth/token", { ...right, ...wrong });
      expect([http, fault.error], JSON.stringify(wrong)).to.deep.equal([400, "invalid_grant"]);
    }
    expect((await form("/oauth/token", right)).http).to.equal(200);
  });

  it("rotate refresh tokens; a used one that comes again ends the access of both", async () => {
    const { clientId, tokens } = await signedIn();
    const next = await refresh(clientId, tokens.refresh_token);
    expect(next.http).to.equal(200);
    expect(await may(next.body.access_token)).to.equal(200);
    expect((await refresh(clientId, tokens.refresh_token)).body.error).to.equal("invalid_grant");
    expect(await may(next.body.access_token)).to.equal(401);
    expect((await refresh(clientId, next.body.refresh_token)).body.error).to.equal("invalid_grant");
  });

  it("have no more rights than their scopes, nor than their person, and lose them with the role", async () => {
    const { tokens } = await signedIn(["read"]);
    const create = (as: string) =>
      service.rest("POST", `/v3/apps/${service.appId}/actions`, {
        as,
        body: { name: "x", code: "async function execute() {}" },
      });
    expect([await may(tokens.access_token), (await create(tokens.access_token)).http]).to.deep.equal([200, 403]);
    const { body: made } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "theirs" } });
    expect((await service.rest("GET", `/v3/apps/${made.app.id}/actions`, { as: tokens.access_token })).http).to.equal(
      403,
    );

    const { body } = await service.rest("POST", "/v1/admin/users", {
      as: "admin",
      body: { firstName: "Re", lastName: "Ader", email: "reader@example.com" },
    });
    const path = `/v1/apps/${service.appId}/members/${body.user.id}`;
    const setRole = await service.rest("PUT", path, { as: "admin", body: { role: "editor" } });
    expect(setRole.http, JSON.stringify(setRole.body)).to.equal(200);
    const theirs = await signedIn(["read", "manage"], body.token);
    expect((await create(theirs.tokens.access_token)).http).to.equal(201);
    await service.rest("PUT", path, { as: "admin", body: { role: "reader" } });
    expect([await may(theirs.tokens.access_token), (await create(theirs.tokens.access_token)).http]).to.deep.equal([
      200, 403,
    ]);
    const clientId = await newClient();
    expect((await decide(newRequest(clientId).query, {}, body.token)).http).to.equal(403);
    await service.rest("DELETE", path, { as: "admin" });
    expect(await may(theirs.tokens.access_token)).to.equal(401);
  });

  it("are listed and ended by their person, and end themselves", async () => {
    const { clientId, tokens } = await signedIn();
    const { body } = await service.rest("GET", "/oauth/grants");
    expect(body.grants[0]).to.deep.include({
      client: "Test program",
      appId: service.appId,
      scopes: ["read", "run", "manage"],
    });
    expect((await service.rest("DELETE", `/oauth/grants/${body.grants[0].id}`, { as: "admin" })).http).to.equal(404);
    expect((await service.rest("DELETE", `/oauth/grants/${body.grants[0].id}`)).http).to.equal(200);
    expect(await may(tokens.access_token)).to.equal(401);
    expect((await refresh(clientId, tokens.refresh_token)).body.error).to.equal("invalid_grant");

    const second = await signedIn();
    expect((await form("/oauth/revoke", { client_id: clientId, token: second.tokens.refresh_token })).http).to.equal(
      200,
    );
    expect(await may(second.tokens.access_token)).to.equal(200);
    expect(
      (await form("/oauth/revoke", { client_id: second.clientId, token: second.tokens.refresh_token })).http,
    ).to.equal(200);
    expect(await may(second.tokens.access_token)).to.equal(401);
    const stored = await service.db.query(
      "SELECT (SELECT json_agg(s) FROM oauth_secret s)::text AS secrets, (SELECT json_agg(c) FROM credential c)::text AS tokens",
    );
    for (const token of [tokens.access_token, tokens.refresh_token])
      expect(JSON.stringify(stored)).not.to.contain(token.slice(10));
  });

  it("without a browser get in by a code that their person confirms, once", async () => {
    const clientId = await newClient({ redirect_uris: [], grant_types: [DEVICE, "refresh_token"] });
    const begin = async () => (await form("/oauth/device_authorization", { client_id: clientId, scope: "read" })).body;
    const poll = (deviceCode: string) =>
      form("/oauth/token", { grant_type: DEVICE, client_id: clientId, device_code: deviceCode });
    const rest = () => service.db.query("UPDATE oauth_device SET polled_at = now() - interval '1 minute'");
    const started = await begin();
    expect(started.user_code).to.match(/^[B-Z]{4}-[B-Z]{4}$/);
    expect(started.verification_uri_complete).to.equal(`${service.url}/oauth/device?user_code=${started.user_code}`);
    expect((await poll(started.device_code)).body.error).to.equal("authorization_pending");
    expect((await poll(started.device_code)).body.error).to.equal("slow_down");
    const path = `/oauth/devices/${started.user_code.toLowerCase().replace("-", "")}`;
    expect((await service.rest("GET", path)).body).to.deep.include({ client: "Test program", scopes: ["read"] });
    const allow = { allow: true, appId: service.appId, scopes: ["read"] };
    expect((await service.rest("POST", path, { as: "api", body: allow })).http).to.equal(403);
    expect((await service.rest("POST", path, { body: { ...allow, scopes: ["publish"] } })).http).to.equal(400);
    expect((await service.rest("POST", path, { body: allow })).http).to.equal(200);
    expect((await service.rest("POST", path, { body: allow })).http).to.equal(404);
    await rest();
    const answer = await poll(started.device_code);
    expect(await may(answer.body.access_token)).to.equal(200);
    expect((await poll(started.device_code)).body.error).to.equal("invalid_grant");
    expect((await refresh(clientId, answer.body.refresh_token)).http).to.equal(200);

    const denied = await begin();
    await service.rest("POST", `/oauth/devices/${denied.user_code}`, { body: { allow: false } });
    expect((await poll(denied.device_code)).body.error).to.equal("access_denied");
    const late = await begin();
    await service.db.query("UPDATE oauth_device SET expires_at = now() - interval '1 second'");
    expect((await poll(late.device_code)).body.error).to.equal("expired_token");
    expect((await service.rest("GET", `/oauth/devices/${late.user_code}`)).http).to.equal(404);
  });

  it("find the metadata of the server at the address of its issuer only", async () => {
    for (const path of ["/mcp", "/oauth", "/x"]) {
      const { http } = await service.rest("GET", `/.well-known/oauth-authorization-server${path}`, { as: null });
      expect(http, path).to.equal(404);
    }
  });

  it("get faults of their requests in OAuth's form, and nobody gets a 5xx", async () => {
    const { http, body } = await service.rest("GET", "/.well-known/oauth-authorization-server", { as: null });
    expect([http, body.issuer, body.code_challenge_methods_supported]).to.deep.equal([200, service.url, ["S256"]]);
    const resource = await service.rest("GET", "/.well-known/oauth-protected-resource/mcp", { as: null });
    expect(resource.body).to.deep.include({ resource: `${service.url}/mcp`, authorization_servers: [service.url] });
    for (const fields of [
      {},
      { grant_type: "password" },
      { grant_type: "x", client_id: "\u0000" },
      { client_id: await newClient(), grant_type: "password" },
    ] as Record<string, string>[]) {
      const answer = await form("/oauth/token", fields);
      expect(answer.http, JSON.stringify(fields)).to.be.within(400, 401);
      expect(answer.body.error).to.be.a("string");
    }
    for (const wrong of [
      [],
      1,
      { redirect_uris: "x" },
      { client_name: "x".repeat(1000) },
      { grant_types: ["password"] },
      { token_endpoint_auth_method: "client_secret_basic" },
    ]) {
      const answer = await service.rest("POST", "/oauth/register", { as: null, body: wrong });
      expect(answer.http, JSON.stringify(wrong).slice(0, 60)).to.equal(400);
      expect(answer.body.error).to.match(/^invalid_/);
    }
  });

  it("get no token for another service, and one for this service or its /mcp (RFC 8707)", async () => {
    const clientId = await newClient();
    for (const resource of [
      "https://other.example/mcp",
      `${service.url}.evil.example`,
      service.url.replace("http://", "http://x@"),
      `${service.url}/mcp#x`,
      `${service.url}/v1/apps/1`,
      "mcp",
    ]) {
      expect((await decide(newRequest(clientId, { resource }).query)).http, resource).to.equal(400);
      const answer = await form("/oauth/token", { grant_type: "refresh_token", client_id: clientId, resource });
      expect([answer.http, answer.body.error], resource).to.deep.equal([400, "invalid_target"]);
      const started = await form("/oauth/device_authorization", { client_id: clientId, resource });
      expect([started.http, started.body.error], resource).to.deep.equal([400, "invalid_target"]);
    }
    for (const resource of [service.url, `${service.url}/`, `${service.url}/mcp`, `${service.url}/mcp/`])
      expect((await decide(newRequest(clientId, { resource }).query)).http, resource).to.equal(200);
  });

  it("are shown, let in and ended only by the session of a person", async () => {
    const { query } = newRequest(await newClient());
    const routes: [method: string, path: string][] = [
      ["GET", `/oauth/consent?${query}`],
      ["POST", `/oauth/consent?${query}`],
      ["GET", "/oauth/devices/BCDF-GHJK"],
      ["POST", "/oauth/devices/BCDF-GHJK"],
      ["GET", "/oauth/grants"],
      ["DELETE", "/oauth/grants/999999"],
    ];
    const { tokens } = await signedIn();
    const callers = [null, "api", "viewer", "live", tokens.access_token, "svc_editor_unknown"];
    const before = (await service.rest("GET", "/oauth/grants")).body.grants.length;
    for (const [method, path] of routes) {
      for (const as of callers) {
        const body = method === "POST" ? { allow: true, appId: service.appId, scopes: ["read"] } : undefined;
        const { http } = await service.rest(method, path, { as, ...(body && { body }) });
        const expected = as === null || as === "svc_editor_unknown" ? 401 : 403;
        expect(http, `${method} ${path} as ${as}`).to.equal(expected);
      }
    }
    expect((await service.rest("GET", "/oauth/grants")).body.grants).to.have.length(before);
  });
});
