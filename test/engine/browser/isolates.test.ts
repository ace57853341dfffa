/**
 * Tests a run in an isolate. It has only the listed globals, reaches nothing else, and leaves nothing behind. This also applies to code
 * that hides the names of globals.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { ISOLATE_GLOBALS, NETWORK_ISOLATE_GLOBALS } from "../../../src/engine/browser/globals.js";
import { computeCodeNeedsFromGlobals } from "../../../src/engine/browser/mode.js";
import { RESET_TIMEOUT_MS } from "../../../src/engine/browser/pages/page.js";
import {
  type ConsoleLine,
  type EvaluationMode,
  modeHasNetwork,
  type PageScript,
} from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { failureOf, resultOf, runOf, sharedBrowsers } from "./support.js";

const GLOBALS = { isolate: ISOLATE_GLOBALS, "network-isolate": NETWORK_ISOLATE_GLOBALS } as const;
const ISOLATE_MODES = Object.keys(GLOBALS) as (keyof typeof GLOBALS)[];

/** Code that defines `made`, which evaluates a text. The service cannot find the names of globals in this text. */
const DYNAMIC_CODE = "const made = (text) => (() => {}).constructor(text)();";

/** Code that returns a result first, and then blocks its thread with an endless loop. */
const ENDLESS_CODE = `const execute = async () => {
  (function next(n) { if (n > 50) for (;;); Promise.resolve(n + 1).then(next) })(0);
  return 1;
}`;

const PROBE_CODE = `const execute = async () => {
  const found = [];
  for (const key of Reflect.ownKeys(globalThis)) if (/^left/.test(String(key))) found.push(key);
  for (const one of [Object, Array, Promise, String, Map, Set, Date, RegExp, Error, Intl.NumberFormat, Uint8Array, globalThis.EventTarget, JSON,
    Reflect, console, globalThis.crypto, globalThis.crypto?.subtle, globalThis.crypto && Object.getPrototypeOf(crypto)]) {
    for (const holder of [one, one?.prototype]) if (holder && "left" in holder) found.push(one.name || String(one));
  }
  try { found.push(leftLexical); } catch {}
  if (JSON.parse("1") !== 1 || Array.isArray([]) !== true) found.push("intrinsics");
  return found;
}`;

/** Title, code that leaves something behind, and a global that the code needs. */
const LEFTOVER_SAMPLES: [string, string, string?][] = [
  ["globals", "globalThis.left = 1; var leftVar = 1; made('leftMade = 1')"],
  ["lexical bindings", "made('return eval')('let leftLexical = 1')"],
  ["changed prototypes", "for (const one of [Object, Array, Promise, Function]) one.prototype.left = 1"],
  ["changed events", "EventTarget.prototype.left = 1", "EventTarget"],
  ["a changed WebCrypto", "crypto.left = crypto.subtle.left = Object.getPrototypeOf(crypto).left = 1", "crypto"],
  [
    "changed intrinsics",
    "JSON.parse = () => 2; Array.isArray = () => 2; Promise.prototype.then = () => {}; console.left = 1",
  ],
  [
    "listeners",
    "for (const type of ['message', 'error', 'close']) globalThis.addEventListener?.(type, () => { for (;;); })",
  ],
  [
    "functions in the place of listeners",
    "for (const type of ['message', 'error', 'unhandledrejection']) globalThis[`on${type}`] = () => { for (;;); }; Promise.reject(1)",
  ],
  [
    "imports that fail one after the other",
    "let load = () => Promise.reject(1); try { load = made('return () => import(\"data:text/javascript,1\")') } catch {} let n = 0; (function next() { if (n++ < 1e3) load().then(next, next) })()",
  ],
  [
    "a promise of memory that is not shared",
    "try { Atomics.waitAsync(new Int32Array(new ArrayBuffer(8)), 0, 0, 1) } catch {}",
  ],
  [
    "the language's own classes, changed",
    "for (const one of [Map, Set, Date, RegExp, Error, Intl.NumberFormat, Uint8Array]) one.left = one.prototype.left = 1",
  ],
  ["promises that never settle", "new Promise(() => {}); (async () => { await new Promise(() => {}) })()"],
  [
    "a busy loop that begins after the end",
    "let n = 0; (function next() { if (n++ > 50) for (;;); Promise.resolve().then(next) })()",
  ],
  ["a busy timer", "setTimeout(() => { for (;;); }, 0)", "setTimeout"],
  ["a thrown error nobody caught", "setTimeout(() => { throw new Error('left') }, 0)", "setTimeout"],
  [
    "a callback for collected objects",
    "globalThis.left = new FinalizationRegistry(() => { for (;;); }); for (let i = 0; i < 1e3; i += 1) left.register([i], 1)",
    "FinalizationRegistry",
  ],
  ["a rejection nobody caught", "for (let i = 0; i < 1e3; i += 1) Promise.reject(new Error('left'))"],
  ["symbols and regular expressions", "/(left)/.exec('left'); Symbol.for('left').description; RegExp.left = 1"],
];

