/** Tests requests to other services with local servers: connections, decoding, redirects, retries, and the error code of each failure. */
import { once } from "node:events";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Http2SecureServer } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { expect } from "chai";
import { createAddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { isPublicAddress } from "../../src/engine/egress-proxy.js";
import {
  OutgoingError,
  type OutgoingHopSummary,
  type OutgoingRequest,
  type OutgoingRequestContext,
  OutgoingRequestSender,
  RunRequestBudget,
} from "../../src/engine/outgoing.js";
import { systemHostResolver } from "../../src/engine/public-lookup.js";
import {
  CONCURRENT_OUTGOING_REQUESTS_PER_RUN,
  OUTGOING_REQUESTS_PER_RUN_MAX,
  OUTGOING_RESPONSE_BODY_MAX_BYTES,
} from "../../src/limits.js";
import { normalizeOrigin } from "../../src/rules/integration-origins.js";
import { http2Server, tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { testContentEncodings } from "./content-encodings.js";

describe("outgoing requests", () => {
  let undoTrust: () => void;
  let server: Server | Http2SecureServer;
  let origin: string;
  let answer: RequestListener;
  let received: IncomingMessage[];
  let sockets: Set<unknown>;
  const closers: (() => void)[] = [];

  const anywhere = createAddressCheckedConnections({ mayReach: () => true, resolve: systemHostResolver });
  const sender = new OutgoingRequestSender(anywhere.connect);

  async function listen(server: Server | Http2SecureServer): Promise<number> {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const connected = new Set<Socket>();
    server.on("connection", (socket: Socket) => connected.add(socket.on("error", () => undefined)));
    closers.push(() => {
      server.close();
      for (const socket of connected) socket.destroy();
    });
    return (server.address() as AddressInfo).port;
  }

  const listener: RequestListener = (request, response) => {
    received.push(request);
    sockets.add(request.socket);
    answer(request, response);
  };

  before(async () => {
    undoTrust = trustLocalhost();
    server = tlsServer(listener);
    origin = `https://localhost:${await listen(server)}`;
  });
  after(async () => {
    await sender.close();
    for (const close of closers) close();
    undoTrust();
  });
  beforeEach(() => {
    received = [];
    sockets = new Set();
    answer = (_request, response) => response.end("ok");
  });

  const scopeOf = (more: Partial<OutgoingRequestContext> = {}): OutgoingRequestContext => ({
    pool: "1",
    budget: new RunRequestBudget(),
    mayUseOrigin: (requested) => requested === origin,
    originOf: normalizeOrigin,
    hasCredential: false,
    signal: new AbortController().signal,
    ...more,
  });

  const send = (path: string, request: Partial<OutgoingRequest> = {}, scope: Partial<OutgoingRequestContext> = {}) =>
    sender.send(
      { url: new URL(path, origin), method: "GET", headers: {}, body: null, timeoutMs: 60_000, ...request },
      scopeOf(scope),
    );

  async function failure(sent: Promise<unknown>): Promise<OutgoingError> {
    const error = await sent.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(OutgoingError);
    return error as OutgoingError;
  }

  it("resolve for every status, without Set-Cookie, over persistent connections", async () => {
    answer = (request, response) => {
      response.writeHead(Number(request.url!.slice(1)), { "set-cookie": "a=1", "x-two": ["1", "2"] }).end("text");
    };
    for (const status of [200, 204, 304, 400, 404, 418, 500, 503, 599]) {
      const { status: got, headers, body } = await send(`/${status}`);
      expect(got).to.equal(status);
      expect(headers).to.include({ "x-two": "1, 2" }).and.not.have.property("set-cookie");
      expect(body.toString()).to.equal([204, 304].includes(status) ? "" : "text");
    }
    // The pool may open a second connection before the first one is free again.
    expect(sockets.size).to.be.below(3);
  });

  it("send method, headers and body, and the encodings that can be decoded", async () => {
    let body = "";
    answer = async (request, response) => {
      for await (const part of request) body += part;
      response.end();
    };
    await send("/p?q=1", { method: "POST", headers: { "x-a": "b" }, body: Buffer.from("grüße") });
    expect(received[0]).to.deep.include({ method: "POST", url: "/p?q=1" });
    expect(received[0]!.headers).to.include({ "x-a": "b", "accept-encoding": "gzip, deflate, br, zstd" });
    expect(received[0]!.headers["content-length"]).to.equal("7");
    expect(body).to.equal("grüße");
  });

  it("use HTTP/2 if the server supports it, many at once over one connection", async () => {
    const second = http2Server(listener);
    const other = `https://localhost:${await listen(second)}`;
    const scope = { mayUseOrigin: (requested: string) => requested === other, budget: new RunRequestBudget() };
    await send(`${other}/`, {}, scope);
    await Promise.all(Array.from({ length: 8 }, () => send(`${other}/`, {}, scope)));
    expect(received.map(({ httpVersion }) => httpVersion)).to.deep.equal(Array(9).fill("2.0"));
  });

  it("never share a connection between two pools", async () => {
    await send("/", {}, { pool: "a" });
    await send("/", {}, { pool: "b" });
    expect(sockets.size).to.equal(2);
  });

  testContentEncodings({
    send: () => send("/"),
    sendHead: () => send("/", { method: "HEAD" }),
    failure,
    answerWith: (listener) => {
      answer = listener;
    },
    origin: () => origin,
  });

  it("end after their time or when they are aborted, even if the receiver of a part does not continue", async () => {
    answer = (_request, response) => response.write("part");
    const onPart = () => new Promise<void>(() => undefined);
    expect((await failure(send("/", { timeoutMs: 100, onPart }))).code).to.equal("TIMEOUT");
    const run = new AbortController();
    const reason = new Error("cancelled");
    const abort = async () => {
      run.abort(reason);
      return onPart();
    };
    const sent = send("/", { onPart: abort }, { signal: run.signal }).catch((error: unknown) => error);
    expect(await sent).to.equal(reason);
  });

  it("end with TIMEOUT if headers, body or connection do not arrive in time", async () => {
    const answers: RequestListener[] = [
      () => undefined,
      (_request, response) => response.write("part"),
      (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).flushHeaders(),
    ];
    for (const next of answers) {
      answer = next;
      expect(await failure(send("/", { timeoutMs: 100 }))).to.include({ code: "TIMEOUT", origin });
    }
    const silent = createTcpServer(() => undefined);
    const other = `https://localhost:${await listen(silent)}`;
    expect((await failure(send(`${other}/`, { timeoutMs: 100 }, { mayUseOrigin: () => true }))).code).to.equal(
      "TIMEOUT",
    );
  });

  it("end with TRANSPORT if name, connection, handshake or protocol fail, and say which", async () => {
    const reset = createTcpServer((socket) => socket.destroy());
    const plain = createTcpServer((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
    const odd = await listen(createTcpServer((socket) => socket.on("data", () => socket.end("nonsense\r\n\r\n"))));
    const unused = await listen(createTcpServer());
    closers.pop()!();
    const urls: [string, string][] = [
      ["https://no-such-host.invalid/", "ENOTFOUND"],
      [`https://127.0.0.1:${unused}/`, "ECONNREFUSED"],
      [`https://localhost:${await listen(reset)}/`, "ECONNRESET"],
      [`https://localhost:${await listen(plain)}/`, "SSL"],
      [`http://localhost:${odd}/`, "failed ("],
    ];
    for (const [url, reason] of urls) {
      const error = await failure(send(url, {}, { mayUseOrigin: () => true }));
      expect(error.code, url).to.equal("TRANSPORT");
      expect(error.message).to.include(new URL(url).origin).and.include(reason);
    }
    answer = (_request, response) => {
      response.writeHead(200, { "content-length": "100" }).write("part");
      setImmediate(() => response.destroy());
    };
    expect((await failure(send("/"))).code).to.equal("TRANSPORT");
    undoTrust();
    const { code, message } = await failure(send("/", {}, { pool: "distrustful" }));
    undoTrust = trustLocalhost();
    expect(code).to.equal("TRANSPORT");
    expect(message).to.match(/CERT|SIGNED/);
  });

  it("end with POLICY for forbidden addresses and ports, before a byte is sent", async () => {
    const strict = createAddressCheckedConnections({
      mayReach: isPublicAddress,
      mayUsePort: (port) => port === 443,
      resolve: systemHostResolver,
    });
    const outgoing = new OutgoingRequestSender(strict.connect);
    for (const url of [`${origin}/`, "https://localhost/", "https://[::1]/", "https://169.254.169.254/"]) {
      const request = { url: new URL(url), method: "GET", headers: {}, body: null, timeoutMs: 60_000 };
      const { code, message } = await failure(outgoing.send(request, scopeOf({ mayUseOrigin: () => true })));
      expect(code, url).to.equal("POLICY");
      expect(message).to.include(new URL(url).origin);
    }
    expect(received).to.deep.equal([]);
    await outgoing.close();
  });

  it("end with LIMIT for headers of more than 64 KB", async () => {
    answer = (_request, response) => response.setHeader("x-long", "a".repeat(70_000)).end();
    expect((await failure(send("/"))).code).to.equal("LIMIT");
  });

  describe("redirects", () => {
    const to =
      (location: string, status = 302) =>
      (_request: IncomingMessage, response: ServerResponse) =>
        response.writeHead(status, { location }).end();

    it("are followed on GET and HEAD, on the same origin, at most five", async () => {
      answer = (request, response) => {
        const left = Number(request.url!.slice(1));
        if (left === 0) response.end("there");
        else to(`/${left - 1}`, [301, 302, 303, 307, 308][left % 5])(request, response);
      };
      expect((await send("/5")).body.toString()).to.equal("there");
      expect((await send("/2", { method: "HEAD" })).status).to.equal(200);
      expect((await failure(send("/6"))).code).to.equal("POLICY");
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        expect((await failure(send("/1", { method }))).code, method).to.equal("POLICY");
      }
    });

    it("go to a path with characters in UTF-8 or Latin-1", async () => {
      for (const [encoding, path] of [
        ["utf8", "/caf%C3%A9?q=%C3%BC"],
        ["latin1", "/caf%C3%A9?q=%C3%BC"],
      ] as const) {
        const location = Buffer.from("/café?q=ü", encoding).toString("latin1");
        answer = (request, response) =>
          request.url === "/" ? to(location)(request, response) : response.end(request.url);
        expect((await send("/")).body.toString(), encoding).to.equal(path);
      }
    });

    it("end with POLICY for origins that are not listed, in any notation", async () => {
      const { port } = new URL(origin);
      for (const location of [
        ...["http://localhost/", `http://localhost:${port}/`, "https://localhost/", `//127.0.0.1:${port}/`],
        ...[
          `https://localhost.evil.example:${port}/`,
          `https://u:p@localhost:${port}/`,
          `https://u@localhost:${port}/`,
        ],
        ...["file:///etc/passwd", "javascript:1", "https://", `https://[::1]:${port}/`, `\\\\evil.example\\`],
      ]) {
        answer = to(location);
        expect((await failure(send("/"))).code, location).to.equal("POLICY");
      }
      expect(received).to.have.length(12);
    });

    it("go to another listed origin without the headers of the first, and never with a credential", async () => {
      const second = tlsServer((request, response) => {
        received.push(request);
        response.end("there");
      });
      const other = `https://localhost:${await listen(second)}`;
      const mayUse = () => true;
      answer = to(`${other}/x`);
      const headers = { authorization: "Bearer code", "x-api-key": "k", "accept-language": "de" };
      expect((await send("/", { headers }, { mayUseOrigin: mayUse })).body.toString()).to.equal("there");
      expect(received[1]!.headers).to.include({ "accept-language": "de" });
      expect(received[1]!.headers).to.not.have.any.keys("authorization", "x-api-key");
      const authorize: OutgoingRequestContext["authorize"] = async (hop) => ({
        ...hop,
        headers: { ...hop.headers, "x-key": "s" },
      });
      const { code } = await failure(send("/", {}, { mayUseOrigin: mayUse, authorize, hasCredential: true }));
      expect([code, received.length]).to.deep.equal(["POLICY", 3]);
      expect(received[2]!.headers).to.include({ "x-key": "s" });
    });

    it("without a Location, and 304 and 300, are returned like any other response", async () => {
      for (const status of [300, 304]) {
        answer = to("/next", status);
        expect((await send("/")).status).to.equal(status);
      }
      answer = (_request, response) => response.writeHead(302).end();
      expect((await send("/")).status).to.equal(302);
    });
  });

  it("are retried on the listed statuses, up to the number of attempts, after the server's Retry-After", async () => {
    const statuses = [503, 429, 200];
    answer = (_request, response) => {
      response.writeHead(statuses[received.length - 1] ?? 500, { "retry-after": "0" }).end();
    };
    expect((await send("/", { retry: { attempts: 3, on: [503, 429] } })).status).to.equal(200);
    received = [];
    expect((await send("/", { retry: { attempts: 2, on: [503, 429] } })).status).to.equal(429);
    received = [];
    expect((await send("/", { retry: { attempts: 5, on: [429] } })).status).to.equal(503);
    expect(received).to.have.length(1);
  });

  it("of one run are 100, redirects and retries included, and 8 at once", async () => {
    const budget = new RunRequestBudget();
    const open: ServerResponse[] = [];
    answer = (_request, response) => open.push(response);
    const all = Array.from({ length: 20 }, () => send("/", {}, { budget }));
    while (open.length < CONCURRENT_OUTGOING_REQUESTS_PER_RUN) await new Promise(setImmediate);
    expect(received).to.have.length(CONCURRENT_OUTGOING_REQUESTS_PER_RUN);
    answer = (_request, response) => response.end();
    for (const response of open) response.end();
    await Promise.all(all);
    answer = (request, response) =>
      request.url === "/r" ? response.writeHead(302, { location: "/" }).end() : response.end();
    for (let sent = all.length; sent < OUTGOING_REQUESTS_PER_RUN_MAX - 1; sent += 2) await send("/r", {}, { budget });
    expect((await failure(send("/", {}, { budget }))).code).to.equal("LIMIT");
    expect((await send("/")).status).to.equal(200);
  });

  it("of one run receive 20 MB in total", async () => {
    const budget = new RunRequestBudget();
    answer = (_request, response) => response.end(Buffer.alloc(OUTGOING_RESPONSE_BODY_MAX_BYTES));
    for (let count = 0; count < 4; count += 1) await send("/", {}, { budget });
    answer = (_request, response) => response.end("x");
    expect((await failure(send("/", {}, { budget }))).code).to.equal("LIMIT");
  });

  it("end with the run: those in progress and those that wait", async () => {
    const run = new AbortController();
    const budget = new RunRequestBudget();
    answer = (_request, response) => response.write("part");
    const all = Array.from({ length: 12 }, () => send("/", {}, { budget, signal: run.signal }));
    const ended = Promise.allSettled(all);
    while (received.length < CONCURRENT_OUTGOING_REQUESTS_PER_RUN) await new Promise(setImmediate);
    const closed = Promise.all(
      received.map(
        ({ socket }) =>
          new Promise<void>((resolve) => socket.on("error", () => undefined).once("close", () => resolve())),
      ),
    );
    run.abort(new Error("ended"));
    for (const settled of await ended) expect((settled as PromiseRejectedResult).reason.message).to.equal("ended");
    await closed;
    expect(received).to.have.length(CONCURRENT_OUTGOING_REQUESTS_PER_RUN);
  });

  it("report each hop: origin, method, status, duration, sizes and code", async () => {
    const facts: OutgoingHopSummary[] = [];
    const onHop = () => (hop: OutgoingHopSummary) => facts.push(hop);
    answer = (request, response) =>
      request.url === "/r" ? response.writeHead(302, { location: "/" }).end() : response.end("12345");
    await send("/r", {}, { onHop });
    await failure(send("https://no-such-host.invalid/", {}, { onHop, mayUseOrigin: () => true }));
    expect(facts.map(({ durationMs: _, ...rest }) => rest)).to.deep.equal([
      { origin, method: "GET", status: 302, sentBytes: 0, receivedBytes: 0, code: null },
      { origin, method: "GET", status: 200, sentBytes: 0, receivedBytes: 5, code: null },
      {
        origin: "https://no-such-host.invalid",
        method: "GET",
        status: null,
        sentBytes: 0,
        receivedBytes: 0,
        code: "TRANSPORT",
      },
    ]);
  });
});
