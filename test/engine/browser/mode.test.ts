/** Tests the choice of a run's mode. The service chooses an isolate only if this isolate has every global that the code names. */
import { expect } from "chai";
import { computeCodeNeedsFromGlobals, createCodeNeedsFinder } from "../../../src/engine/browser/mode.js";
import type { EvaluationMode } from "../../../src/engine/browser/run.js";

const ISOLATE_SAMPLES: [string, string][] = [
  ["the language", "async function execute({ payload }) { return Math.max(...payload.list) + `${new Date(0)}` }"],
  ["the console", "const execute = async () => console.log('a')"],
  ["a name of a window, declared by the code", "const name = 1; const execute = async (status) => [name, status]"],
  ["properties named as a window's", "const execute = async ({ payload }) => payload.document.location.name"],
  [
    "this in a class",
    "class A { constructor() { this.x = 1 } static { this.y = 2 } z = this.x } const execute = async () => new A()",
  ],
  [
    "properties of this in a method, and in an arrow in it",
    "const o = { total: 1, m() { return () => this.total } }; const execute = async () => o.m()",
  ],
  [
    "arguments, labels and destructuring",
    "const execute = async function () { out: for (const [a, { b = a, ...c }] of arguments) break out; }",
  ],
  [
    "what waits in another thread",
    "const execute = async () => Atomics.waitAsync(shared(), 0, 0, 1); const shared = () => 1",
  ],
  ["what does not hold", "const execute = async () => new WeakRef({}).deref()"],
];

const PARTLY_SUPPORTED_SAMPLES: [string, string][] = [
  ["what its packages define", "const execute = async () => Svc.CSV.parse('a')"],
  ["marks and WebCrypto", "const execute = async () => [performance.mark('a'), crypto.randomUUID()]"],
  ["a clock taken out", "const { now } = performance; const execute = async () => now"],
  ["a callback for collected objects", "const execute = async () => new FinalizationRegistry(() => {})"],
  ["tasks and copies", "const execute = async () => queueMicrotask(() => structuredClone({}))"],
  ["what browser this is", "const execute = async () => [navigator.userAgent, navigator?.language]"],
];

const NETWORK_ISOLATE_SAMPLES: [string, string][] = [
  [
    "the console, and what turns texts into bytes",
    "const execute = async () => console.log(btoa('a'), new TextEncoder())",
  ],
  ["timers and WebCrypto", "const execute = async () => { setTimeout(console.log, 1, crypto.randomUUID()) }"],
  ["a request and WebCrypto", "const execute = async () => fetch(crypto.randomUUID())"],
  ["a clock", "const execute = async () => performance.now() + performance.timeOrigin"],
  ["a request and events of its own", "const execute = async () => fetch(new Event('https://example.com').type)"],
  ["events", "const execute = async () => new AbortController().signal instanceof EventTarget"],
  ["a request", "const execute = async () => fetch('https://example.com')"],
  [
    "headers and bodies",
    "const execute = async () => new Response(new Blob([new FormData()])).headers instanceof Headers",
  ],
  [
    "a request that waits",
    "const execute = async () => { setTimeout(() => fetch(new URL('https://example.com')), 1) }",
  ],
];

const BOTH_MODES_SAMPLES: [string, string][] = [
  [
    "a request and what its packages define",
    "const execute = async () => Svc.CSV.parse(await (await fetch('a')).text())",
  ],
  ["a request and marks", "const execute = async () => fetch(performance.mark('a').name)"],
];

