/** Tests requests to the service that a run's library sends without the browser's network. They must have the same results as `fetch`. */

import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { ServiceCalls } from "../../../src/engine/browser/network/service-calls.js";
import type { ConsoleLine, PageRunRequest } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { createServiceRequestSender } from "../../../src/engine/service-requests.js";
import { failureOf, resultOf, runOf, sharedBrowsers } from "./support.js";

const ORIGIN = "https://app-1.actions.internal";
const LONG = "ä€😀".repeat(150_000);

/** Code that defines `direct` (sends a request with the library) and `byFetch` (with `fetch`). Both return the same form of result. */
const BOTH_WAYS_CODE = `
  const way = globalThis.__svcService;
  const heard = async (sent) => {
    try {
      const answer = await sent;
      const header = (name) => (answer.headers.get ? answer.headers.get(name) : answer.headers[name]) ?? null;
      const text = await answer.text().then((text) => [text.length, text.slice(-40)], (error) => error.name);
      return [answer.status, header("retry-after"), header("x-hidden"), text];
    } catch (error) {
      return error.name + ": " + error.message;
    }
  };
  const direct = (path, { method = "GET", headers = {}, body = null } = {}) => heard(way.call(method, way.base + path, headers, body));
  const byFetch = (path, init) => heard(fetch(way.base + path, { ...init, credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" }));
`;

const open = { "access-control-allow-origin": "*", "access-control-expose-headers": "Retry-After" };

let half: ServerResponse | null = null;

const ANSWERS: Record<string, RequestListener> = {
  "/fine": (_request, response) => response.writeHead(200, { ...open, "x-hidden": "h" }).end('{"a":"ä"}'),
  "/nothing": (_request, response) => response.writeHead(204, open).end(),
  "/empty": (_request, response) => response.writeHead(200, open).end(),
  "/missing": (_request, response) => response.writeHead(404, open).end('{"status":"NOT_FOUND"}'),
  "/busy": (_request, response) => response.writeHead(429, { ...open, "retry-after": "7" }).end("{}"),
  "/broken": (_request, response) => response.writeHead(500, open).end("no JSON"),
  "/long": (_request, response) => response.writeHead(200, open).end(LONG),
  "/elsewhere": (_request, response) => response.writeHead(302, { ...open, location: "/fine" }).end(),
  "/of another": (_request, response) =>
    response.writeHead(200, { "access-control-allow-origin": "https://app-2.actions.internal" }).end("secret"),
  "/of nobody": (_request, response) => response.writeHead(200).end("secret"),
  "/break": (_request, response) => {
    half?.destroy();
    response.writeHead(200, open).end();
  },
  "/half": (_request, response) => {
    half = response.writeHead(200, { ...open, "content-length": "2000000" });
    response.write("x".repeat(1_000_000));
  },
  "/closed": (request) => request.socket.destroy(),
  "/said": (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { "auth-token": token, "if-match": match, "content-type": type, origin, cookie, referer } = request.headers;
      const received = { method: request.method, token, match, type, origin, cookie, referer };
      response.writeHead(200, open).end(JSON.stringify({ ...received, body: Buffer.concat(chunks).toString() }));
    });
  },
};

describe("a call of the service", () => {
  it("ends for observers before the run gets its result, which may end the run", async () => {
    for (const isAnswered of [true, false]) {
      const order: string[] = [];
      const text = (async function* () {
        yield "x";
      })();
      const send = async () => {
        if (isAnswered) return { status: 200, headers: {}, text };
        throw new Error("no answer");
      };
      const calls = new ServiceCalls(
        async () => ({ headers: {}, reportEnd: (status, failure) => void order.push(`${status} ${failure}`) }),
        async (_id, _head, part, last) => void order.push(`${part} ${last}`),
      );
      calls.startRun({ service: { base: "http://service.example/", send } });
      await calls.receiveMessage('1:["GET","http://service.example/",{},null]');
      expect(order).to.deep.equal(isAnswered ? ["200 undefined", "x true"] : ["null no answer", "null true"]);
    }
  });
});

