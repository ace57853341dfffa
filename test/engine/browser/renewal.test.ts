/**
 * Checks the state that a run's requests leave in the browser, such as caches and credentials. The next run in the same page must find none
 * of it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { CDPSession } from "puppeteer";
import type { Chromium } from "../../../src/engine/browser/browser-source.js";
import { Page } from "../../../src/engine/browser/pages/page.js";
import { PagePool } from "../../../src/engine/browser/pages/pool.js";
import { EVALUATION_MODES, type EvaluationMode, modeHasNetwork } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { until } from "../../harness/until.js";
import { runOf, startTestChromium } from "./support.js";

const ORIGIN = runOf("").origin;

/** Title, code that uses `url`, and the requests that the host must receive from each of two runs. */
const LEFTOVERS: [string, string, string[], EvaluationMode?][] = [
  ["a cached answer", "await (await fetch(url + '/cached')).text()", ["GET /cached"]],
  [
    "a cached answer that is asked for by force",
    "await (await fetch(url + '/cached', { cache: 'force-cache' })).text()",
    ["GET /cached"],
  ],
  ["a cached redirect", "await (await fetch(url + '/moved')).text()", ["GET /moved", "GET /cached"]],
  [
    "a preflight",
    "await fetch(url + '/put', { method: 'PUT', headers: { 'x-own': '1' } })",
    ["OPTIONS /put", "PUT /put"],
  ],
  ["a cookie", "await fetch(url + '/cookie', { credentials: 'include' })", ["GET /cookie"]],
  ["an answer nobody read", "await fetch(url + '/cached')", ["GET /cached"]],
  ["a failed request", "await fetch(url + '/closed').catch(() => {})", ["GET /closed"]],
  [
    "a picture in the page's memory",
    "const i = new Image(); i.src = url + '/picture'; await new Promise((r) => { i.onload = i.onerror = r })",
    ["GET /picture"],
    "document",
  ],
  ["a script in the page's memory", "await import(url + '/script.js').catch(() => {})", ["GET /script.js"], "document"],
];

/**
 * Title, code of a run, and the modes in which it runs. The code tries to send a user name and a password: in a URL (`named` of
 * CREDENTIALS_CODE), as arguments, or by the path `/in`, which the host redirects to such a URL. The host must get neither of them.
 */
const NEVER_SENT_CREDENTIALS: [string, string, EvaluationMode[]][] = [
  ["a request", "await fetch(named + '/auth', hidden)", ["network-isolate", "document"]],
  ["a redirect", "await fetch(url + '/in', hidden)", ["network-isolate", "document"]],
  ["a redirect that is read", "await fetch(url + '/in', { credentials: 'include' })", ["network-isolate", "document"]],
  ["a redirect of what may go on", "await fetch(url + '/in', { ...hidden, keepalive: true })", ["network-isolate"]],
  ["XMLHttpRequest.open", "await loaded('/auth', 'me', 'mine')", ["document"]],
  ["a picture's redirect", "const i = new Image(); i.src = url + '/in'; await i.decode()", ["document"]],
  ["a script's redirect", "await import(url + '/in')", ["document"]],
];
/** Title, code and modes. The credentials reach the host, and so the page is replaced after the run. */
const CREDENTIALS_SENT_ONCE: [string, string, EvaluationMode[]][] = [
  ["a redirect of what may go on", "fetch(url + '/in', { ...hidden, keepalive: true }).catch(() => {})", ["document"]],
  ["a beacon's redirect", "navigator.sendBeacon(url + '/in', 'x')", ["document"]],
  ["a socket", "new WebSocket(named.replace('http', 'ws') + '/auth')", ["document"]],
  [
    "a socket's stream",
    "new WebSocketStream(named.replace('http', 'ws') + '/auth').opened.catch(() => {})",
    ["document"],
  ],
  ["a navigation", "location.href = named + '/auth/none'", ["document"]],
  ["a navigation's redirect", "location.href = url + '/in/none'", ["document"]],
];
const CREDENTIALS_CODE = `const named = url.replace("//", "//me:mine@"), hidden = { mode: "no-cors", credentials: "include" };
  const loaded = (path, ...who) => new Promise((resolve) => {
    const x = new XMLHttpRequest(); x.open("GET", url + path, true, ...who); x.withCredentials = true; x.onloadend = resolve; x.send();
  });`;

