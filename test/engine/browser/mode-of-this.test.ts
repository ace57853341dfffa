/** Generates programs that use `this` in each kind of function, and checks that the chosen mode gives the same results as a document. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { createCodeNeedsFinder } from "../../../src/engine/browser/mode.js";
import { resultOf, sharedBrowsers } from "./support.js";

/** Expressions whose values show whether `this` is the global object of a document. */
const PROBES = [
  "typeof this?.document",
  "typeof this?.['document']",
  "typeof (this ?? {}).name",
  "(() => this?.location === undefined)()",
  "(({ document } = this ?? {}) => typeof document)()",
  "((self) => typeof self?.document)(this)",
  "this?.listOfTheCode?.length",
  "typeof this?.globalThis?.document",
  "this?.eval?.('typeof document')",
  "this?.Function?.('return typeof document')()",
  "typeof this?.valueOf?.()?.document",
  "this?.hasOwnProperty?.('location')",
  "typeof this?.__lookupGetter__?.('document')",
  "String(this?.toString?.())",
  "(() => { const { [this]: other, unknown } = { '[object Window]': 1 }; return String(other) })()",
];

/** Expressions that only a method can contain: `super` uses the method's `this`. */
const SUPER_PROBES = [
  "typeof super.valueOf()?.document",
  "String(super.toString())",
  "typeof super.receiver?.document",
];
const SUPER_OBJECTS: ((probe: string) => string)[] = [
  (probe) => `{ m() { return ${probe} } }`,
  (probe) => `{ __proto__: new Proxy({}, { get: (target, name, receiver) => receiver }), m() { return ${probe} } }`,
  (probe) => `new (class { m() { return ${probe} } })()`,
];
const STACK_PROBE = `(() => {
  Error.prepareStackTrace = (error, sites) => typeof sites[0].getThis()?.document;
  function readStack() { return new Error().stack }
  const text = readStack();
  delete Error.prepareStackTrace;
  return text;
})()`;

/** Expressions that evaluate a probe in an object `o` with the function `m`. */
const OBJECTS: ((probe: string) => string)[] = [
  (probe) => `{ m() { return ${probe} } }`,
  (probe) => `{ "m"() { return ${probe} } }`,
  (probe) => `{ m(value = ${probe}) { return value } }`,
  (probe) => `{ m: () => ${probe} }`,
  (probe) => `{ m: function () { return ${probe} } }`,
  (probe) => `{ get m() { return () => ${probe} } }`,
  (probe) => `{ listOfTheCode: [1, 2], m() { return ${probe} } }`,
  (probe) => `{ m() { return ({ inner() { return ${probe} } }).inner() } }`,
  (probe) => `{ m() { function inner() { return ${probe} } return inner() } }`,
  (probe) => `{ m() { "use strict"; return ${probe} } }`,
  (probe) => `new (class { m() { return ${probe} } })()`,
  (probe) => `class { static m() { return ${probe} } }`,
  (probe) => `new (class { m = () => ${probe} })()`,
  (probe) => `new (class { get m() { return () => ${probe} } })()`,
  (probe) => `new (class { m() { return [new (class { n = ${probe} })().n] } })()`,
];

const CALLS = [
  "o.m()",
  "o?.m()",
  'o["m"]()',
  "(0, o.m)()",
  "(({ m }) => m())(o)",
  "(({ m: f }) => f())(o)",
  '((f) => f())(o["m"])',
  "((f) => f())(Reflect.get(o, 'm'))",
  "(([f]) => f?.())(Object.values(o))",
  "[1].map(o.m)[0]",
  "o.m.call()",
  "Reflect.apply(o.m, undefined, [])",
  "Object.getOwnPropertyDescriptor(o, 'm')?.get?.call()()",
];

/** Expressions with a probe in a part of a class or object that is evaluated with another `this` than its methods. */
const OUTER_PARTS: ((probe: string) => string)[] = [
  (probe) => `Object.getOwnPropertyNames(class { static [${probe}]() {} }).at(-1)`,
  (probe) => `Object.keys(class { static [${probe}] = 1 })[0]`,
  (probe) => `Object.getOwnPropertyNames((class { get [(() => ${probe})()]() {} }).prototype).at(-1)`,
  (probe) => `Object.keys(new (class { [${probe}] = 1 })())[0]`,
  (probe) => `Object.keys({ [${probe}]() {} })[0]`,
  (probe) => `(class extends (class { static n = 1 }) { static v = ${probe} }).v`,
  (probe) => `(class { static v; static { this.v = ${probe} } }).v`,
  (probe) => `new (class { constructor() { this.v = ${probe} } })().v`,
  (probe) => `({ m() { return Object.keys(class { static [${probe}] = 1 })[0] } }).m.call()`,
];

const EXPRESSIONS = PROBES.flatMap((probe) => [
  ...OBJECTS.flatMap((object) => CALLS.map((call) => `((o) => ${call})(${object(probe)})`)),
  ...OUTER_PARTS.map((part) => part(probe)),
]).concat(
  SUPER_PROBES.flatMap((probe) =>
    SUPER_OBJECTS.flatMap((object) => CALLS.map((call) => `((o) => ${call})(${object(probe)})`)),
  ),
  STACK_PROBE,
);

/** Code that returns the value of each expression as text. A function that throws gives the name of its error. */
const ALL_CODE = `async function execute() {
  return [${EXPRESSIONS.map((expression) => `() => ${expression}`).join(",\n")}].map((evaluate) => {
    try { return String(evaluate()) } catch (error) { return error.name }
  });
}`;

describe("the mode of code that uses this", () => {
  let browsers: Browsers;

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  it("is an isolate only if the code has the same result there as in a document", async () => {
    const inIsolate = (await resultOf(browsers, ALL_CODE, { mode: "isolate" })) as string[];
    const inDocument = (await resultOf(browsers, ALL_CODE, { mode: "document" })) as string[];
    const findNeeds = createCodeNeedsFinder();
    const needsDocument = (index: number) => inIsolate[index] !== inDocument[index];
    const isInIsolate = EXPRESSIONS.map(
      (expression) => findNeeds(`async function execute() { return ${expression} }`).mode === "isolate",
    );
    expect(EXPRESSIONS.filter((_, index) => needsDocument(index)).length).to.be.greaterThan(50);
    expect(isInIsolate.filter(Boolean).length).to.be.greaterThan(50);
    expect(EXPRESSIONS.filter((_, index) => isInIsolate[index] && needsDocument(index))).to.deep.equal([]);
  });
});
