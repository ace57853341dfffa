/** Code gets less than a document only where every name that it uses is one of those that it would be given. */
import { expect } from "chai";
import { createRealmsOfCode, fitsFetchRealm, realmOfNames } from "../../../src/engine/browser/realm-of-code.js";
import type { RealmKind } from "../../../src/engine/browser/run.js";

const LANGUAGE: [string, string][] = [
  ["the language", "async function execute({ payload }) { return Math.max(...payload.list) + `${new Date(0)}` }"],
  ["the console", "const execute = async () => console.log('a')"],
  ["a name of a window, declared by the code", "const name = 1; const execute = async (status) => [name, status]"],
  ["properties named as a window's", "const execute = async ({ payload }) => payload.document.location.name"],
  [
    "this in a class",
    "class A { constructor() { this.x = 1 } static { this.y = 2 } z = this.x } const execute = async () => new A()",
  ],
  [
    "this in a method, and in an arrow in it",
    "const o = { m() { return () => this } }; const execute = async () => o.m()",
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

const WORKER: [string, string][] = [
  ["what its packages define", "const execute = async () => Svc.CSV.parse('a')"],
  ["marks and WebCrypto", "const execute = async () => [performance.mark('a'), crypto.randomUUID()]"],
  ["a clock taken out", "const { now } = performance; const execute = async () => now"],
  ["a word of what was collected", "const execute = async () => new FinalizationRegistry(() => {})"],
  ["tasks and copies", "const execute = async () => queueMicrotask(() => structuredClone({}))"],
  ["what browser this is", "const execute = async () => [navigator.userAgent, navigator?.language]"],
];

const FETCH: [string, string][] = [
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
    "headers, bodies and streams",
    "const execute = async () => new Response(new Blob([new FormData()])).headers instanceof Headers",
  ],
  [
    "a request that waits",
    "const execute = async () => { setTimeout(() => fetch(new URL('https://example.com')), 1) }",
  ],
];

const NETWORK: [string, string][] = [
  [
    "a request and what its packages define",
    "const execute = async () => Svc.CSV.parse(await (await fetch('a')).text())",
  ],
  ["a request and marks", "const execute = async () => fetch(performance.mark('a').name)"],
];

const DOCUMENT: [string, string][] = [
  ["the document", "const execute = async () => document.title"],
  ["a socket", "const execute = async () => new WebSocket('wss://example.com')"],
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
  ["eval", "const execute = async () => eval('document')"],
  ["Function", "const execute = async () => Function('return document')()"],
  ["a function's constructor", "const execute = async () => execute.constructor('return document')()"],
  ["a constructor by its text", "const execute = async () => execute['constructor']('return document')()"],
  ["a constructor taken out", "const { constructor: made } = () => {}; const execute = async () => made('document')"],
  ["a module", "const execute = async () => import('https://example.com/a.mjs')"],
  ["an object as scope", "const execute = async (c) => { with (c) { return payload } }"],
  ["what cannot be read", "const execute = async () => {"],
  ["what is too long to look at", `const execute = async () => 1; //${" ".repeat(16_384)}`],
];

const ALL: [RealmKind, [string, string][]][] = [
  ["language", LANGUAGE],
  ["fetch", FETCH],
  ["worker", WORKER],
  ["network", NETWORK],
  ["document", DOCUMENT],
];

describe("the realm of code", () => {
  const realmsOf = createRealmsOfCode();

  for (const [kind, codes] of ALL) {
    for (const [title, code] of codes) {
      it(`is a ${kind} for code that uses ${title}`, () => expect(realmsOf(code)[0]).to.equal(kind));
    }
  }

  it("is each that has all its names: a worker has no network, and more names than a realm with one", () => {
    const kindsOf = (body: string) => realmsOf(`const execute = async () => { ${body} }`);
    expect(kindsOf("return Math.max(1)")).to.deep.equal(["language", "fetch", "worker", "network", "document"]);
    expect(kindsOf("setTimeout(() => {}, 1)")).to.deep.equal(["fetch", "worker", "network", "document"]);
    expect(kindsOf("return crypto.randomUUID()")).to.deep.equal(["fetch", "worker", "network", "document"]);
    expect(kindsOf("return performance.mark('a')")).to.deep.equal(["worker", "network", "document"]);
    expect(kindsOf("return fetch('/')")).to.deep.equal(["fetch", "network", "document"]);
    expect(kindsOf("return [fetch, performance]")).to.deep.equal(["network", "document"]);
    expect(kindsOf("return document")).to.deep.equal(["document"]);
  });

  it("of a package is no document for a name that no document has", () => {
    expect(realmOfNames(["Array", "require", "process", "setImmediate", "toString"])).to.equal("worker");
    expect(realmOfNames(["Deno", "File"])).to.equal("network");
    expect(realmOfNames(["navigator.language", "eval", "eval()"])).to.equal("worker");
    for (const name of ["navigator", "navigator.locks", "import()", "document", "onfocus", "webkitURL"]) {
      expect(realmOfNames(["Array", name]), name).to.equal("document");
    }
  });

  it("with fetch holds a package that names no more than that realm has, nor asks eval for what is around it", () => {
    expect(fitsFetchRealm(["Array", "require", "globalThis", "setTimeout", "Response", "Function"])).to.equal(true);
    for (const name of ["Crypto", "performance.now", "navigator.language", "document", "eval"]) {
      expect(fitsFetchRealm(["Array", name]), name).to.equal(false);
    }
  });

  it("is judged alike the second time, and after much else", () => {
    const few = createRealmsOfCode(80);
    const codes = ["Math.max", "document", "fetch", "window", "Math.abs"].map(
      (name) => `const execute = async () => ${name}`,
    );
    const judged = () => codes.map((code) => few(code)[0]);
    const expected = ["language", "document", "fetch", "document", "language"];
    expect(judged()).to.deep.equal(expected);
    expect(judged()).to.deep.equal(expected);
  });

  it("is judged by what this code is given, not by what another is whose first line says so", () => {
    const one = createRealmsOfCode();
    const code = "async function execute() {}";
    expect(one(code, ["fetch"])[0]).to.equal("language");
    expect(one(`fetch\n${code}`)[0]).to.equal("fetch");
  });
});