describe("calls of the service from a network isolate", () => {
  const mode = "network-isolate";
  let browsers: Browsers;
  let egress: EgressProxy;
  let server: Server;
  let base: string;
  let service: NonNullable<PageRunRequest["service"]>;
  /** Requests that reached the service, without preflights. */
  let receivedRequests: string[] = [];
  let held: { closed: Promise<unknown> }[] = [];
  let onHeldRequest: () => void = () => {};

  const run = (source: string, changes: Partial<PageRunRequest> = {}) =>
    resultOf(browsers, source, { mode, service, ...changes });

  before(async () => {
    server = createServer((request, response) => {
      if (request.method === "OPTIONS") {
        const allowed = { "access-control-allow-headers": "*", "access-control-allow-methods": "*" };
        return void response.writeHead(204, { ...open, ...allowed }).end();
      }
      const path = decodeURIComponent(request.url!.split("?")[0]!);
      receivedRequests.push(`${request.method} ${request.url}`);
      if (path === "/held") {
        held.push({ closed: new Promise((resolve) => response.once("close", resolve)) });
        return onHeldRequest();
      }
      const answer = ANSWERS[path];
      if (answer) answer(request, response);
      else response.writeHead(200, open).end();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const requests = createServiceRequestSender(base)!;
    service = { base, send: (request, signal) => requests.send(request, ORIGIN, signal) };
    egress = createEgressProxy({ allowPrivateNetwork: true });
    browsers = sharedBrowsers({ openProxyPort: () => egress.openProxyPort() });
    await browsers.start();
  });
  beforeEach(() => {
    receivedRequests = [];
    held = [];
    onHeldRequest = () => {};
  });
  after(async () => {
    await browsers.stop();
    egress.close();
    server.closeAllConnections();
    server.close();
  });

  for (const path of Object.keys(ANSWERS).filter((path) => path !== "/half")) {
    it(`get from ${path} the same as fetch`, async () => {
      const source = `${BOTH_WAYS_CODE} const execute = async () => [await direct(${JSON.stringify(path.slice(1))}), await byFetch(${JSON.stringify(path.slice(1))})]`;
      const [direct, byFetch] = (await run(source)) as [unknown, unknown];
      expect(direct).to.deep.equal(byFetch);
    });
  }

  it("get the same as fetch if a response ends in the middle", async () => {
    const source = `${BOTH_WAYS_CODE} const broken = async (sent) => {
        const answer = await sent;
        await direct("break");
        return [answer.status, await answer.text().catch((error) => error.name)];
      };
      const execute = async () => [
        await broken(way.call("GET", way.base + "half", {}, null)),
        await broken(fetch(way.base + "half", { credentials: "omit" }))]`;
    expect(await run(source)).to.deep.equal([
      [200, "TypeError"],
      [200, "TypeError"],
    ]);
  });

  it("send the same as fetch", async () => {
    const init = {
      method: "PUT",
      headers: { "Auth-token": "t", "If-Match": '"x"', "content-type": "application/json" },
      body: '{"a":"ä😀"}',
    };
    const source = `${BOTH_WAYS_CODE} const text = async (sent) => (await sent).text();
      const init = ${JSON.stringify(init)};
      const execute = async () => [
        await text(way.call(init.method, way.base + "said", init.headers, init.body)),
        await text(fetch(way.base + "said", { ...init, credentials: "omit", referrerPolicy: "no-referrer" }))]`;
    const [direct, byFetch] = (await run(source)) as [string, string];
    expect(JSON.parse(direct)).to.include({
      method: "PUT",
      token: "t",
      match: '"x"',
      origin: ORIGIN,
      body: init.body,
    });
    expect(JSON.parse(direct)).to.deep.equal(JSON.parse(byFetch));
  });

  it("do not use the proxy port, and count the host once beside it", async () => {
    const hosts: string[] = [];
    const source = `${BOTH_WAYS_CODE} const execute = async () => [await direct("fine"), await direct("fine"), await byFetch("fine")]`;
    await run(source, { onHost: (host) => hosts.push(host) });
    expect(hosts).to.deep.equal([new URL(base).host]);
    const without: string[] = [];
    await run(`${BOTH_WAYS_CODE} const execute = () => direct("fine")`, {
      onHost: (host) => without.push(host),
      service: { ...service, send: async () => ({ status: 200, headers: {}, text: (async function* () {})() }) },
    });
    expect(without).to.deep.equal([new URL(base).host]);
  });

  it("are checked before anything is sent, and blocked ones are reported on the console", async () => {
    const lines: ConsoleLine[] = [];
    const checkedUrls: string[] = [];
    const mayRequest = (url: string) => {
      checkedUrls.push(url);
      return !url.includes("canary");
    };
    const source = `${BOTH_WAYS_CODE} const execute = async () => [await direct("fine?a=canary"), await direct("fine?a=1"), await byFetch("fine?a=canary")]`;
    const [blocked, allowed, byFetch] = (await run(source, { mayRequest, onConsole: (line) => lines.push(line) })) as [
      unknown,
      unknown[],
      unknown,
    ];
    expect(blocked).to.equal("TypeError: Failed to fetch");
    expect(blocked).to.equal(byFetch);
    expect(allowed[0]).to.equal(200);
    expect(checkedUrls.slice(0, 2)).to.deep.equal([`${base}fine?a=canary`, `${base}fine?a=1`]);
    expect(receivedRequests).to.deep.equal(["GET /fine?a=1"]);
    expect(lines.map(({ text }) => text)).to.deep.equal([
      "A request failed: an address: the request was blocked, because its URL contains a secret of the app",
    ]);
  });

  it("are logged like other requests: with headers, and their end by its status", async () => {
    const followed: unknown[] = [];
    const onRequest = ({ method, url }: { method: string; url: string }) => ({
      headers: { traceparent: "00-1-2-01" },
      endTrace: (status: number | null) => void followed.push([method, url, status]),
    });
    const source = `${BOTH_WAYS_CODE} const execute = async () => [await direct("missing"), await direct("closed")]`;
    await run(source, { mayRequest: () => true, onRequest });
    expect(followed).to.deep.equal([
      ["GET", `${base}missing`, 404],
      ["GET", `${base}closed`, null],
    ]);
  });

  it("execute six at once and queue the others", async () => {
    let most = 0;
    let now = 0;
    const sixRequests = Promise.withResolvers<void>();
    const counted: PageRunRequest["service"] = {
      base,
      async send(request, signal) {
        now += 1;
        most = Math.max(most, now);
        if (now === 6) sixRequests.resolve();
        // Each request waits until six have arrived. Otherwise, the service could respond to the first one before the next one arrives.
        await sixRequests.promise;
        const response = await service.send(request, signal);
        now -= 1;
        return response;
      },
    };
    const source = `${BOTH_WAYS_CODE} const execute = async () => {
      const all = await Promise.all(Array.from({ length: 300 }, (_, n) => direct("fine?" + n)));
      return all.filter(([status]) => status === 200).length }`;
    expect(await run(source, { service: counted })).to.equal(300);
    expect(most).to.equal(6);
  });

  it("use the network if they are longer than a message may be", async () => {
    const source = `${BOTH_WAYS_CODE} const execute = async () =>
      [128 * 1024, 128 * 1024 + 1].map((length) => way.call("POST", way.base + "said", {}, "x".repeat(length)) === null)`;
    expect(await run(source)).to.deep.equal([false, true]);
  });

  it("end with the run: those in progress are aborted, and nothing is sent afterwards", async () => {
    const started = new Promise<void>((resolve) => {
      onHeldRequest = () => held.length === 6 && resolve();
    });
    const source = `${BOTH_WAYS_CODE}
      const execute = ({ payload }) => {
        for (let n = 0; n < 20; n += 1) direct("held");
        const again = () => { direct("late"); setTimeout(again, 0) };
        setTimeout(again, 0);
        return new Promise(() => {});
      }`;
    const cancel = new AbortController();
    const outcome = browsers.run(runOf(source, { mode, service, signal: cancel.signal }));
    await started;
    cancel.abort();
    expect((await outcome).ok).to.equal(false);
    await Promise.all(held.map(({ closed }) => closed));
    const countAtEnd = receivedRequests.length;
    expect(await run(`${BOTH_WAYS_CODE} const execute = async () => (await direct("fine"))[0]`)).to.equal(200);
    expect(receivedRequests.slice(countAtEnd)).to.deep.equal(["GET /fine"]);
  });

  it("of a run that returned leave nothing for the next one in the same page", async () => {
    const source = `${BOTH_WAYS_CODE} const execute = () => { setInterval(() => direct("late"), 0); direct("held"); return 1 }`;
    let sent: string[] = [];
    const counted: PageRunRequest["service"] = {
      base,
      send(request, signal) {
        sent.push(request.url);
        return service.send(request, signal);
      },
    };
    for (let n = 0; n < 3; n += 1) {
      await run(source, { service: counted });
      // Late requests of the previous run must not count.
      sent = [];
      const next = `${BOTH_WAYS_CODE} const execute = async () => (await direct("fine"))[0]`;
      expect(await run(next, { service: counted })).to.equal(200);
      expect(sent).to.deep.equal([`${base}fine`]);
    }
  });

  it("made while the previous run ends take no slots of the next one", async () => {
    const busy = "for (const end = Date.now() + 60; Date.now() < end; ) for (let n = 0; n < 9; n += 1) direct('late')";
    const source = `${BOTH_WAYS_CODE} const execute = () => { setTimeout(() => { ${busy} }); return 1 }`;
    await run(source);
    expect(await run(`${BOTH_WAYS_CODE} const execute = async () => (await direct("fine"))[0]`)).to.equal(200);
  });

  it("do not exist without a service or without a network", async () => {
    const source = "const execute = async () => typeof globalThis.__svcService";
    expect(await resultOf(browsers, source, { mode })).to.equal("undefined");
    expect(await resultOf(browsers, source, { mode: "isolate", service })).to.equal("undefined");
    expect(await resultOf(browsers, source, { mode: "document", service })).to.equal("undefined");
  });

  it("that got no response have the reason in the console of a failed run", async () => {
    const lines: string[] = [];
    const source = `${BOTH_WAYS_CODE} const execute = async () => { await way.call("GET", way.base + "closed", {}, null) }`;
    const failure = await failureOf(browsers, source, {
      mode,
      service,
      onConsole: ({ text }) => lines.push(text),
    });
    expect(failure.error.message).to.match(/^Failed to fetch /);
    expect(lines).to.deep.equal([
      `A request failed: ${base.slice(0, -1)}: the service could not be reached (ECONNRESET)`,
    ]);
  });
});
