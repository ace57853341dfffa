/**
 * Tests the sign-in of programs with the official MCP client, and attacks with codes and redirect URLs. oauth-grants.test.ts tests the
 * device flow.
 */
import { type OAuthClientProvider, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { launchChromium, watchPage } from "../web/chromium.js";
import { oauthCalls, REDIRECT_URI } from "./oauth-support.js";

describe("programs that people allow", () => {
  let service: TestService;

  before(async () => {
    service = await useSharedService("api,runner");
  });
  after(() => service?.stop());

  const { form, register, newClient, newRequest, decide, authorizeClient, may, refresh } = oauthCalls(() => service);

  it("sign in with the official MCP client, which needs only the address, and work on drafts", async () => {
    const stored: { client?: OAuthClientInformationMixed; tokens?: OAuthTokens; verifier?: string; url?: URL } = {};
    const provider: OAuthClientProvider = {
      redirectUrl: REDIRECT_URI,
      clientMetadata: {
        client_name: "MCP test",
        redirect_uris: [REDIRECT_URI],
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

  it("get a code only if a person allows it, for the app and scopes that the person chose", async () => {
    const clientId = await newClient();
    const { query } = newRequest(clientId);
    const consent = await service.rest("GET", `/oauth/consent?${query}`);
    expect(consent.body).to.deep.include({
      client: "Test program",
      to: "127.0.0.1:7777",
      scopes: ["read", "run", "manage"],
    });
    expect(consent.body.apps[0]).to.include({ id: service.appId });
    for (const as of [null, "api", "viewer", "live"]) {
      expect((await decide(query, {}, as)).http, String(as)).to.be.oneOf([401, 403]);
    }
    const { body } = await decide(query, { allow: false });
    const address = new URL(body.redirectTo);
    expect(address.origin + address.pathname).to.equal(REDIRECT_URI);
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
      { scope: ["read"] },
      { allow: false, scope: ["read"] },
    ]) {
      expect((await decide(query, wrong)).http, JSON.stringify(wrong)).to.be.within(400, 403);
    }
  });

  it("can never be allowed by a page of another origin, nor inside a frame", async () => {
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

  it("are allowed, listed and ended by a person in a browser", async () => {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const { errors } = watchPage(page, service.url);
      await browser.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1", path: "/" });
      const back = `${service.url}/docs/`;
      const clientId = await newClient({ client_name: "<b>Browser</b> test", redirect_uris: [back] });
      await page.goto(`${service.url}/oauth/authorize?${newRequest(clientId, { redirect_uri: back }).query}&app=first`);
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
      await page.setOfflineMode(true);
      await page.click("li button");
      await page.waitForSelector("::-p-xpath(//*[@role='alert'][.='The service does not answer. Try again later.'])");
      expect(await page.$$("li")).to.have.length(grants.length);
      await page.setOfflineMode(false);
      expect(errors.splice(0)).to.have.length(1);
      await page.click("li button");
      await page.waitForFunction(`document.querySelectorAll("li").length < ${grants.length}`);
      expect(await page.$("[role=alert]")).to.equal(null);
      expect(errors).to.deep.equal([]);
    } finally {
      await browser.close();
    }
  });

  it("can use only redirect addresses that they registered, exactly; on this machine with any port", async () => {
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
    const clientId = await newClient({ redirect_uris: [REDIRECT_URI, "https://app.example/cb?x=1"] });
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

  it("can use a code once, with its verifier, address and program; a second use ends the access", async () => {
    const { exchange, tokens, clientId } = await authorizeClient();
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
      { redirect_uri: `${REDIRECT_URI}2` },
      { client_id: other },
      { code: `${code}x` },
    ]) {
      const { http, body: fault } = await form("/oauth/token", { ...right, ...wrong });
      expect([http, fault.error], JSON.stringify(wrong)).to.deep.equal([400, "invalid_grant"]);
    }
    expect((await form("/oauth/token", right)).http).to.equal(200);
  });

  it("rotate refresh tokens; if one is used twice, the access of both ends", async () => {
    const { clientId, tokens } = await authorizeClient();
    const next = await refresh(clientId, tokens.refresh_token);
    expect(next.http).to.equal(200);
    expect(await may(next.body.access_token)).to.equal(200);
    expect((await refresh(clientId, tokens.refresh_token)).body.error).to.equal("invalid_grant");
    expect(await may(next.body.access_token)).to.equal(401);
    expect((await refresh(clientId, next.body.refresh_token)).body.error).to.equal("invalid_grant");
  });

  it("can refresh with fewer scopes, but not with more than the person allowed", async () => {
    const { clientId, tokens } = await authorizeClient(["read", "run"]);
    const refreshWith = (token: string, scope: string) =>
      form("/oauth/token", { grant_type: "refresh_token", client_id: clientId, refresh_token: token, scope });
    for (const scope of ["read publish", "nope"]) {
      const { http, body } = await refreshWith(tokens.refresh_token, scope);
      expect([http, body.error], scope).to.deep.equal([400, "invalid_scope"]);
    }
    const narrowTokens = (await refreshWith(tokens.refresh_token, "run")).body;
    expect(narrowTokens.scope).to.equal("run");
    expect([await may(tokens.access_token), await may(narrowTokens.access_token)]).to.deep.equal([200, 403]);
    const wideTokens = (await refresh(clientId, narrowTokens.refresh_token)).body;
    expect([wideTokens.scope, await may(wideTokens.access_token)]).to.deep.equal(["read run", 200]);
  });

  it("get an error in OAuth's form also for a body that is too large, not valid or of another type", async () => {
    const large = "x".repeat(40_000);
    for (const [path, body, headers, status] of [
      ["/oauth/token", "{}", { "content-type": "application/json" }, 400],
      ["/oauth/revoke", "a=b", { "content-type": "text/plain" }, 400],
      ["/oauth/device_authorization", `a=${large}`, { "content-type": "application/x-www-form-urlencoded" }, 413],
      ["/oauth/register", "{", { "content-type": "application/json" }, 400],
      ["/oauth/register", "a=b", { "content-type": "application/x-www-form-urlencoded" }, 400],
      ["/oauth/register", JSON.stringify({ large }), { "content-type": "application/json" }, 413],
    ] as const) {
      const answer = await service.rest("POST", path, { as: null, body, headers });
      expect([answer.http, answer.body.error], `${path} ${body.slice(0, 20)}`).to.deep.equal([
        status,
        "invalid_request",
      ]);
      expect(answer.body.error_description).to.be.a("string");
    }
    const revocation = await form("/oauth/revoke", { client_id: await newClient() });
    expect([revocation.http, revocation.body.error]).to.deep.equal([400, "invalid_request"]);
  });

  it("are allowed once by a double click, for any app of the person, and the page names the scheme that it opens", async () => {
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await browser.setCookie({ name: "auth_token", value: service.tokens.editor, domain: "127.0.0.1", path: "/" });
      // Replaces the first list by 500 other apps, the most that the service returns. So the person must enter the ID of the app.
      await page.setRequestInterception(true);
      let decisions = 0;
      page.on("request", async (request) => {
        if (request.method() === "POST") decisions += 1;
        if (request.method() !== "GET" || !/\/oauth\/consent\?(?!.*&app=\d)/.test(request.url()))
          return request.continue();
        const headers = { authorization: `Bearer ${service.tokens.editor}` };
        const consent = (await (await fetch(request.url(), { headers })).json()) as { apps: object[] };
        const apps = Array.from({ length: 500 }, (_, at) => ({ ...consent.apps[0], id: 10_000 + at }));
        return request.respond({ contentType: "application/json", body: JSON.stringify({ ...consent, apps }) });
      });
      const back = "cursor://bank.example/callback";
      const clientId = await newClient({ redirect_uris: [back] });
      await page.goto(`${service.url}/oauth/authorize?${newRequest(clientId, { redirect_uri: back }).query}`);
      const appId = await page.waitForSelector("input[name=appId]");
      const shown = () => page.$eval("#consent", (root) => root.textContent);
      expect(await shown()).to.contain("the browser opens cursor:.");
      await appId!.type("999999\n");
      await page.waitForSelector("::-p-xpath(//*[@role='alert'][.='You have no role on an app with the ID 999999.'])");
      await page.$eval("input[name=appId]", (input) => (input.value = ""));
      await appId!.type(`${service.appId}`);
      // This click takes the focus from the field, so the page shows the entered app. The click must not authorize the app shown before.
      await page.click("button.primary");
      await page.waitForFunction(`document.querySelector("select").value === "${service.appId}"`);
      expect(decisions).to.equal(0);
      const countGrants = async () => (await service.rest("GET", "/oauth/grants")).body.grants.length;
      const before = await countGrants();
      await page.$eval("button.primary", (button) => {
        button.click();
        button.click();
      });
      await page.waitForFunction(`document.querySelector("#consent").textContent.includes("Go back to your program")`);
      expect([await countGrants(), await page.$("button")]).to.deep.equal([before + 1, null]);
    } finally {
      await browser.close();
    }
  });
});