const DOCUMENT_SAMPLES: [string, string][] = [
  ["the document", "const execute = async () => document.title"],
  ["a socket", "const execute = async () => new WebSocket('wss://example.com')"],
  ["a stream of its own", "const execute = async () => new Response(new ReadableStream()).text()"],
  [
    "a compressed stream",
    "const execute = async () => (await fetch('a')).body.pipeThrough(new CompressionStream('gzip'))",
  ],
  ["storage", "const execute = async () => localStorage.length + indexedDB.length"],
  ["a request of another kind", "const execute = async () => new XMLHttpRequest()"],
  ["what a navigator keeps", "const execute = async () => navigator.storage.estimate()"],
  ["a navigator whole", "const execute = async () => Object.keys(navigator)"],
  ["a navigator by a name made up", "const execute = async ({ payload }) => navigator[payload.name]"],
  ["a name looked at by typeof alone", "const execute = async () => typeof window"],
  ["a name that is only assigned", "const execute = async () => { status = 1 }"],
  ["a name declared in another scope", "const f = (name) => name; const execute = async () => f(name)"],
  ["the global object", "const execute = async () => globalThis.document"],
  ["this of a function", "async function execute() { return this.document }"],
  ["this at the top level", "const page = this; const execute = async () => page.document"],
  [
    "this of a function that is no method",
    "const o = { f: function () { return this } }; const execute = async () => o.f()",
  ],
  ["this of a method without its object", "const { m } = { m() { return this } }; const execute = async () => m()"],
  ["a document's property of this in a method", "const execute = async () => ({ m() { return this.location } }).m()"],
  ["this in the name of a class's method", "const execute = async () => class { [this.document]() {} }"],
  ["eval", "const execute = async () => eval('document')"],
  ["Function", "const execute = async () => Function('return document')()"],
  ["a function's constructor", "const execute = async () => execute.constructor('return document')()"],
  ["a constructor by its text", "const execute = async () => execute['constructor']('return document')()"],
  ["a constructor by a template", "const execute = async () => execute[`constructor`]('return document')()"],
  ["a constructor taken out", "const { constructor: made } = () => {}; const execute = async () => made('document')"],
  ["a module", "const execute = async () => import('https://example.com/a.mjs')"],
  ["an object as scope", "const execute = async (c) => { with (c) { return payload } }"],
  ["what cannot be read", "const execute = async () => {"],
  ["what is too long to look at", `const execute = async () => 1; //${" ".repeat(16_384)}`],
];

const SAMPLES_BY_MODE: [EvaluationMode, [string, string][]][] = [
  ["isolate", ISOLATE_SAMPLES],
  ["network-isolate", NETWORK_ISOLATE_SAMPLES],
  ["document", [...PARTLY_SUPPORTED_SAMPLES, ...BOTH_MODES_SAMPLES]],
  ["document", DOCUMENT_SAMPLES],
];

describe("the mode of code", () => {
  const needsOf = createCodeNeedsFinder();

  for (const [mode, codes] of SAMPLES_BY_MODE) {
    for (const [title, code] of codes) {
      it(`is ${mode} for code that uses ${title}`, () => expect(needsOf(code).mode).to.equal(mode));
    }
  }

  it("has a network only if the code names fetch or runs in a document", () => {
    const needs = (body: string) => needsOf(`const execute = async () => { ${body} }`);
    expect(needs("return Math.max(1)")).to.deep.equal({ mode: "isolate", network: false });
    expect(needs("setTimeout(() => {}, 1)")).to.deep.equal({ mode: "network-isolate", network: false });
    expect(needs("return new Request('/')")).to.deep.equal({ mode: "network-isolate", network: false });
    expect(needs("return fetch('/')")).to.deep.equal({ mode: "network-isolate", network: true });
    expect(needs("return document")).to.deep.equal({ mode: "document", network: true });
  });

  it("of a package ignores names that no document has", () => {
    const silent = { mode: "network-isolate", network: false };
    expect(computeCodeNeedsFromGlobals(["Array", "require", "process", "setImmediate", "toString"])).to.deep.equal(
      silent,
    );
    expect(computeCodeNeedsFromGlobals(["globalThis", "setTimeout", "Response", "Function"])).to.deep.equal(silent);
    expect(computeCodeNeedsFromGlobals(["Deno", "File", "fetch"])).to.deep.equal({
      mode: "network-isolate",
      network: true,
    });
    const documentNames = [
      "navigator",
      "navigator.language",
      "performance.now",
      "Crypto",
      "structuredClone",
      "import()",
    ];
    for (const name of [...documentNames, "document", "onfocus", "webkitURL", "eval"]) {
      expect(computeCodeNeedsFromGlobals(["Array", name]).mode, name).to.equal("document");
    }
  });

  it("is the same the second time, and after other code has replaced it in the cache", () => {
    const smallFinder = createCodeNeedsFinder(80);
    const codes = ["Math.max", "document", "fetch", "window", "Math.abs"].map(
      (name) => `const execute = async () => ${name}`,
    );
    const modes = () => codes.map((code) => smallFinder(code).mode);
    const expected = ["isolate", "document", "network-isolate", "document", "isolate"];
    expect(modes()).to.deep.equal(expected);
    expect(modes()).to.deep.equal(expected);
  });

  it("depends on the globals that the packages of this code define, not on other code with the same first line", () => {
    const finder = createCodeNeedsFinder();
    const code = "async function execute() {}";
    expect(finder(code, ["fetch"]).mode).to.equal("isolate");
    expect(finder(`fetch\n${code}`).mode).to.equal("network-isolate");
  });
});
