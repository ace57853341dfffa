/** Code does without a document only where every name that it uses is one of those that it would be given. */
import { expect } from "chai";
import { WORKER_GLOBALS } from "../../../src/engine/browser/pages/worker-globals.js";
import { createPlainCode } from "../../../src/engine/browser/plain-code.js";

const PLAIN: [string, string][] = [
  ["the language", "async function execute({ payload }) { return Math.max(...payload.list) + `${new Date(0)}` }"],
  ["timers, console and WebCrypto", "const execute = async () => { setTimeout(console.log, 1, crypto.randomUUID()) }"],
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
];

const NOT_PLAIN: [string, string][] = [
  ["the document", "const execute = async () => document.title"],
  ["a request", "const execute = async () => fetch('https://example.com')"],
  ["the client library", "const execute = async () => Svc.App.V3.Actions.get()"],
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

describe("code that needs no document", () => {
  const plain = createPlainCode(WORKER_GLOBALS);

  for (const [title, code] of PLAIN) it(`uses ${title}`, () => expect(plain(code)).to.equal(true));
  for (const [title, code] of NOT_PLAIN) it(`does not use ${title}`, () => expect(plain(code)).to.equal(false));

  it("is judged alike the second time, and after much else", () => {
    const few = createPlainCode(["Math"], 2);
    const codes = ["Math.max", "document", "Math.min", "window", "Math.abs"].map(
      (name) => `const execute = async () => ${name}`,
    );
    const judged = () => codes.map(few);
    expect(judged()).to.deep.equal([true, false, true, false, true]);
    expect(judged()).to.deep.equal([true, false, true, false, true]);
  });
});
