/** Tests RUNTIME_URL: pages that run authors' code have their own origin, which serves no other routes. */
import { get, type IncomingHttpHeaders } from "node:http";
import { expect } from "chai";
import WebSocket from "ws";
import { readConfig } from "../../src/config.js";
import { startTestService, type TestService } from "../harness/service.js";

const RUNTIME = "http://apps.example.net";

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

describe("RUNTIME_URL", () => {
  let service: TestService;
  let viewer: string;
  let debug: string;

  before(async () => {
    service = await startTestService({ ROLES: "api", RUNTIME_URL: `${RUNTIME}/` });
    const actions = `/v3/apps/${service.appId}/actions`;
    const { body } = await service.rest("POST", actions, { body: { name: "a", code: "async function execute() {}" } });
    viewer = `/apps/${service.appId}/viewer`;
    debug = `${actions}/${body.action.id}/compile?html`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(() => service.stop());

  /** Sends a request with these headers. Unlike fetch, it can send another Host header. */
  function ask(path: string, headers: Record<string, string>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      get(service.url + path, { headers: { accept: "text/html", ...headers } }, async (answer) => {
        const { statusCode: status = 0, headers } = answer;
        resolve({ status, headers, text: (await answer.toArray()).join("") });
      }).on("error", reject);
    });
  }
  const here = (path: string, as: keyof TestService["tokens"] | null = "editor") =>
    ask(path, as === null ? {} : { cookie: `auth_token=${service.tokens[as]}` });
  const there = (path: string) => ask(path, { host: "apps.example.net" });
  const sent = async (path: string) => (await here(path)).headers.location!.replace(RUNTIME, "");

  it("serves no API there, also not over websockets", async () => {
    const answer = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const socket = new WebSocket(`${service.url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
          headers: { host },
        });
        socket.on("open", () => resolve(101)).on("open", () => socket.close());
        socket.on("unexpected-response", (_request, { statusCode = 0 }) => resolve(statusCode)).on("error", reject);
      });
    expect(await answer("apps.example.net")).to.equal(404);
    expect(await answer(new URL(service.url).host)).to.equal(101);
  });

  it("redirects a browser there for the response of an HTTP trigger, with path, query and method", async () => {
    const where = { path: "shown/:id", auth: { type: "none" }, respond: "immediately" };
    const data = { name: "shown", code: "async function execute() {}", active: true };
    const actions = `/v3/apps/${service.appId}/actions`;
    const triggers = [{ trigger: "http", where }];
    const { body } = await service.rest("POST", actions, { body: { ...data, triggers } });
    await service.rest("POST", `${actions}/${body.action.id}/publish`);
    const path = `/h/${service.appId}/shown/a%2Fb?c=%20d`;
    const moved = await ask(path, {});
    expect([moved.status, moved.headers.location]).to.deep.equal([307, RUNTIME + path]);
    expect((await ask(path, { accept: "application/json" })).status, "a program stays").to.equal(202);
    expect((await there(path)).status).to.equal(202);
    await service.rest("POST", `${actions}/${body.action.id}/unpublish`);
    expect((await ask(path, {})).status, "unpublished").to.equal(404);
  });

  it("redirects a browser there with a one-time code that is no credential, and shows the page with its own token", async () => {
    for (const path of [viewer, debug]) {
      const { status, headers, text } = await here(path);
      expect([status, text, headers["cache-control"]]).to.deep.equal([302, "", "no-store"]);
      expect(headers.location).to.match(/^http:\/\/apps\.example\.net\/.*[?&]once=once_[\w-]{43}$/);
      const code = new URL(headers.location!).searchParams.get("once")!;
      expect((await service.rest("GET", "/v1/apps", { as: code })).http).to.equal(401);
      const page = await there(headers.location!.replace(RUNTIME, ""));
      expect([page.status, page.headers["cache-control"], page.headers["set-cookie"]]).to.deep.equal([
        200,
        "no-store",
        undefined,
      ]);
      expect(page.headers["content-security-policy"]).to.match(/^sandbox (?!.*allow-same-origin)/);
      expect(page.text.match(/svc_[a-z]+_/g)).to.deep.equal(["svc_viewer_"]);
    }
  });

  it("accepts a code once, and only for its own page; all others lead to the sign-in page", async () => {
    const usedUrl = await sent(viewer);
    await there(usedUrl);
    const others = await sent(debug);
    const tries = [usedUrl, viewer, debug, `${viewer}?once=${new URLSearchParams(others.split("?")[1]).get("once")}`];
    for (const path of tries) {
      const { status, headers, text } = await there(path);
      expect([status, text], path).to.deep.equal([302, ""]);
      expect(headers.location).to.equal(service.url + (path === debug ? debug : viewer));
    }
    expect((await there(others)).status).to.equal(200);
  });

  it("gives only one of three concurrent requests with a code the page", async () => {
    const path = await sent(viewer);
    const statuses = (await Promise.all([there(path), there(path), there(path)])).map(({ status }) => status);
    expect(statuses.sort()).to.deep.equal([200, 302, 302]);
  });

  it("accepts no code that is older than a minute", async () => {
    const path = await sent(viewer);
    await service.db.query("UPDATE credential SET created_at = now() - interval '61 seconds' WHERE page_session");
    expect((await there(path)).status).to.equal(302);
  });

  it("gives no code to callers who may not open the page", async () => {
    expect((await here(viewer, null)).status).to.equal(401);
    expect((await here(viewer, "live")).status).to.equal(403);
    expect((await here(debug, "viewer")).status).to.equal(403);
  });

  it("redirects a visitor of the live app there", async () => {
    const live = `/apps/${service.appId}`;
    const moved = await here(live, null);
    expect([moved.status, moved.headers.location, moved.text]).to.deep.equal([302, RUNTIME + live, ""]);
    expect((await there(live)).text).to.contain("svc_live_");
  });

  it("serves nothing else there, for any caller", async () => {
    const script = debug.replace("?html", "");
    for (const path of ["/", "/studio", "/graphql", "/docs", "/v1/apps", "/v1/session", "/assets/none.js", script]) {
      const headers = { host: "apps.example.net", cookie: `auth_token=${service.tokens.admin}` };
      expect((await ask(path, headers)).status, path).to.equal(404);
    }
    expect((await there("/client/svc.js")).status).to.equal(200);
  });

  it("is rejected at the start if its host is that of the service, because browsers share cookies between ports", () => {
    const faulty: Record<string, string>[] = [
      { RUNTIME_URL: "http://127.0.0.1:4001" },
      { RUNTIME_URL: "https://actions.example.com:8443", PUBLIC_URL: "https://actions.example.com" },
      { RUNTIME_URL: "https://ACTIONS.example.com", PUBLIC_URL: "https://actions.example.com/path" },
      { RUNTIME_URL: "https://apps.example.net/path" },
      { RUNTIME_URL: "apps.example.net" },
      { RUNTIME_URL: "https://user@apps.example.net" },
    ];
    for (const environment of faulty) expect(() => readConfig(environment)).to.throw(/^Cannot start: RUNTIME_URL must/);
  });
});

describe("PUBLIC_URL", () => {
  it("may have a path of plain segments, and a slash at its end is removed", () => {
    const read = (PUBLIC_URL: string) => readConfig({ PUBLIC_URL }).publicUrl;
    expect(read("https://example.com/")).to.equal("https://example.com");
    expect(read("https://example.com:8443/a/b-c/")).to.equal("https://example.com:8443/a/b-c");
  });

  it("is rejected with anything else; the error names the variable", () => {
    const faulty = [
      "example.com",
      "ftp://example.com",
      "https://u:p@example.com",
      "https://example.com/a?b",
      "https://",
    ];
    for (const text of [
      ...faulty,
      "https://example.com/../a",
      'https://example.com/"><script>',
      "https://exa mple.com",
    ]) {
      expect(() => readConfig({ PUBLIC_URL: text }), text).to.throw(/^Cannot start: PUBLIC_URL must/);
    }
  });
});
