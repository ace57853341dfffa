/** A run in a worker has the language and little beside it, reaches nothing, and leaves nothing: not even to who looks past the names. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { WORKER_GLOBALS } from "../../../src/engine/browser/pages/worker-globals.js";
import type { ConsoleLine, PageRun } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { resultOf, runOf, testBrowsers } from "./support.js";

/** Shown by what is called performance: a worker was not navigated to. */
const HAS_DOCUMENT = "const execute = async () => 'navigation' in performance.toJSON()";

const IN_WORKER: Partial<PageRun> = { realm: "worker" };
/** Code made of text, which no look at the names can judge. */
const DYNAMIC = "const made = (text) => (() => {}).constructor(text)();";

const PROBE = `const execute = async () => {
  const found = [];
  for (const key of Reflect.ownKeys(globalThis)) if (/^left/.test(String(key))) found.push(key);
  for (const one of [Object, Array, Promise, String, EventTarget, JSON, Reflect, console, crypto]) {
    for (const holder of [one, one.prototype]) if (holder && "left" in holder) found.push(one.name || String(one));
  }
  try { found.push(leftLexical); } catch {}
  if (JSON.parse("1") !== 1 || Array.isArray([]) !== true) found.push("intrinsics");
  return found;
}`;

const LEFTOVERS: [string, string][] = [
  ["globals", "globalThis.left = 1; var leftVar = 1; made('leftMade = 1')"],
  ["lexical bindings", "made('return eval')('let leftLexical = 1')"],
  ["changed prototypes", "for (const one of [Object, Array, Promise, EventTarget]) one.prototype.left = 1"],
  [
    "changed intrinsics",
    "JSON.parse = () => 2; Array.isArray = () => 2; Promise.prototype.then = () => {}; crypto.left = console.left = 1",
  ],
  ["listeners", "for (const type of ['message', 'error', 'close']) addEventListener(type, () => { for (;;); })"],
  ["promises that never settle", "new Promise(() => {}); (async () => { await new Promise(() => {}) })()"],
  [
    "a busy loop that begins after the end",
    "let n = 0; (function next() { if (n++ > 50) for (;;); Promise.resolve().then(next) })()",
  ],
  ["a busy timer", "setTimeout(() => { for (;;); }, 0)"],
  [
    "a thrown error nobody caught",
    "setTimeout(() => { throw new Error('left') }, 0); Promise.reject(new Error('left'))",
  ],
];

const WAYS: [string, string][] = [
  ["a dynamic import", "return import(url + '/import.mjs')"],
  ["a function made of text", "return fetch(url + '/fetch')"],
  ["an imported script", "return importScripts(url + '/script.js')"],
  ["XMLHttpRequest", "const x = new XMLHttpRequest(); x.open('GET', url + '/xhr'); x.send()"],
  ["a WebSocket", "return new WebSocket(url.replace('http', 'ws') + '/socket')"],
  ["an event source", "return new EventSource(url + '/events')"],
  ["a worker of its own", "return new Worker(url + '/worker.js')"],
  [
    "what is behind the global scope",
    "let scope = globalThis; while (scope) { for (const key of Reflect.ownKeys(scope)) if (/fetch|import|Socket|Worker$|Request/.test(String(key))) scope[key](url); scope = Object.getPrototypeOf(scope) }",
  ],
];