const ESCAPE_WAYS: [string, string][] = [
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

describe("a run without a document", function () {
  this.timeout(180_000);
  let browsers: Browsers;
  let proxy: EgressProxy;
  let server: Server;
  let arrived: string[] = [];
  let url: string;
  const lost: string[] = [];

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
    browsers = sharedBrowsers({ openProxyPort: () => proxy.openProxyPort(), onLoss: (kind) => void lost.push(kind) });
    await browsers.start();
  });
  after(async () => {
    await browsers.stop();
    proxy.close();
    server.close();
  });

  longTest("is chosen for code that names and loads nothing else; all other code gets a document", async () => {
    const modeOf = async (source: string, packages: PageScript[] = []) => {
      let received = "";
      const onMode = (mode: EvaluationMode) => {
        received += mode;
      };
      await resultOf(browsers, source, { mode: undefined, packages, onMode });
      return received;
    };
    expect(await modeOf("const execute = async () => Math.max(1, 2)")).to.equal("isolate");
    expect(await modeOf("const execute = async () => crypto.randomUUID()")).to.equal("network-isolate");
    expect(await modeOf("const execute = async () => performance.mark('a').name")).to.equal("document");
    expect(await modeOf("const execute = async () => typeof fetch")).to.equal("network-isolate");
    expect(await modeOf("const execute = async () => [typeof Request, typeof structuredClone]")).to.equal("document");
    expect(await modeOf("const execute = async () => typeof document")).to.equal("document");
    const ownPackage = { name: "own.js", source: "1" };
    expect(await modeOf("const execute = async () => 1", [ownPackage])).to.equal("document");
    for (const [packages, mode] of [
      [[{ ...ownPackage, mode: "isolate" }], "network-isolate"],
      [[{ ...ownPackage, mode: "network-isolate", network: false }], "network-isolate"],
      [[{ ...ownPackage, mode: "network-isolate" }, ownPackage], "document"],
    ] as const) {
      expect(await modeOf("const execute = async () => typeof fetch", [...packages])).to.equal(mode);
    }
    for (const mode of ISOLATE_MODES) {
      expect(await modeOf("const execute = async () => 1", [{ ...ownPackage, mode }])).to.equal(mode);
      expect(await modeOf("const execute = async () => typeof document", [{ ...ownPackage, mode }])).to.equal(
        "document",
      );
    }
  });

  it("has network access if its globals need it, and not otherwise", async () => {
    const ways = "(() => {})['const' + 'ructor']('return fetch')()";
    const ask = `return ${ways}(${JSON.stringify(url)} + "/asked").then(() => "answered", ({ name }) => name)`;
    const requestedUrls: string[] = [];
    const mayRequest = (address: string) => requestedUrls.push(address) > 0;
    for (const [body, expected] of [
      [`setTimeout(() => {}, 1); ${ask}`, "TypeError"],
      [`crypto.randomUUID(); ${ask}`, "TypeError"],
      [`void fetch; ${ask}`, "answered"],
    ] as const) {
      arrived = [];
      const code = `const execute = async () => { ${body} }`;
      expect(await resultOf(browsers, code, { mode: undefined }), body).to.equal(expected);
      const outcome = await browsers.run(runOf(code, { mode: undefined, mayRequest }));
      expect(outcome, body).to.deep.equal({ ok: true, data: JSON.stringify(expected) });
      expect(arrived, body).to.deep.equal(expected === "answered" ? ["/asked", "/asked"] : []);
    }
    expect(requestedUrls).to.deep.equal([`${url}/asked`]);
  });

  it("is not chosen for a package that names other globals of a document", async () => {
    const source = `const execute = async () => {
      const found = [];
      for (let scope = window; scope !== Object.prototype; scope = Object.getPrototypeOf(scope)) found.push(...Object.getOwnPropertyNames(scope));
      return found;
    }`;
    const names = (await resultOf(browsers, source)) as string[];
    expect(names).to.include("localStorage");
    const isolateNames = names.filter(
      (name) => computeCodeNeedsFromGlobals([name]).mode !== "document" && !NETWORK_ISOLATE_GLOBALS.includes(name),
    );
    expect(isolateNames.filter((name) => !(name in {}) && name !== "execute")).to.deep.equal([]);
  });

  longTest("is repeated in a document if code made from text imports a module, which crashes an isolate", async () => {
    const makers = ["() => {}", "async () => {}", "function* () {}", "async function* () {}"];
    const ways = [
      "(0, eval)(text)",
      "Function(text)",
      "new Function(text)",
      "Reflect.construct(Function, [text])",
      "Function({ toString: () => (count++ === 0 ? text : '1') })",
      "Function(text, '')",
      ...makers.map((maker) => `(${maker}).constructor(text)`),
      ...makers.slice(1).map((maker) => `Object.getPrototypeOf((${maker}).constructor)(text)`),
    ];
    const changed =
      "for (const one of ['join', 'map', Symbol.iterator]) Array.prototype[one] = () => ''; RegExp.prototype.exec = () => null;" +
      "RegExp.prototype.test = () => false; Object.prototype.apply = Object.prototype.construct = (_, values) => values;";
    const texts = ["import('x')", "import\n/**/ ('x')", "return import.defer('x')", "import<!--\n('x')"];
    for (const [at, text] of texts.entries()) {
      for (const way of sampleOf(ways, at, texts.length)) {
        const code = `const text = ${JSON.stringify(text)}; let count = 0; ${changed} const execute = async () => void ${way}`;
        const [outcome, elsewhere] = [
          await browsers.run(runOf(code, { mode: "isolate" })),
          await browsers.run(runOf(code, { mode: "document" })),
        ];
        expect(outcome, way).to.deep.equal(elsewhere);
      }
    }
    expect([...new Set(lost)]).to.deep.equal(["isolate"]);
    const others = "[Function('a', 'return a + 1')(1), (0, eval)('1 + 1'), Function instanceof Function]";
    const code = `const execute = async () => ${others}`;
    expect(await resultOf(browsers, code, { mode: "isolate" })).to.deep.equal([2, 2, true]);
  });

  for (const [index, mode] of ISOLATE_MODES.entries()) {
    describe(`in mode ${mode}`, () => {
      const here = { mode };

      it("has the listed globals and no others", async () => {
        const source = `var own = []; const execute = async () => own;
          const ends = [Object.prototype, globalThis.EventTarget?.prototype];
          for (let scope = globalThis; !ends.includes(scope); scope = Object.getPrototypeOf(scope)) own.push(...Reflect.ownKeys(scope).map(String))`;
        const found = (await resultOf(browsers, source, here)) as string[];
        // The code declares `own` and `ends`. A worker's global object has two constants that code cannot remove, and a tag with its
        // class name.
        const additionalNames = ["own", "ends", "TEMPORARY", "PERSISTENT", "Symbol(Symbol.toStringTag)"];
        // In this mode, the global object also has `performance`, which GLOBALS does not list.
        if (mode === "network-isolate") additionalNames.push("performance");
        expect(found.filter((name) => !GLOBALS[mode].includes(name) && !additionalNames.includes(name))).to.deep.equal(
          [],
        );
        expect(GLOBALS[mode].filter((name) => !found.includes(name))).to.deep.equal([]);
      });

      it("gets a text with a known content once, and evaluates it again for each run", async () => {
        const source = "changed.push(1); const execute = async () => [which, changed.length]";
        const textOf = (mark: string, content: string) => ({
          name: "kept.js",
          source: `globalThis.which = '${mark}'; var changed = []`,
          content,
        });
        let key = "";
        const seen = (mark: string, content: string, changes = {}) =>
          resultOf(browsers, source, { ...here, isolationKey: key, packages: [textOf(mark, content)], ...changes });
        // A page stores scripts by content hash, and ignores another source with the same hash. The test repeats this if the page is
        // replaced.
        const both: unknown[] = [];
        while (both.length < 5 && both.at(-1) !== "first,1,first,1") {
          key = `kept ${both.length}`;
          both.push([await seen("first", "a"), await seen("second", "a")].join());
        }
        expect(both.at(-1)).to.equal("first,1,first,1");
        expect(await seen("second", "b")).to.deep.equal(["second", 1]);
        expect(await seen("third", "")).to.deep.equal(["third", 1]);
        expect(await seen("fourth", "a", { isolationKey: "kept elsewhere" })).to.deep.equal(["fourth", 1]);
      });

      it("has the same language as a document", async () => {
        const source = `const execute = async () => [new Intl.NumberFormat("de").format(1.5), typeof this, new Date(0).getTimezoneOffset(),
          new Date(2026, 6, 1).toLocaleString(), "\u00e9".normalize("NFD").length, [3, 1, 2].toSorted(), typeof Temporal, /(?<y>\\d+)/.exec("a12").groups.y,
          (() => { let deep = 0; const dive = () => { deep += 1; dive() }; try { dive() } catch { return deep > 4000 } })()]`;
        expect(await resultOf(browsers, source, here)).to.deep.equal(await resultOf(browsers, source));
      });

      if (mode !== "isolate") {
        it("has the same results as a document, for code that uses no other globals", async () => {
          const source = `const execute = async () => [btoa("é".normalize("NFD").slice(0, 1)),
            new URL("/p?q=1", "https://example.com").href, new TextDecoder().decode(new TextEncoder().encode("ü")),
            [...new URLSearchParams("a=1&b=2")], new Intl.NumberFormat("de").format(1.5), typeof this]`;
          expect(await resultOf(browsers, source, here)).to.deep.equal(await resultOf(browsers, source));
        });
      }

      const leftovers = LEFTOVER_SAMPLES.filter(([, , needs]) => !needs || GLOBALS[mode].includes(needs));
      for (const [title, code] of sampleOf(leftovers, index, 8)) {
        it(`leaves nothing for the next run of ${title}`, async () => {
          const outcome = await browsers.run(runOf(`${DYNAMIC_CODE} const execute = async () => { ${code} }`, here));
          expect(outcome).to.deep.equal({ ok: true, data: undefined });
          expect(await resultOf(browsers, PROBE_CODE, here)).to.deep.equal([]);
          expect(await resultOf(browsers, PROBE_CODE)).to.deep.equal([]);
        });
      }

      it("loses none of its time to a previous run that continues after its result", async () => {
        // The service waits RESET_TIMEOUT_MS for a busy thread. This limit is shorter, but long enough for a run. On a busy machine, some
        // attempts exceed it.
        const timeoutMs = RESET_TIMEOUT_MS - 50;
        const outcomes: boolean[] = [];
        while (outcomes.length < 20 && !outcomes.includes(true)) {
          expect(await resultOf(browsers, ENDLESS_CODE, here)).to.equal(1);
          outcomes.push((await browsers.run(runOf("const execute = async () => 2", { ...here, timeoutMs }))).ok);
        }
        expect(outcomes).to.include(true);
      });

      it("evaluates packages first and in order, in the same global scope, and names one that fails", async () => {
        const packages = [
          { name: "one.js", source: "var order = ['one']; globalThis.Svc = {}" },
          { name: "two.js", source: "order.push('two'); Svc.two = 2" },
        ];
        const source = "order.push('action'); const execute = async () => [order, Svc]";
        const seen = await resultOf(browsers, source, { ...here, packages });
        expect(seen).to.deep.equal([["one", "two", "action"], { two: 2 }]);
        const faulty = [...packages, { name: "three.js", source: "order.missing.thing" }];
        const { error } = await failureOf(browsers, source, { ...here, packages: faulty });
        expect(error.stack).to.include("at three.js:1:");
      });

      it("prints nothing into the next run", async () => {
        const chain = "(async () => { for (let i = 0; i < 1e4; i += 1) { await 0; console.log('late') } })()";
        const timer = "globalThis.setInterval?.(() => console.log('late'), 1)";
        const source = `const execute = async () => { console.log('own'); ${timer}; ${chain} }`;
        const lines: string[] = [];
        await resultOf(browsers, source, { ...here, onConsole: (line: ConsoleLine) => lines.push(line.text) });
        const wait = "const execute = async () => { for (const end = Date.now() + 100; Date.now() < end; ) await 0 }";
        const next: string[] = [];
        await resultOf(browsers, wait, { ...here, onConsole: (line: ConsoleLine) => next.push(line.text) });
        expect(lines[0]).to.equal("own");
        expect(next).to.deep.equal([]);
      });

      it("shows two concurrent runs nothing of each other", async () => {
        const leavingCode =
          "globalThis.left = 1; const execute = async () => { for (const end = Date.now() + 200; Date.now() < end; ) await 0 }";
        const [, ...seen] = await Promise.all([
          resultOf(browsers, leavingCode, here),
          resultOf(browsers, PROBE_CODE, here),
          resultOf(browsers, PROBE_CODE, { ...here, isolationKey: "2:master" }),
        ]);
        expect(seen).to.deep.equal([[], []]);
      });

      const ways = ESCAPE_WAYS.filter(([, way]) => !modeHasNetwork(mode) || !/fetch/.test(way));
      for (const [title, code] of sampleOf(ways, index, 8)) {
        it(`reaches nothing by ${title}, although its app may reach the listener`, async () => {
          arrived = [];
          // Prints a line, so that the service does not repeat a run of a network isolate in a document, which could reach the listener.
          const source = `const execute = async () => {
            console.log("started");
            const Made = (async () => {}).constructor;
            await new Made("url", ${JSON.stringify(code)})(${JSON.stringify(url)}).catch(() => {});
            for (const end = Date.now() + 100; Date.now() < end; ) await 0;
            await new Promise((resolve) => (globalThis.setTimeout ?? ((go) => go()))(resolve, 100));
          }`;
          await browsers.run(runOf(source, here));
          expect(arrived).to.deep.equal([]);
          // This request from a document of the same app must arrive. Otherwise, the listener would not prove anything.
          await resultOf(browsers, `const execute = async () => { await fetch("${url}/seen") }`);
          expect(arrived).to.deep.equal(["/seen"]);
        });
      }
    });
  }
});
