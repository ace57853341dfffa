/** Tests the rules for code: accepted and refused forms of `execute`, and the packages that code needs. */
import { expect } from "chai";
import { checkCode, findCodeFault } from "../../src/rules/code.js";
import { BUILT_IN_PACKAGES } from "../../src/rules/packages.js";
import { refusal } from "./refusal.js";

const wrapInExecute = (body: string) => `async function execute(context) {\n  ${body}\n}`;

/** Returns, as source text, a statement that returns a template literal with `${expression}`. */
const wrapInTemplate = (expression: string) => ["return `a$", "{", expression, "}`"].join("");

describe("code: accepted forms of execute", () => {
  const ACCEPTED_CODE = [
    "async function execute(context) { return 1; }",
    "async function execute({ payload, settings }) {}",
    "async function execute(context = {}) {}",
    "async function execute() { return 1 }",
    "async function execute(...args) {}",
    "const execute = async (context) => 1;",
    "const execute = async context => { await 1 }",
    "let execute = async ({ payload: { id } }) => id;",
    "const execute = async function (context) {};",
    "const execute = async function inner(context) {};",
    "const execute = (async (context) => {});",
    "'use strict';\nconst helper = () => 1, execute = async () => helper();",
    "function helper() { function execute() {} }\nasync function execute(context) {}",
    "// function execute() {}\nasync function execute(context) {}",
    "#!/usr/bin/env node\nasync function execute(context) {}",
    "async function execute(context) { for await (const x of []) {} return import('https://x.example/y.js'); }",
  ];
  for (const code of ACCEPTED_CODE) {
    it(JSON.stringify(code), () => {
      expect(findCodeFault(code, [])).to.equal(null);
    });
  }
});

describe("code: rejected forms of execute, with the form that was found", () => {
  const REFUSED: [string, RegExp][] = [
    ["function execute(context) {}", /line 1, column 1: .*function declaration that is not async/],
    ["async function* execute(context) {}", /function declaration that is a generator/],
    ["function* execute(context) {}", /generator/],
    ["async function Execute(context) {}", /the code defines "Execute"/],
    ["const run = async () => {}", /the code defines "run"/],
    ["1 + 1", /no function at the top level/],
    ["\n\nconst execute = (context) => 1", /line 3, column 7: .*arrow function that is not async/],
    ["const execute = function (context) {}", /function expression that is not async/],
    ["let execute = async function (context) {}", /async function expression bound by let/],
    ["var execute = async (context) => 1", /bound by var/],
    ["var execute = async function () {}", /bound by var/],
    ["const execute = async function* () {}", /function expression that is a generator/],
    ["let execute; execute = async () => {}", /more than once|without a value/],
    ["let execute;", /declared by let without a value/],
    ["execute = async () => {}", /assigned, not declared/],
    ["const { execute } = { async execute() {} }", /destructured from another value/],
    ["const [execute] = [async () => {}]", /destructured from another value/],
    ["class execute {}", /a class/],
    ["const execute = 5", /something other than a function/],
    ["const execute = wrap(async () => {})", /something other than a function/],
    ["if (true) { async function execute(context) {} }", /no function at the top level/],
    ["const o = { async execute(context) {} }", /no function at the top level/],
    ["async function execute() {}\nfunction execute() {}", /line 2, column 1: execute is defined more than once/],
    ["async function execute([context]) {}", /first parameter cannot receive the object context/],
  ];
  for (const [code, expected] of REFUSED) {
    it(JSON.stringify(code), () => {
      expect(refusal("CODE_VALIDATION_FAILED", () => checkCode(code, []))).to.match(expected);
    });
  }
});