function answer(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Access-Control-Allow-Origin", ORIGIN);
  response.setHeader("Access-Control-Allow-Credentials", "true");
  response.setHeader("Cache-Control", "public, max-age=9999");
  response.setHeader("Set-Cookie", "left=1; Max-Age=9999; SameSite=None; Secure");
  const { url = "" } = request;
  if (request.method === "OPTIONS") {
    const allowed = { "Access-Control-Allow-Methods": "PUT", "Access-Control-Allow-Headers": "x-own, authorization" };
    response.writeHead(204, { ...allowed, "Access-Control-Max-Age": "9999" }).end();
  } else if (url === "/moved") response.writeHead(301, { Location: "/cached" }).end();
  else if (url.startsWith("/in")) {
    response.writeHead(302, { Location: `http://me:mine@${request.headers.host}${url.replace("/in", "/auth")}` }).end();
  } else if (url === "/closed") request.socket.destroy();
  else if (url.startsWith("/auth") && request.headers.authorization === undefined) {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="x"' }).end();
  } else if (url === "/auth/none") response.writeHead(204).end();
  else if (url === "/script.js") response.writeHead(200, { "Content-Type": "text/javascript" }).end("export default 1");
  else response.end("answer");
}

describe("after the requests of a run", () => {
  let server: Server;
  let proxy: EgressProxy;
  let chromium: Chromium;
  let url: string;
  let receivedRequests: string[] = [];
  let connections = 0;
  const hasName = (request: string) => request.includes(" as me");

  before(async () => {
    server = createServer(async (request, response) => {
      const { authorization, cookie } = request.headers;
      const who = authorization ? ` as ${Buffer.from(authorization.slice(6), "base64").toString().split(":")[0]}` : "";
      receivedRequests.push(`${request.method} ${request.url}${who}${cookie ? ` with ${cookie}` : ""}`);
      // The host responds to /last-request after a request with the user name. If none arrives, it closes the connection.
      if (request.url === "/last-request")
        await until(() => receivedRequests.some(hasName)).catch(() => request.destroy());
      answer(request, response);
    });
    server.on("connection", () => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    proxy = createEgressProxy({ allowPrivateNetwork: true });
    chromium = await startTestChromium();
  });
  after(async () => {
    await chromium.stop();
    proxy.close();
    server.close();
    server.closeAllConnections();
  });

  for (const [index, mode] of EVALUATION_MODES.filter(modeHasNetwork).entries()) {
    describe(`in mode ${mode}`, () => {
      const slot = { key: "key", origin: ORIGIN, mode };
      let page: Page;
      /** Opens a page. Tries again if a busy machine takes too long. */
      async function open(): Promise<void> {
        do {
          await page?.discard();
          const proxyPort = await proxy.openProxyPort();
          page = new Page(chromium.connection, proxyPort, () => null);
          await page.open().catch(() => {});
        } while (!page.isUsable || !(await page.setUp(ORIGIN, mode)));
      }
      beforeEach(open);
      afterEach(() => page.discard());

      async function requestsOf(code: string): Promise<string[]> {
        receivedRequests = [];
        const outcome = await page.run(
          runOf(`const execute = async () => { const url = "${url}"; ${code} }`, { mode }),
        );
        expect(outcome.ok).to.equal(true);
        return receivedRequests;
      }

      const leftovers = LEFTOVERS.filter(([, , , only = mode]) => only === mode);
      for (const [title, code, expected] of sampleOf(leftovers, index, 4)) {
        it(`nothing of ${title} remains, and the page serves the next run`, async () => {
          // A page that was replaced proves nothing about renewal, so only renewed pages count.
          for (let renewed = 0; renewed < 2; ) {
            expect(await requestsOf(code)).to.deep.equal(expected);
            if (await page.resetSandbox()) renewed += 1;
            else await open();
          }
        });
      }

      const requests = [
        ...NEVER_SENT_CREDENTIALS.map((credential) => [...credential, false] as const),
        ...CREDENTIALS_SENT_ONCE.map((credential) => [...credential, true] as const),
      ];
      const requestsHere = requests.filter(([, , modes]) => modes.includes(mode));
      for (const [title, code, , isReceived] of sampleOf(requestsHere, index, 4)) {
        it(`no name and password of a URL remain, by ${title}: ${isReceived ? "the page is replaced" : "no host receives them"}`, async () => {
          const lastRequest = isReceived ? "await fetch(url + '/last-request')" : "";
          const first = await requestsOf(
            `${CREDENTIALS_CODE} await (async () => { ${code} })().catch(() => {}); ${lastRequest}`,
          );
          expect(first.some(hasName), first.join()).to.equal(isReceived);
          const isReusable = await page.resetSandbox();
          if (isReceived) expect(isReusable).to.equal(false);
          if (!isReusable) await open();
          const again = mode === "document" ? "await loaded('/auth')" : "";
          const next = await requestsOf(
            `${CREDENTIALS_CODE} await fetch(url + "/auth", { credentials: "include" }); ${again}`,
          );
          expect(next[0]).to.equal("GET /auth");
          expect(next.filter(hasName)).to.deep.equal([]);
        });
      }

      it("no storage remains, and no service worker that would answer for the host", async () => {
        const store = `localStorage.setItem("left", "1"); indexedDB.open("left"); await caches.open("left");
          await navigator.serviceWorker.register("/worker.js");`;
        // The result does not matter, because a service worker may end the page.
        await page.run(
          runOf(`const execute = async () => { try { ${store} } catch {} await fetch("${url}/data") }`, { mode }),
        );
        if (!(await page.resetSandbox())) await open();
        const look = `return [typeof localStorage === "object" && localStorage.length, typeof indexedDB === "object" && (await indexedDB.databases()).length,
          typeof caches === "object" && (await caches.keys()).length,
          typeof navigator === "object" && (await navigator.serviceWorker?.getRegistrations().catch(() => []))?.length]`;
        const outcome = await page.run(runOf(`const execute = async () => { ${look} }`, { mode }));
        const none = mode === "document" ? 0 : false;
        expect(
          JSON.parse(String((outcome.ok && outcome.data) || "[]")).map((count: unknown) => count ?? none),
        ).to.deep.equal(Array(4).fill(none));
      });

      it("no connection remains: each run opens its own", async () => {
        for (let run = 0; run < 2; run += 1) {
          connections = 0;
          await requestsOf("for (let i = 0; i < 3; i += 1) await (await fetch(url + '/' + i)).text()");
          expect(connections).to.be.at.least(1);
          if (!(await page.resetSandbox())) await open();
        }
      });

      longTest("no run waits: if the page must be replaced, another one is ready", async () => {
        const pool = new PagePool({
          chromium,
          getCrashCause: () => null,
          openProxyPort: () => proxy.openProxyPort(),
          openingQueue: { enter: async () => () => undefined },
          spareContexts: 1,
          idlePagesMax: 4,
        });
        await pool.fillSparePages();
        const first = await pool.acquire(slot);
        pool.release(first, slot, false);
        const next = await pool.acquire(slot);
        expect(next).to.not.equal(first);
        expect(first.isUsable).to.equal(false);
        pool.release(next, slot, false);
        // The pool renews an idle page in advance, so the next caller gets a ready page.
        await until(() => pool.countIdlePages().warm === 1);
        expect((await pool.acquire(slot)).isReady).to.equal(true);
        expect(pool.countIdlePages().warm).to.equal(0);
      });

      if (mode === "network-isolate")
        it("no request after the result remains, and the page serves the next run", async () => {
          let isReused = false;
          // On a busy machine, a renewal may take too long, so the test makes up to five attempts.
          for (let tries = 0; tries < 5 && !isReused; tries += 1) {
            expect(await requestsOf("setInterval(() => fetch(url + '/late').catch(() => {}), 0)")).to.deep.equal([]);
            isReused = await page.resetSandbox();
            if (!isReused) await open();
          }
          expect(isReused).to.equal(true);
        });

      if (mode === "network-isolate")
        it("no unread body remains: it is aborted at once", async () => {
          const ends: string[] = [];
          const watch = (session: CDPSession) => {
            const requestIds = new Set<string>();
            session.on("Network.requestWillBeSent", ({ requestId, request }) => {
              if (request.url === `${url}/data`) requestIds.add(requestId);
            });
            session.on("Network.loadingFinished", ({ requestId }) => requestIds.has(requestId) && ends.push("whole"));
            session.on("Network.loadingFailed", ({ requestId }) => requestIds.has(requestId) && ends.push("ended"));
          };
          chromium.connection.on("sessionattached", watch);
          await open();
          for (const [code, end] of [
            ["await fetch(url + '/data')", "ended"],
            ["await (await fetch(url + '/data')).text()", "whole"],
          ] as const) {
            ends.length = 0;
            await requestsOf(code);
            if (!(await page.resetSandbox())) await open();
            expect(ends).to.deep.equal([end]);
          }
          chromium.connection.off("sessionattached", watch);
        });

      const endless = "(async () => { for (;;) await fetch(url + '/again', { keepalive: true }).catch(() => {}) })()";
      if (mode === "network-isolate")
        it("no request of an isolate is sent after the end of its run", async () => {
          let isReused = false;
          // If a request of the run arrives late, the page is replaced, and the test tries again.
          for (let tries = 0; tries < 5 && !isReused; tries += 1) {
            await requestsOf(endless);
            isReused = await page.resetSandbox();
            if (!isReused) await open();
          }
          expect(isReused).to.equal(true);
          // Earlier requests may still arrive. But if the code still ran, it would send requests in every second.
          await until(async () => {
            const before = receivedRequests.length;
            await delay(1_000);
            return receivedRequests.length === before;
          });
        });
      else
        it("the page is replaced if a request is sent after the end of the run", async () => {
          await requestsOf(endless);
          expect(await page.resetSandbox()).to.equal(false);
        });
    });
  }
});
