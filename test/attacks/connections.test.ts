import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import type { FormattedExecutionResult } from "graphql";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { createClientAddressGetter } from "../../src/api/address.js";
import { createHttpEntryPoint } from "../../src/api/health.js";
import { createHttpServer, type HttpServerLimits } from "../../src/api/port.js";
import { ConfigError, readConfig } from "../../src/config.js";
import { NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE } from "../../src/limits.js";
import { hashVisitorAddress } from "../../src/operations/client/visitors.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SHORT_LIMITS: HttpServerLimits = {
  ...{ headTimeoutMs: 100, requestTimeoutMs: 200, uploadTimeoutMs: 60_000, checkIntervalMs: 20 },
  ...{ connectionsMax: 1_000, silentConnectionsPerAddress: 20 },
};

describe("connections that waste the port", () => {
  const sockets: Socket[] = [];
  const closeFunctions: (() => void)[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const close of closeFunctions.splice(0)) close();
  });

  async function listen(limits: Partial<HttpServerLimits> = {}): Promise<number> {
    const entryPoint = createHttpEntryPoint({});
    entryPoint.forwardRequestsTo((request, response) => request.resume().once("end", () => response.end()));
    const server = createHttpServer(entryPoint, { ...SHORT_LIMITS, ...limits });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closeFunctions.push(() => server.close().closeAllConnections());
    return (server.address() as AddressInfo).port;
  }

  async function open(port: number, text = ""): Promise<{ socket: Socket; ended: Promise<string> }> {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    let received = "";
    socket.on("data", (data) => (received += data)).on("error", () => undefined);
    const ended = once(socket, "close").then(() => received);
    await once(socket, "connect");
    if (text) socket.write(text);
    return { socket, ended };
  }

  for (const [title, text] of [
    ["sends nothing", ""],
    ["stops within its headers", "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: "],
    ["stops within its body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"],
  ] as const) {
    it(`are closed if one ${title}`, async () => {
      const { ended } = await open(await listen(), text);
      expect(await ended).to.match(
        /^HTTP\/1\.1 408 [\s\S]*"error":"the service did not receive the whole request in time"}$/,
      );
    });
  }

  it("are limited for one address while they are silent: the oldest are closed, new ones are served", async () => {
    const port = await listen({ headTimeoutMs: 60_000, requestTimeoutMs: 60_000 });
    const silentSockets = [];
    for (let count = 0; count < 50; count += 1) silentSockets.push(await open(port));
    await Promise.all(silentSockets.slice(0, 30).map(({ ended }) => ended));
    expect(silentSockets.slice(30).every(({ socket }) => !socket.destroyed)).to.equal(true);
    const { ended } = await open(port, "GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect(await ended).to.match(/^HTTP\/1\.1 200 /);
  });

  it("stay open after a request, while silent connections of the same address are closed", async () => {
    const port = await listen({ silentConnectionsPerAddress: 1, headTimeoutMs: 60_000, requestTimeoutMs: 60_000 });
    const { socket } = await open(port, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    await open(port);
    await open(port);
    socket.write("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(String(await once(socket, "data"))).to.match(/^HTTP\/1\.1 200 /);
  });
});

describe("every response", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  it("has the declared content type: health, metrics, data, errors, pages, scripts, and requests that are no HTTP", async () => {
    const paths = [
      "/health/live",
      "/health/ready",
      "/metrics",
      "/nowhere",
      "/v3/apps/1/actions",
      "/v1/apps/1/settings",
    ];
    for (const path of [
      ...paths,
      "/graphql",
      "/studio",
      "/client/svc.js",
      "/v1/apps/1/env.js",
      "/apps/1",
      "/%E0%A4%A",
    ]) {
      const { headers } = await service.rest("GET", path);
      expect(headers.get("x-content-type-options"), path).to.equal("nosniff");
    }
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname).end("hello\r\n\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).to.contain("\r\nX-Content-Type-Options: nosniff\r\n");
  });
});

