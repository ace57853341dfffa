/** Checks that no API of a page lets a run reach a private address. A listener on such an address must receive nothing. */

import { createSocket, type Socket } from "node:dgram";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, type EvaluationMode, modeHasNetwork } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { sampleOf } from "../../harness/samples.js";
import { resultOf, runOf, sharedBrowsers } from "./support.js";

const outerAddress = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find((networkInterface) => !networkInterface.internal && networkInterface.family === "IPv4")?.address;

/** Names and numeric forms of this machine's addresses. The test resolves the names that end with `.test`. */
const HOSTS = [
  ..."127.0.0.1 localhost LOCALHOST localhost. a.localhost 127.1 127.0.1 0 0.0.0.0 0x7f000001 0x7f.0.0.1".split(" "),
  ..."2130706433 017700000001 0177.0.0.1 127.0.0.1. 127.255.255.254 [::1] [::] [0:0:0:0:0:0:0:1]".split(" "),
  ..."[::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [::ffff:0:7f00:1]".split(" "),
  ..."①②⑦.⓪.⓪.① 127。0。0。1 user:pass@127.0.0.1 private.test mixed.test rebind.test mapped.test".split(" "),
  ...(outerAddress === undefined ? [] : [outerAddress]),
];

/** Title and code of each API. The code tries to reach URL_ (an HTTP URL), WS (a WebSocket URL), or HOST and PORT. */
const EGRESS_APIS: [string, string][] = [
  ["fetch", "await fetch(URL_)"],
  ["fetch without cors", "await fetch(URL_, { mode: 'no-cors' })"],
  ["fetch by https", "await fetch(URL_.replace('http:', 'https:'), { mode: 'no-cors' })"],
  ["fetch that outlives the page", "await fetch(URL_, { mode: 'no-cors', keepalive: true })"],
  [
    "fetch with a private target address space",
    "await fetch(URL_, { mode: 'no-cors', targetAddressSpace: 'loopback' })",
  ],
  ["XMLHttpRequest", "const x = new XMLHttpRequest(); x.open('GET', URL_); x.send(); await late()"],
  ["a synchronous XMLHttpRequest", "const x = new XMLHttpRequest(); x.open('GET', URL_, false); x.send()"],
  ["a beacon", "navigator.sendBeacon(URL_, 'x'); await late()"],
  ["a beacon while the page goes", "addEventListener('pagehide', () => navigator.sendBeacon(URL_, 'x'))"],
  ["WebSocket", "new WebSocket(WS); await late()"],
  ["a secure WebSocket", "new WebSocket(WS.replace('ws:', 'wss:')); await late()"],
  ["a WebSocket stream", "await new WebSocketStream(WS).opened"],
  ["EventSource", "new EventSource(URL_); await late()"],
  ["WebTransport", "await new WebTransport(URL_.replace('http:', 'https:')).ready"],
  ["WebRTC by STUN", "await rtc('stun:' + HOST + ':' + PORT)"],
  ["WebRTC by TURN over UDP", "await rtc('turn:' + HOST + ':' + PORT)"],
  ["WebRTC by TURN over TCP", "await rtc('turn:' + HOST + ':' + PORT + '?transport=tcp')"],
  ["WebRTC by TURN over TLS", "await rtc('turns:' + HOST + ':' + PORT + '?transport=tcp')"],
  ["an image", "new Image().src = URL_; await late()"],
  ["a script", "element('script', 'src'); await late()"],
  ["a module script", "element('script', 'src', { type: 'module' }); await late()"],
  ["a dynamic import", "await import(URL_)"],
  ["a style sheet", "element('link', 'href', { rel: 'stylesheet' }); await late()"],
  ["a preload", "element('link', 'href', { rel: 'preload', as: 'fetch' }); await late()"],
  ["a prefetch", "element('link', 'href', { rel: 'prefetch' }); await late()"],
  ["a preconnect", "element('link', 'href', { rel: 'preconnect' }); await late()"],
  ["a DNS prefetch", "element('link', 'href', { rel: 'dns-prefetch' }); await late()"],
  ["a prerender", "element('link', 'href', { rel: 'prerender' }); await late()"],
  [
    "speculation rules",
    "const s = document.createElement('script'); s.type = 'speculationrules'; s.text = JSON.stringify({ prefetch: [{ urls: [URL_], eagerness: 'immediate' }], prerender: [{ urls: [URL_], eagerness: 'immediate' }] }); document.head.append(s); await late()",
  ],
  ["an icon", "element('link', 'href', { rel: 'icon' }); await late()"],
  ["a manifest", "element('link', 'href', { rel: 'manifest' }); await late()"],
  ["an iframe", "element('iframe', 'src'); await late()"],
  ["an iframe without a sandbox's origin", "element('iframe', 'src', { sandbox: 'allow-scripts' }); await late()"],
  ["an object", "element('object', 'data'); await late()"],
  ["an embed", "element('embed', 'src'); await late()"],
  ["a video", "element('video', 'src', { preload: 'auto' }); await late()"],
  ["an audio element", "element('audio', 'src', { preload: 'auto' }); await late()"],
  ["a CSS import", "style('@import url(' + URL_ + ')'); await late()"],
  ["a CSS background", "style('body { background: url(' + URL_ + ') }'); await late()"],
  ["a font", "await new FontFace('f', 'url(' + URL_ + ')').load()"],
  [
    "an SVG image",
    "const s = new Image(); document.body.innerHTML = '<svg><image href=\"' + URL_ + '\"/></svg>'; await late()",
  ],
  ["a form", "form('_self'); await late()"],
  ["a form into a frame", "document.body.innerHTML = '<iframe name=f></iframe>'; form('f'); await late()"],
  ["a popup", "open(URL_); await late()"],
  ["a popup without an opener", "open(URL_, '_blank', 'noopener'); await late()"],
  ["a navigation", "location.href = URL_; await late()"],
  [
    "a refresh",
    "const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url=' + URL_; document.head.append(m); await late()",
  ],
  [
    "a link with a ping",
    "const a = document.createElement('a'); a.href = '#'; a.ping = URL_; document.body.append(a); a.click(); await late()",
  ],
  [
    "a download",
    "const a = document.createElement('a'); a.href = URL_; a.download = 'x'; document.body.append(a); a.click(); await late()",
  ],
  ["a worker's fetch", "await worker('fetch(' + JSON.stringify(URL_) + ', { mode: \"no-cors\" })')"],
  ["a worker's import", "await worker('importScripts(' + JSON.stringify(URL_) + ')')"],
  ["a worker's WebSocket", "await worker('new WebSocket(' + JSON.stringify(WS) + ')')"],
  [
    "a shared worker's fetch",
    "new SharedWorker(URL.createObjectURL(new Blob(['fetch(' + JSON.stringify(URL_) + ')']))); await late()",
  ],
  ["a service worker", "await navigator.serviceWorker.register(URL_)"],
  ["an audio worklet", "await new AudioContext().audioWorklet.addModule(URL_)"],
  [
    "a blob's document",
    "const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob(['<img src=' + URL_ + '>'], { type: 'text/html' })); document.body.append(f); await late()",
  ],
  [
    "a data document",
    "const f = document.createElement('iframe'); f.src = 'data:text/html,<img src=' + URL_ + '>'; document.body.append(f); await late()",
  ],
  [
    "a srcdoc frame",
    "const f = document.createElement('iframe'); f.srcdoc = '<script>fetch(' + JSON.stringify(URL_) + ')</script>'; document.body.append(f); await late()",
  ],
  ["a redirect", "await fetch(REDIRECT + encodeURIComponent(URL_), { mode: 'no-cors' })"],
  ["a redirected image", "new Image().src = REDIRECT + encodeURIComponent(URL_); await late()"],
  [
    "a redirected frame",
    "const f = document.createElement('iframe'); f.src = REDIRECT + encodeURIComponent(URL_); document.body.append(f); await late()",
  ],
  [
    "a report",
    "document.cookie; new ReportingObserver(() => {}).observe(); const p = new PaymentRequest([{ supportedMethods: URL_ }], { total: { label: 'x', amount: { currency: 'EUR', value: '1' } } }); await p.canMakePayment()",
  ],
  ["a deferred fetch", "fetchLater(URL_, { activateAfter: 0 }); await late()"],
];