describe("code: syntax errors", () => {
  const FAULTY: [string, RegExp][] = [
    ["async function execute(context) {\n  return (1;\n}", /^code, line 2, column 12: Unexpected token/],
    ["async function execute(context) {", /line 1, column 34: Unexpected token/],
    ["export async function execute(context) {}", /line 1, column 1: "import" and "export"/],
    ["import x from 'y';\nasync function execute() {}", /line 1, column 1/],
    ["async function execute() {}\nreturn 5", /line 2, column 1/],
    ["async function execute() {}\nawait 1", /line 2/],
    ["async function execute() {}\nlet a; let a;", /line 2, column 12/],
    ["async function execute() { import.meta }", /import\.meta/],
    ["async function execute() { {{ name }} }\nx = {{ y }}", /line 2/],
    ["async function execute() {}\n'\0'", /line 2, column 2: the code must not contain the character U\+0000/],
    ["async function execute() {}\r\n'\ud800'", /line 2, column 2: .*surrogate/],
    ["(".repeat(200_000), /Not enough stack|nests too deeply/],
    [`x=${"`${".repeat(50_000)}`, /Not enough stack|nests too deeply/],
    ["function f(){".repeat(50_000), /Not enough stack|nests too deeply/],
    [Array.from({ length: 6_000 }, (_, i) => `let v${i};`).join(""), /more than 5000 names/],
    ["a=>".repeat(200_000), /Not enough stack|nests too deeply/],
  ];
  for (const [code, expected] of FAULTY) {
    it(`have line and column: ${JSON.stringify(code.slice(0, 60))}`, () => {
      expect(refusal("CODE_VALIDATION_FAILED", () => checkCode(code, []))).to.match(expected);
    });
  }
});

const CODE_WITH_SESSION = [
  "return Svc.Session.get()",
  "return Svc['Session'].get()",
  "return Svc[`Session`].get()",
  "return Svc?.Session?.get()",
  "return (Svc?.Session).get()",
  "return window.Svc.Session.get()",
  "return window['Svc']['Session'].get()",
  "return globalThis.Svc?.Session.get()",
  "return self.Svc.Session",
  "return window.self.Svc.Session",
  "const { Session } = Svc",
  "const { Session: mine = 1 } = Svc",
  "const { 'Session': mine } = window.Svc",
  "const { Svc: { Session } } = window",
  "let Session; ({ Session } = Svc)",
  "const S = Svc; return S.Session.get()",
  "const { Svc: S } = window; return S.Session.get()",
  "const w = window; const S = w.Svc; const { Session } = S",
  "const f = ({ Session } = Svc) => Session",
  "{ const Svc = 1 }\n return Svc.Session",
  "return () => { { let Svc } return Svc.Session }",
  wrapInTemplate("Svc.Session.get()"),
  "class A { x = Svc.Session }",
  "return \\u0053vc.Session",
];

const CODE_WITHOUT_PACKAGES = [
  "// Svc.Session.get()",
  "/* Svc.Session */ return 'Svc.Session' + `Svc.Session` + /Svc.Session/",
  "return Svc.App.V3.Actions.run('x')",
  "return Svc.session",
  "return Svc.toString() + Svc.constructor + Svc['__proto__']",
  "return context.Svc.Session",
  "return other.window.Svc.Session",
  "const Svc = { Session: 1 }; return Svc.Session",
  "const f = (Svc) => Svc.Session",
  "const f = ({ Svc }) => Svc.Session",
  "function Svc() {} return Svc.Session",
  "try {} catch (Svc) { return Svc.Session }",
  "const window = {}; return window.Svc.Session",
  "const { Session } = other",
  "const Session = 1; return Session",
  "const name = 'Session'; return Svc[name]",
  "if (1) { var Svc = {} } return Svc.Session",
  "for (const Svc of []) Svc.Session",
  "const a = b, b = a; return a.Session",
];

describe("code: packages", () => {
  it("are ten, each required by its namespace and named with it", () => {
    expect(BUILT_IN_PACKAGES).to.have.length(10);
    for (const { name, namespace } of BUILT_IN_PACKAGES) {
      const code = wrapInExecute(`return Svc.${namespace}.anything();`);
      expect(findCodeFault(code, [])).to.equal(
        `code, line 2, column 14: Svc.${namespace} needs the package ${name} in dependencies`,
      );
      expect(findCodeFault(code, [name])).to.equal(null);
    }
  });

  for (const body of CODE_WITH_SESSION) {
    it(`are required by ${JSON.stringify(body)}`, () => {
      expect(findCodeFault(wrapInExecute(body), [])).to.match(/Svc\.Session needs the package svc-session/);
      expect(findCodeFault(wrapInExecute(body), ["svc-session"])).to.equal(null);
    });
  }

  for (const body of CODE_WITHOUT_PACKAGES) {
    it(`are not required by ${JSON.stringify(body)}`, () => {
      expect(findCodeFault(wrapInExecute(body), [])).to.equal(null);
    });
  }

  it("are reported at the first use in the order of the source", () => {
    const code = `const a = () => Svc.CSV;\n${wrapInExecute("Svc.Session")}`;
    expect(findCodeFault(code, [])).to.match(/line 1, column 21: Svc\.CSV needs the package svc-csv/);
  });

  it("are found in a chain of a hundred thousand members and under deep nesting", () => {
    const deep = `${"{".repeat(500)}Svc.Session${".a".repeat(100_000)}${"}".repeat(500)}`;
    expect(findCodeFault(wrapInExecute(deep), [])).to.match(/svc-session/);
  });
});
