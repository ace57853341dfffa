/** Checks that the service accepts a session cookie only with requests of its own pages, and when a person follows a link. */
import { request } from "node:http";
import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

describe("the cookie of a signed-in person", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  /** Sends raw requests, because fetch sets the tested headers itself. */
  function send(method: string, path: string, headers: Record<string, string>, body = ""): Promise<number> {
    const cookie = `auth_token=${service.tokens.admin}`;
    const type = body === "" ? {} : { "content-type": "application/json" };
    return new Promise((resolve, reject) => {
      const sent = request(service.url + path, { method, headers: { cookie, ...type, ...headers } }, (reply) =>
        resolve(reply.resume().statusCode ?? 0),
      );
      sent.on("error", reject).end(body);
    });
  }
  const USER = JSON.stringify({ firstName: "E", lastName: "V", email: "e@v.example" });
  const read = (headers: Record<string, string>) => send("GET", "/v1/apps", headers);
  const write = (headers: Record<string, string>) => send("POST", "/v1/admin/users", headers, USER);
  const people = async () => (await service.db.query("SELECT count(*) AS count FROM person"))[0].count;

  const FOREIGN_HEADERS: [string, Record<string, string>][] = [
    ["a sandboxed document", { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }],
    ["a sandboxed document of an old browser", { origin: "null" }],
    ["another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }],
    ["another site, without an origin", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }],
    ["another port or sub-domain of this host", { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }],
  ];
  for (const [who, headers] of FOREIGN_HEADERS) {
    it(`neither reads nor writes for ${who}`, async () => {
      const before = await people();
      expect([await read(headers), await write(headers)]).to.deep.equal([401, 403]);
      expect(await people()).to.equal(before);
    });
  }

  it("does not write for a form of another site that is sent as a navigation", async () => {
    const before = await people();
    const form = { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect(await write(form)).to.equal(403);
    expect(await people()).to.equal(before);
  });

  it("opens a page that a link of another site leads to", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", accept: "text/html" };
    expect(await send("GET", `/apps/${service.appId}/viewer`, headers)).to.equal(200);
  });

  it("does not return the script of an action for a worker", async () => {
    const body = { name: "a", code: "async function execute() {}" };
    const { id } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body.action;
    const path = `/v3/apps/${service.appId}/actions/${id}/compile`;
    const same = { "sec-fetch-site": "same-origin" };
    expect(await send("GET", path, same)).to.equal(200);
    expect(await send("GET", path, { ...same, "service-worker": "script" })).to.equal(403);
  });
});

const OWN_ORIGIN = "https://actions.example.com";

/**
 * Headers that state the source of a request, each with the expected verdict. Origin decides if it is present, otherwise Sec-Fetch-Site.
 */
const SOURCES: readonly [name: string, headers: Record<string, string>, verdict: "own" | "foreign" | "unknown"][] = [
  ["the own origin", { origin: OWN_ORIGIN }, "own"],
  [
    "the own origin, whatever the browser says beside it",
    { origin: OWN_ORIGIN, "sec-fetch-site": "cross-site" },
    "own",
  ],
  ["the own origin by Sec-Fetch-Site", { "sec-fetch-site": "same-origin" }, "own"],
  ["another origin", { origin: "https://evil.example" }, "foreign"],
  [
    "another origin that claims to be the same",
    { origin: "https://evil.example", "sec-fetch-site": "same-origin" },
    "foreign",
  ],
  ["the own host over http", { origin: "http://actions.example.com" }, "foreign"],
  ["the own host at another port", { origin: `${OWN_ORIGIN}:8443` }, "foreign"],
  ["a sub-domain", { origin: "https://x.actions.example.com" }, "foreign"],
  ["a prefix of the own origin", { origin: "https://actions.example.com.evil.example" }, "foreign"],
  ["a document without an origin", { origin: "null" }, "foreign"],
  ["another site by Sec-Fetch-Site", { "sec-fetch-site": "cross-site" }, "foreign"],
  ["another sub-domain by Sec-Fetch-Site", { "sec-fetch-site": "same-site" }, "foreign"],
  ["nothing", {}, "unknown"],
];

/** Requests that change data. If `isSignIn` is true, the service checks the source of the request even without a cookie. */
const CHANGES: readonly [method: string, path: string, isSignIn: boolean][] = [
  ["POST", "/v1/auth/setup", true],
  ["POST", "/v1/auth/sign-in", true],
  ["POST", "/v1/%61uth/sign-in/?x", true],
  ["POST", "/v1/auth/sign-out", true],
  ["POST", "/v1/auth/reset", true],
  ["POST", "/v1/auth/reset/confirm", true],
  ["POST", "/v1/session", true],
  ["DELETE", "/v1/session", true],
  ["DELETE", "/v1/auth/sessions", false],
  ["PUT", "/v1/auth/account", false],
  ["POST", "/v1/apps/1/settings", false],
  ["PUT", "/v1/apps/1", false],
  ["DELETE", "/v1/apps/1/editors", false],
  ["POST", "/graphql", false],
];