describe("the address of a visitor", () => {
  /** Values of TRUST_PROXY: none, a proxy that the requests do not pass, the address of the actual proxy, and the number of proxies. */
  const PROXIES = {
    none: {},
    elsewhere: { TRUST_PROXY: "10.0.0.0/8" },
    address: { TRUST_PROXY: "127.0.0.1,::1" },
    count: { TRUST_PROXY: "1" },
  };
  type Proxy = keyof typeof PROXIES;
  const FORWARDED_HEADERS = { "x-forwarded-for": "198.51.100.1" };
  const services = {} as Record<Proxy, TestService>;
  before(async () => {
    for (const [proxy, environment] of Object.entries(PROXIES)) {
      const service = await startTestService({ ROLES: "api", INTAKE_QUOTA_MB: "1", ...environment });
      services[proxy as Proxy] = service;
      await service.rest("POST", "/v1/apps/1/publish");
    }
  });
  after(async () => {
    for (const service of Object.values(services)) await service.stop();
  });

  longTest("is reported by the doctor if a proxy in a private network is not trusted", async () => {
    const readIgnoredProxy = async (proxy: Proxy, headers: Record<string, string>) => {
      const { rest, db } = services[proxy];
      await rest("GET", "/v3/apps/1/actions", { headers });
      const instance =
        "SELECT ignored_proxy, lease_until > $1::timestamptz + interval '1 second' AS renewed, lease_until FROM instance WHERE roles <> '{}'";
      let [row] = await db.query(instance, [new Date(0)]);
      // A renewal of the lease may have started before the request. The next renewal starts after the request, so the test waits for two.
      for (let renewal = 0; renewal < 2; renewal += 1) {
        const last = row.lease_until;
        row = await until(async () => {
          const [next] = await db.query(instance, [last]);
          return next.renewed && next;
        });
      }
      return row.ignored_proxy;
    };
    expect(await readIgnoredProxy("none", {})).to.equal(null);
    const proxies: Proxy[] = ["none", "elsewhere", "address", "count"];
    const found = await Promise.all(proxies.map((proxy) => readIgnoredProxy(proxy, FORWARDED_HEADERS)));
    expect(found).to.deep.equal(["127.0.0.1", "127.0.0.1", null, null]);
  });

  it("is not reported if a client of the internet sends the header itself", () => {
    const ignored: string[] = [];
    const getClientAddress = createClientAddressGetter(false, (proxy) => ignored.push(proxy));
    for (const remoteAddress of ["203.0.113.5", "2001:db8::5", "::ffff:203.0.113.5", "10.1.2.3", "fd00::1", "::1"]) {
      const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": "198.51.100.1" } };
      expect(getClientAddress(request as unknown as IncomingMessage)).to.equal(remoteAddress);
    }
    expect(ignored).to.deep.equal(["10.1.2.3", "fd00::1", "::1"]);
  });

  /**
   * Opens one websocket for each X-Forwarded-For header and sends three large events. The limit of an address is below six such events.
   * Returns "sent" or the status of the error for each header.
   */
  async function sendOverSockets(proxy: Proxy, headers: string[]): Promise<string[]> {
    const service = services[proxy];
    const events = Array.from({ length: 3 }, () => ({
      createdAt: 1,
      type: "analytics.pageView",
      data: { text: "x".repeat(30_000) },
    }));
    const query =
      "mutation ($events: [AnalyticsEventInput!]!) { recordAnalytics(appId: 1, events: $events) { __typename } }";
    const statuses: string[] = [];
    for (const header of headers) {
      const client = createClient({
        url: `${service.url.replace("http", "ws")}/graphql`,
        webSocketImpl: class extends WebSocket {
          constructor(url: string, protocols: string[]) {
            super(url, protocols, { headers: { "x-forwarded-for": header } });
          }
        },
        connectionParams: { authToken: service.tokens.live },
        retryAttempts: 0,
      });
      const result = await new Promise<FormattedExecutionResult>((resolve, reject) =>
        client.subscribe({ query, variables: { events } }, { next: resolve, error: reject, complete: () => undefined }),
      );
      await client.dispose();
      statuses.push(String(result.errors?.[0]?.extensions?.["status"] ?? "sent"));
    }
    return statuses;
  }

  it("follows the same rule on a websocket as over HTTP", async () => {
    const [mine, other, claimed] = ["198.51.100.1", "198.51.100.2", "198.51.100.3, 198.51.100.1"];
    const full = "RATE_LIMIT_EXCEEDED";
    expect(await sendOverSockets("none", [mine, other])).to.deep.equal(["sent", full]);
    for (const proxy of ["address", "count"] as const)
      expect(await sendOverSockets(proxy, [mine, other, claimed])).to.deep.equal(["sent", "sent", full]);
  });

  /** Requests an app's page `length` times at once, each with another X-Forwarded-For header. Returns the HTTP statuses. */
  async function visit(proxy: Proxy, header: (at: number) => string, from = 0, length = 20): Promise<number[]> {
    const statuses = Array.from({ length }, async (_, at) => {
      const headers = { accept: "text/html", "x-forwarded-for": header(from + at) };
      return (await services[proxy].rest("GET", "/apps/1", { as: null, headers })).http;
    });
    return Promise.all(statuses);
  }
  /** Repeats `visit` until the service refuses a request. The limit of an address refills over time, so the number of requests varies. */
  async function visitUntilRefused(proxy: Proxy, header: (at: number) => string): Promise<void> {
    let statuses: number[] = [];
    for (let from = 0; !statuses.includes(429); from = (from + 20) % 240) statuses = await visit(proxy, header, from);
  }

  it("is that of the connection: X-Forwarded-For is ignored unless a proxy is trusted", async () => {
    for (const proxy of sampleOf(["none", "elsewhere"] as const, 1, 2))
      await visitUntilRefused(proxy, (at) => `192.0.2.${at}`);
  });

  it("is what the trusted proxy reports in the records of page sessions", async () => {
    for (const proxy of ["address", "count"] as const) {
      const addresses = Array.from({ length: 5 }, (_, at) => `192.0.2.${at}`);
      const statuses = await visit(proxy, (at) => `198.51.100.9, ${addresses[at]}`, 0, addresses.length);
      expect(statuses).to.deep.equal(Array(addresses.length).fill(200));
      const blocks = addresses.map((address) => hashVisitorAddress(1, address));
      const sql = "SELECT DISTINCT visitor_block FROM credential WHERE visitor_block = ANY ($1)";
      expect(await services[proxy].db.query(sql, [blocks]), proxy).to.have.length(addresses.length);
    }
  });

  longTest("is what the trusted proxy reports, not what the visitor sent to the proxy", async () => {
    for (const proxy of ["address", "count"] as const) {
      for (let from = 0; from < NEW_VISITOR_SESSIONS_PER_ADDRESS_AND_MINUTE + 40; from += 20)
        expect(new Set(await visit(proxy, (at) => `192.0.2.${at}`, from))).to.deep.equal(new Set([200]));
    }
    await visitUntilRefused("count", (at) => `192.0.2.${at}, 203.0.113.1`);
  });

  it("depends on TRUST_PROXY, whose value must be a count or a list of addresses, but not all addresses", () => {
    for (const value of [
      "true",
      "0",
      "10",
      "*",
      "0.0.0.0/0",
      "::/0",
      "10.0.0.0/33",
      "10.0.0.1/8/8",
      "proxy.example",
      "10.0.0.1;",
    ]) {
      expect(() => readConfig({ TRUST_PROXY: value }), value).to.throw(ConfigError, "TRUST_PROXY must be");
    }
    expect(readConfig({ TRUST_PROXY: "10.0.0.1, fd00::/8" }).trustProxy).to.deep.equal(["10.0.0.1", "fd00::/8"]);
  });
});