/** APIs that `npm test` always tests, because they cover each protocol and each kind of request. Of the other APIs, it tests a sample. */
const ALWAYS_TESTED: Partial<Record<EvaluationMode, readonly string[]>> = {
  "network-isolate": ["fetch", "fetch without cors", "a redirect"],
  document: [
    ...["fetch", "XMLHttpRequest", "WebSocket", "WebRTC by STUN", "WebRTC by TURN over UDP", "WebRTC by TURN over TLS"],
    ...["a beacon while the page goes", "an iframe", "a worker's fetch", "a service worker", "a redirected image"],
  ],
};

const TOOLS_CODE = `
  const late = () => new Promise((resolve) => setTimeout(resolve, 60));
  const element = (name, key, more = {}) => { const e = document.createElement(name); Object.assign(e, more); if (e.sandbox && more.sandbox) e.setAttribute("sandbox", more.sandbox); e[key] = URL_; document.body.append(e); };
  const style = (text) => { const s = document.createElement("style"); s.textContent = text; document.head.append(s); };
  const form = (target) => { const f = document.createElement("form"); f.action = URL_; f.method = "post"; f.target = target; document.body.append(f); f.submit(); };
  const worker = async (code) => { const w = new Worker(URL.createObjectURL(new Blob([code]))); w.onerror = () => {}; await late(); };
  const rtc = async (urls) => {
    const peer = new RTCPeerConnection({ iceServers: [{ urls, username: "u", credential: "c" }] });
    peer.createDataChannel("c"); await peer.setLocalDescription(); await late(); await late(); peer.close();
  };`;

