/** Checks that a run causes no requests after its end. Also checks that its requests reach the host before its end. */
import { once } from "node:events";
import { type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import type { EvaluationMode } from "../../src/engine/browser/run.js";
import { type ReachableHost, reachableHost } from "../engine/browser/host.js";
import { resultOf, runOf } from "../engine/browser/support.js";
import { sampleOf } from "../harness/samples.js";

/** Code that calls `send` in an event, timer or worker that may still run after the end of the run. */
const MOMENTS_AFTER_END: Record<string, (send: string) => string> = {
  "as the page is hidden": (send) => `addEventListener("pagehide", () => { ${send} });`,
  "as the page is unloaded": (send) => `addEventListener("unload", () => { ${send} });`,
  "before the page is unloaded": (send) => `addEventListener("beforeunload", () => { ${send} });`,
  "as the page turns invisible": (send) => `document.addEventListener("visibilitychange", () => { ${send} });`,
  "as the page is swapped": (send) => `addEventListener("pageswap", () => { ${send} });`,
  "as it navigates": (send) => `navigation.addEventListener("navigate", () => { ${send} });`,
  "as a signal of the page is aborted": (send) =>
    `navigation.addEventListener("navigate", ({ signal }) => { signal.onabort = () => { ${send} } });`,
  "in a task that follows": (send) => `setTimeout(() => { ${send} }, 0);`,
  "in a microtask that follows": (send) =>
    `Promise.resolve().then(async () => { await 0; await 0; await 0; ${send} });`,
  "again and again": (send) => `const again = () => { ${send}; setTimeout(again, 1) }; setTimeout(again, 0);`,
  "as a frame is unloaded": (send) =>
    `const frame = document.createElement("iframe"); document.body.append(frame);
     frame.contentWindow.addEventListener("pagehide", () => { ${send} });`,
  "as an element leaves": (send) =>
    `customElements.define("x-late", class extends HTMLElement { disconnectedCallback() { ${send} } });
     document.body.append(document.createElement("x-late"));`,
};

/**
 * By API, a function that returns code. The code sends a request to the URL `at`, or opens a connection to its host. Only the synchronous
 * request waits for a response.
 */
const REQUEST_APIS: Record<string, (at: string) => string> = {
  "a fetch that outlives the page": (at) => `fetch("${at}", { keepalive: true, mode: "no-cors" }).catch(() => {})`,
  "a fetch with a preflight request": (at) =>
    `fetch("${at}", { keepalive: true, method: "PUT", headers: { a: "b" } }).catch(() => {})`,
  "a beacon": (at) => `navigator.sendBeacon("${at}", "late")`,
  "an image": (at) => `new Image().src = "${at}"`,
  "a style": (at) =>
    `document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "${at}" }))`,
  "a prefetch": (at) =>
    `document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", href: "${at}" }))`,
  "a speculative connection": (at) =>
    `document.head.append(Object.assign(document.createElement("link"), { rel: "preconnect", href: "${at.replace("http:", "https:")}" }))`,
  "a ping": (at) =>
    `const a = Object.assign(document.createElement("a"), { href: "#x", ping: "${at}" }); document.body.append(a); a.click()`,
  "a socket": (at) => `new WebSocket("${at}".replace("http", "ws"))`,
  "a synchronous request": (at) =>
    `const call = new XMLHttpRequest(); call.open("GET", "${at}", false); try { call.send() } catch {}`,
  "a form": (at) =>
    `const form = Object.assign(document.createElement("form"), { action: "${at}", method: "post" }); document.body.append(form); form.submit()`,
};

describe("after the end of a run", () => {
  let host: ReachableHost;
  let browsers: Browsers;
  let server: Server;
  let url: string;
  let seen: string[] = [];

  before(async () => {
    host = await reachableHost(({ url: path = "" }, response) => {
      seen.push(path);
      response.writeHead(200, { "Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=9999" });
      response.end("cached");
    });
    ({ browsers, server, url } = host);
    server.on("connection", () => seen.push("a connection"));
    server.on("upgrade", ({ url: path = "" }, socket) => {
      seen.push(path);
      socket.destroy();
    });
  });
  beforeEach(() => {
    seen = [];
  });
  after(() => host.stop());

  /** Sends a request and waits for the response, so that all earlier ones have arrived. Returns the earlier requests and connections. */
  async function listReceivedRequests(): Promise<string[]> {
    const { port } = server.address() as AddressInfo;
    const lastRequest = request({ port, path: "/own", agent: false }).end();
    const [answer] = (await once(lastRequest, "response")) as [IncomingMessage];
    await once(answer.resume(), "end");
    const received = seen.filter((path) => path !== "/own");
    received.splice(received.lastIndexOf("a connection"), 1);
    return received;
  }

  /**
   * Executes the code as a run, and then two other runs. Returns the requests that the host received until the end of the first run
   * (`before`), and during the two others (`after`). `hasReportedHost`: true if `onHost` was called
   * during the first run, because the run contacted a host.
   */
  async function splitRequestsAtEnd(
    code: string,
    mode: EvaluationMode = "document",
  ): Promise<{ after: string[]; hasReportedHost: boolean; before: string[] }> {
    let hasReportedHost = false;
    const outcome = await browsers.run(
      runOf(`const execute = async () => { ${code} }`, {
        mode,
        onHost: () => {
          hasReportedHost = true;
        },
      }),
    );
    if (!outcome.ok) throw new Error(outcome.error.message);
    const before = await listReceivedRequests();
    seen = [];
    await resultOf(browsers, "const execute = async () => 1", { mode });
    await resultOf(browsers, "const execute = async () => 2", { mode });
    return { before, after: seen, hasReportedHost };
  }

  for (const [index, [when, at]] of Object.entries(MOMENTS_AFTER_END).entries()) {
    it(`nothing is sent ${when}`, async () => {
      for (const [title, send] of sampleOf(Object.entries(REQUEST_APIS), index, 12)) {
        const { after, before, hasReportedHost } = await splitRequestsAtEnd(at(send(`${url}/late`)));
        expect(after, title).to.deep.equal([]);
        // If a request arrives before the end of the run, the run must have reported the host.
        if (before.length > 0) expect(hasReportedHost, title).to.equal(true);
      }
    });
  }

  const tasks = ["in a task that follows", "in a microtask that follows", "again and again"];
  for (const when of tasks) {
    it(`nothing is sent ${when} from a network isolate`, async () => {
      for (const [title, send] of Object.entries(REQUEST_APIS).filter(([, way]) => /^fetch/.test(way("")))) {
        const { after, before, hasReportedHost } = await splitRequestsAtEnd(
          MOMENTS_AFTER_END[when]!(send(`${url}/late`)),
          "network-isolate",
        );
        expect(after, title).to.deep.equal([]);
        if (before.length > 0) expect(hasReportedHost, title).to.equal(true);
      }
    });
  }

  // Two APIs send nothing during the run: a form would leave the page, and this build of Chromium opens no speculative connections.
  const unseen = ["a form", "a speculative connection"];
  const seenApis = Object.entries(REQUEST_APIS).filter(([way]) => !unseen.includes(way));
  for (const [title, send] of seenApis) {
    it(`${title} does reach a host while the run lasts, which proves the test`, async () => {
      const arrived = new Promise<void>((resolve) => {
        server.once("connection", () => resolve());
      });
      let received = false;
      const abort = new AbortController();
      const run = browsers.run(
        runOf(`const execute = async () => { ${send(`${url}/now`)}; await new Promise(() => {}) }`, {
          signal: abort.signal,
          onHost: () => {
            received = true;
          },
        }),
      );
      await arrived;
      abort.abort();
      await run;
      expect(received).to.equal(true);
    });
  }

  it("a response that was still pending is not visible to the next run", async () => {
    const code = `addEventListener("pagehide", () => fetch("${url}/answer", { keepalive: true }));`;
    await splitRequestsAtEnd(code);
    const read = `const execute = async () => {
      try { return await (await fetch("${url}/answer", { cache: "only-if-cached", mode: "same-origin" })).text() } catch {}
      try { return await (await fetch("${url}/answer", { cache: "force-cache" })).text() } catch { return null }
    }`;
    expect(await resultOf(browsers, read)).to.equal("cached");
    expect(seen).to.deep.equal(["a connection", "/answer"]);
  });

  it("a request in progress is aborted when the run ends", async () => {
    const [arrived, cut] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    server.removeAllListeners("request");
    server.on("request", ({ url: path, socket }, response) => {
      if (path === "/slow") {
        socket.once("close", cut.resolve);
        arrived.resolve();
      } else void arrived.promise.then(() => response.end());
    });
    // The code awaits only the request for /arrived. The host responds to it as soon as the host has received the request for /slow.
    const send = (path: string) => `fetch("${url}${path}", { mode: "no-cors" })`;
    const code = `const execute = async () => { ${send("/slow")}.catch(() => {}); await ${send("/arrived")}; }`;
    await resultOf(browsers, code);
    await cut.promise;
  });
});