describe("a request of another site (CROSS_SITE_REQUEST)", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", PUBLIC_URL: OWN_ORIGIN });
  });
  after(() => service.stop());

  interface Sent {
    http: number;
    status: string;
  }

  function send(method: string, path: string, headers: Record<string, string>): Promise<Sent> {
    return new Promise((resolve, reject) => {
      const sent = request(
        service.url + path,
        { method, headers: { "content-type": "application/json", ...headers } },
        (reply) => {
          let text = "";
          reply.on("data", (part) => {
            text += part;
          });
          reply.on("end", () => {
            const { status, errors } = JSON.parse(text || "{}");
            resolve({ http: reply.statusCode ?? 0, status: status ?? errors?.[0]?.extensions?.status ?? "" });
          });
        },
      );
      sent.on("upgrade", (_reply, socket) => {
        socket.destroy();
        resolve({ http: 101, status: "" });
      });
      sent.on("error", reject).end(method === "GET" ? "" : "{}");
    });
  }

  const credentials = () => ({
    cookie: { cookie: `auth_token=${service.tokens.admin}` },
    header: { "auth-token": service.tokens.admin },
    nothing: {},
  });

  for (const [method, path, isSignIn] of CHANGES) {
    it(`${method} ${path} is rejected or reaches the operation, by its source and credential`, async () => {
      for (const [credential, credentialHeaders] of Object.entries(credentials())) {
        for (const [name, headers, source] of SOURCES) {
          const isChecked = isSignIn || credential === "cookie";
          const isRefused = isChecked && (source === "foreign" || (source === "unknown" && credential === "cookie"));
          const { http, status } = await send(method, path, { ...headers, ...credentialHeaders });
          const message = `${credential} from ${name}: ${http} ${status}`;
          if (isRefused) expect([http, status], message).to.deep.equal([403, "CROSS_SITE_REQUEST"]);
          else expect(status, message).to.not.equal("CROSS_SITE_REQUEST");
        }
      }
    });
  }

  it("a websocket opens with the cookie only for the own origin; pages of origins that the app does not list open none", async () => {
    const upgrade = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "sec-websocket-protocol": "graphql-transport-ws",
    };
    const LISTED_ORIGIN = "https://shop.example";
    const put = { as: "editor", body: { origins: [LISTED_ORIGIN] } };
    expect((await service.rest("PUT", `/v1/apps/${service.appId}/origins`, put)).http).to.equal(200);
    const others: typeof SOURCES = [
      ["an origin that an app lists", { origin: LISTED_ORIGIN }, "foreign"],
      ["a sub-domain of it", { origin: "https://x.shop.example" }, "foreign"],
      ["a server run", { origin: "https://app-1.actions.internal" }, "foreign"],
    ];
    // Pages of these origins may also open a websocket with a token. Sandboxed pages of apps send the origin `null`.
    const open = ["null", LISTED_ORIGIN, "https://app-1.actions.internal"];
    for (const [credential, credentialHeaders] of Object.entries(credentials())) {
      for (const [name, headers, source] of [...SOURCES, ...others]) {
        const { http, status } = await send("GET", "/graphql", { ...upgrade, ...headers, ...credentialHeaders });
        const isOpen = source !== "foreign" || open.includes(headers["origin"] ?? "");
        const isRefused = !isOpen || (credential === "cookie" && source !== "own");
        const expected = isRefused ? [403, "CROSS_SITE_REQUEST"] : [101, ""];
        expect([http, status], `${credential} from ${name}`).to.deep.equal(expected);
      }
    }
  });
});

describe("the own origin without PUBLIC_URL", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("is the address of the request, over http, and behind a proxy over https", async () => {
    const { host } = new URL(service.url);
    const write = (origin: string) =>
      service.rest("POST", "/v1/apps/1/settings", {
        as: null,
        body: { a: 1 },
        headers: { cookie: `auth_token=${service.tokens.editor}`, origin },
      });
    for (const origin of [`http://${host}`, `https://${host}`]) expect((await write(origin)).http).to.equal(200);
    expect((await write("http://localhost")).body.status).to.equal("CROSS_SITE_REQUEST");
  });
});