describe("a run in a worker", function () {
  this.timeout(30_000);
  let browsers: Browsers;
  let proxy: EgressProxy;
  let server: Server;
  let arrived: string[] = [];
  let url: string;

  before(async () => {
    server = createServer((request, response) => {
      arrived.push(String(request.url));
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("Content-Type", "text/javascript");
      response.end("export default 1");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    proxy = createEgressProxy({ allowPrivateNetwork: true });
    browsers = testBrowsers({ openLane: () => proxy.openLane() });
    await browsers.start();
  });
  after(async () => {
    await browsers.stop();
    proxy.close();
    server.close();
  });

  it("is what code gets that names nothing else and loads nothing; all other gets a document", async () => {
    const packages = [{ name: "own.js", source: "1" }];
    const fetching = HAS_DOCUMENT.replace("=> ", "=> fetch && ");
    const undecided = { realm: undefined };
    expect(await resultOf(browsers, HAS_DOCUMENT, undecided)).to.equal(false);
    expect(await resultOf(browsers, HAS_DOCUMENT, { ...undecided, packages })).to.equal(true);
    expect(await resultOf(browsers, fetching, undecided)).to.equal(true);
  });

  it("has the globals that are listed and no others", async () => {
    const source = `var own = []; const execute = async () => own;
      for (let scope = globalThis; scope !== EventTarget.prototype; scope = Object.getPrototypeOf(scope)) own.push(...Reflect.ownKeys(scope))`;
    const found = (await resultOf(browsers, source, IN_WORKER)) as unknown[];
    expect(found.filter((name) => !WORKER_GLOBALS.includes(String(name)))).to.deep.equal([
      "own",
      // Two numbers that cannot be taken away.
      "TEMPORARY",
      "PERSISTENT",
    ]);
    expect(found).to.include.members(["Object", "JSON", "console", "setTimeout", "crypto", "URL", "TextEncoder"]);
  });

  it("has the same of them as a document, for code that uses no others", async () => {
    const source = `const execute = async () => [btoa("é".normalize("NFD").slice(0, 1)), structuredClone({ a: [1] }),
      new URL("/p?q=1", "https://example.com").href, new TextDecoder().decode(new TextEncoder().encode("ü")),
      (await crypto.subtle.digest("SHA-256", new Uint8Array(1))).byteLength, crypto.randomUUID().length,
      await new Promise((resolve) => setTimeout(resolve, 1, "later")), new Intl.NumberFormat("de").format(1.5)]`;
    const inWorker = await resultOf(browsers, source, IN_WORKER);
    expect(inWorker).to.deep.equal(await resultOf(browsers, source));
  });

  for (const [title, code] of LEFTOVERS) {
    it(`leaves nothing to the next run of ${title}`, async () => {
      const outcome = await browsers.run(runOf(`${DYNAMIC} const execute = async () => { ${code} }`, IN_WORKER));
      expect(outcome).to.deep.equal({ ok: true, data: undefined });
      expect(await resultOf(browsers, PROBE, IN_WORKER)).to.deep.equal([]);
      expect(await resultOf(browsers, PROBE)).to.deep.equal([]);
    });
  }

  it("prints nothing into the next run", async () => {
    const source = "const execute = async () => { console.log('own'); setInterval(() => console.log('late'), 1) }";
    const lines: string[] = [];
    const onConsole = (line: ConsoleLine) => lines.push(line.text);
    await resultOf(browsers, source, { ...IN_WORKER, onConsole });
    const wait = "const execute = async () => new Promise((resolve) => setTimeout(resolve, 100))";
    const next: string[] = [];
    await resultOf(browsers, wait, { ...IN_WORKER, onConsole: (line) => next.push(line.text) });
    expect(lines[0]).to.equal("own");
    expect(next).to.deep.equal([]);
  });

  it("shows two runs at once nothing of each other", async () => {
    const leave = "globalThis.left = 1; const execute = async () => new Promise((resolve) => setTimeout(resolve, 200))";
    const [, ...seen] = await Promise.all([
      resultOf(browsers, leave, IN_WORKER),
      resultOf(browsers, PROBE, IN_WORKER),
      resultOf(browsers, PROBE, { ...IN_WORKER, isolationKey: "2:master" }),
    ]);
    expect(seen).to.deep.equal([[], []]);
  });

  for (const [title, code] of WAYS) {
    it(`reaches nothing by ${title}, though its app may reach the listener`, async () => {
      arrived = [];
      const source = `const execute = async () => {
        const Made = (async () => {}).constructor;
        await new Made("url", ${JSON.stringify(code)})(${JSON.stringify(url)}).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
      }`;
      await browsers.run(runOf(source, IN_WORKER));
      expect(arrived).to.deep.equal([]);
      // The listener counts, and the app's runs in a document do arrive.
      await resultOf(browsers, `const execute = async () => { await fetch("${url}/seen") }`);
      expect(arrived).to.deep.equal(["/seen"]);
    });
  }
});