describe("network access of a run", () => {
  let browsers: Browsers;
  let open: Browsers;
  let proxies: EgressProxy[] = [];
  let server: Server;
  let udp: Socket;
  let redirector: Server;
  let arrived: string[] = [];
  let port: number;
  let redirect: string;
  let requestCount = 0;

  const codeFor = (host: string, way: string) => `const execute = async () => {
    const HOST = ${JSON.stringify(host)}, PORT = ${port}, URL_ = "http://" + HOST + ":" + PORT + "/x", WS = "ws://" + HOST + ":" + PORT + "/x";
    const REDIRECT = ${JSON.stringify(redirect)};
    ${TOOLS_CODE}
    try { ${way} } catch (error) { return String(error); }
  }`;

  async function resolve(name: string) {
    requestCount += 1;
    const family = 4;
    if (name === "mixed.test")
      return [
        { address: "93.184.216.34", family },
        { address: "127.0.0.1", family },
      ];
    if (name === "mapped.test") return [{ address: "::ffff:127.0.0.1", family: 6 }];
    // The second lookup returns a private address. A proxy that looks up twice would check one address and connect to the other.
    if (name === "rebind.test") return [{ address: requestCount % 2 === 1 ? "192.0.2.1" : "127.0.0.1", family }];
    return [{ address: "127.0.0.1", family }];
  }

  before(async () => {
    server = createServer((_request, response) => response.end("reached"));
    server.on("connection", () => arrived.push("tcp"));
    await new Promise<void>((done) => server.listen(0, "0.0.0.0", done));
    port = (server.address() as AddressInfo).port;
    udp = createSocket("udp4", () => arrived.push("udp"));
    await new Promise<void>((done) => udp.bind(port, "0.0.0.0", done));
    redirector = createServer((request, response) => {
      response.writeHead(302, { Location: decodeURIComponent(request.url!.slice(2)) }).end();
    });
    await new Promise<void>((done) => redirector.listen(0, "127.0.0.1", done));
    const redirectPort = (redirector.address() as AddressInfo).port;
    redirect = `http://127.0.0.1:${redirectPort}/?`;
    const endpoints = () => new Map([[`127.0.0.1:${redirectPort}`, "127.0.0.1"]]);
    const restrictedProxy = createEgressProxy({
      allowPrivateNetwork: false,
      ports: [80, 443, port],
      endpoints,
      resolve,
    });
    const openProxy = createEgressProxy({ allowPrivateNetwork: true, resolve });
    proxies = [restrictedProxy, openProxy];
    browsers = sharedBrowsers({ openProxyPort: () => restrictedProxy.openProxyPort(), spareContexts: 4 });
    open = sharedBrowsers({ openProxyPort: () => openProxy.openProxyPort() });
    await Promise.all([browsers.start(), open.start()]);
  });
  beforeEach(() => {
    arrived = [];
    requestCount = 0;
  });
  after(async () => {
    await Promise.all([browsers.stop(), open.stop()]);
    for (const proxy of proxies) proxy.close();
    server.close();
    redirector.close();
    udp.close();
  });

  for (const [index, mode] of EVALUATION_MODES.filter(modeHasNetwork).entries()) {
    describe(`in mode ${mode}`, () => {
      const alwaysTested = EGRESS_APIS.filter(([title]) => ALWAYS_TESTED[mode]!.includes(title));
      const sample = sampleOf(EGRESS_APIS, index, mode === "document" ? 16 : 24);
      for (const [title, way] of new Set([...alwaysTested, ...sample])) {
        it(`reaches no private address by ${title}`, async () => {
          await browsers.run(runOf(codeFor("127.0.0.1", way), { mode }));
          expect(arrived).to.deep.equal([]);
        });
      }

      for (const host of sampleOf(HOSTS, index, 4)) {
        it(`reaches no private address as ${host}`, async () => {
          const ways =
            "await Promise.allSettled([fetch(URL_, { mode: 'no-cors' }), late()]); new WebSocket(WS); await late()";
          await browsers.run(runOf(codeFor(host, ways), { mode }));
          expect(arrived).to.deep.equal([]);
        });
      }
    });
  }

  it("is impossible in a context without a proxy port", async () => {
    const closed = sharedBrowsers();
    await closed.start();
    try {
      expect(await resultOf(closed, codeFor("127.0.0.1", "await fetch(URL_)"))).to.include("Failed to fetch");
      expect(arrived).to.deep.equal([]);
    } finally {
      await closed.stop();
    }
  });

  const reachingTitles =
    "fetch|fetch without cors|XMLHttpRequest|a beacon|WebSocket|EventSource|an image|a script|an iframe|a worker's fetch|a redirect";
  const realmApis = EGRESS_APIS.filter(([name]) => ["fetch", "fetch without cors", "a redirect"].includes(name));
  for (const mode of EVALUATION_MODES.filter((kind) => modeHasNetwork(kind) && kind !== "document")) {
    for (const [title, way] of realmApis) {
      it(`reaches a private address in mode ${mode} by ${title} if private addresses are allowed`, async () => {
        await open.run(runOf(codeFor("127.0.0.1", way), { mode }));
        expect(arrived).to.include("tcp");
      });
    }
  }

  const reachingApis = EGRESS_APIS.filter(([name]) => reachingTitles.split("|").includes(name));
  for (const [title, way] of sampleOf(reachingApis, 0, 12)) {
    it(`reaches a private address by ${title} if private addresses are allowed`, async () => {
      // Some of these APIs do not wait for their request, so the end of the run may cancel it. The test then repeats the run.
      while (!arrived.includes("tcp")) await open.run(runOf(codeFor("127.0.0.1", way)));
    });
  }
});
