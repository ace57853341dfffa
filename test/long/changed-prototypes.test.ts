/**
 * Runs code that changes the language's own objects, such as Object.prototype. The service's code in the page runs in the same scope, and
 * must still work.
 */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import {
  DOCUMENT_HARNESS_SCRIPT,
  DOCUMENT_LIMITS_SCRIPT,
  ISOLATE_HARNESS_SCRIPTS,
  NETWORK_ISOLATE_HARNESS_SCRIPTS,
} from "../../src/engine/browser/pages/harness.js";
import { type ConsoleLine, EVALUATION_MODES } from "../../src/engine/browser/run.js";
import { type ReachableHost, reachableHost } from "../engine/browser/host.js";
import { runOf } from "../engine/browser/support.js";

/** Sources of the service's code that runs in the page with the action. The test replaces every name that this code contains. */
const HARNESS_SOURCES = [
  DOCUMENT_LIMITS_SCRIPT,
  DOCUMENT_HARNESS_SCRIPT,
  NETWORK_ISOLATE_HARNESS_SCRIPTS.worker,
  ISOLATE_HARNESS_SCRIPTS.worker,
];
const DESCRIPTOR_FIELDS = ["get", "set", "value", "writable", "configurable", "enumerable"];
const OTHER_NAMES = ["then", "toJSON", "toString", "0", "1", "2", "3"];
const NAMES = [
  ...new Set([...DESCRIPTOR_FIELDS, ...OTHER_NAMES, ...HARNESS_SOURCES.join("\n").match(/[a-z_$][\w$]*/gi)!]),
];

/** Source code of property descriptors, by title. Each test run replaces the properties of CHANGED_OBJECTS by one of these descriptors. */
const REPLACEMENTS: Record<string, string> = {
  "getters that throw":
    "{ __proto__: null, configurable: true, get() { throw new Error('read') }, set() { throw new Error('written') } }",
  "functions that throw":
    "{ __proto__: null, configurable: true, writable: true, value() { throw new Error('called') } }",
  "functions that return themselves":
    "{ __proto__: null, configurable: true, writable: true, value: function own() { return own } }",
  "read-only numbers": "{ __proto__: null, value: 1 }",
};

/**
 * Expressions for the objects to change. On each object, the test replaces the properties in NAMES. It also replaces all own properties,
 * except on Object.prototype.
 */
const CHANGED_OBJECTS: Record<string, string> = {
  "properties of Object.prototype": "[Object.prototype]",
  "properties of the language's classes and namespaces": `[
    ...[Function, Array, String, Number, Boolean, Symbol, RegExp, Promise, Error, Map, Set, WeakMap, Date, Uint8Array].map((one) => one.prototype),
    Object.getPrototypeOf(Uint8Array.prototype), Object.getPrototypeOf([].values()), Iterator.prototype,
    Object, Array, Function, String, Number, Reflect, JSON, Math, Date, RegExp, Error, Symbol, Promise
  ]`,
};

/** Synchronous and asynchronous calls of functions that the globals of a run share with its thread, such as Blob. */
const BORROWED_CALLS = [
  "new Headers({ __proto__: null, name: 'one' }).get('name')",
  "new Blob(['one']).size",
  "new FormData().append('name', 'one')",
  "await new Response('one').text()",
  "await new Blob(['one']).arrayBuffer()",
  "await (await fetch(url, { __proto__: null, method: 'POST', body: 'one' })).text()",
  "await new Promise((resolve) => { setTimeout(resolve, 1) })",
];

/** Returns code that replaces properties of the objects `holders` by `descriptor`. Its `execute` ends with the code `end`. */
const source = (holders: string, descriptor: string, end: string) => `
  const { defineProperty, ownKeys } = Reflect;
  const { log } = console;
  const failure = new (class Failure extends Error {})("own");
  const holders = ${holders};
  const names = ${JSON.stringify(NAMES)};
  // Promise.prototype.constructor is not changed, because the language itself reads it when code awaits a promise.
  const isKept = (holder, name) => holder === Promise.prototype && name === "constructor";
  const changes = [];
  for (const holder of holders) {
    const own = holder === Object.prototype ? [] : ownKeys(holder);
    for (const name of [...names, ...own]) if (!isKept(holder, name)) changes.push({ __proto__: null, holder, name });
  }
  const execute = async () => {
    for (let at = 0; at < changes.length; at += 1) {
      // Some properties cannot be changed.
      try { defineProperty(changes[at].holder, changes[at].name, ${descriptor}) } catch {}
    }
    ${end};
  };`;

describe("changes of the language's own objects by a run", function () {
  this.timeout(180_000);
  let host: ReachableHost;
  let browsers: Browsers;
  const lost: string[] = [];

  before(async () => {
    const onLoss = (kind: string) => void lost.push(kind);
    host = await reachableHost(
      (request, response) => {
        response.setHeader("Access-Control-Allow-Origin", "*").setHeader("Access-Control-Allow-Headers", "*");
        request.pipe(response);
      },
      { onLoss },
    );
    browsers = host.browsers;
  });
  after(() => host.stop());

  for (const mode of EVALUATION_MODES) {
    for (const [objects, holders] of Object.entries(CHANGED_OBJECTS)) {
      it(`do not prevent a run in mode ${mode} from reporting its console and its result: ${objects}`, async () => {
        for (const [title, descriptor] of Object.entries(REPLACEMENTS)) {
          const printed: string[] = [];
          const onConsole = ({ text }: ConsoleLine) => void printed.push(text);
          const ended = async (end: string) => {
            const outcome = await browsers.run(runOf(source(holders, descriptor, end), { mode, onConsole }));
            return outcome.ok ? outcome.data : `${outcome.cause}: ${outcome.error.message}`;
          };
          const found = [await ended("log('printed'); return 1"), await ended("throw failure")];
          expect([...found, ...printed], title).to.deep.equal(["1", "script: own", "printed"]);
          expect(lost).to.deep.equal([]);
        }
      });
    }
  }

  for (const [objects, holders] of Object.entries(CHANGED_OBJECTS)) {
    it(`may make calls of platform objects fail, but do not end the run: ${objects}`, async () => {
      for (const [title, descriptor] of Object.entries(REPLACEMENTS)) {
        for (const use of BORROWED_CALLS) {
          const printed: string[] = [];
          const onConsole = ({ text }: ConsoleLine) => void printed.push(text);
          const end = `log("before"); try { ${use} } catch {} log("after"); return 1`;
          // If a promise resolves to an object, JavaScript reads the object's property `then`. So the code sets it to undefined.
          const preparation = "Response.prototype.then = ArrayBuffer.prototype.then = undefined";
          const code = `const url = ${JSON.stringify(host.url)}; ${preparation}; ${source(holders, descriptor, end)}`;
          const run = runOf(code, { mode: "network-isolate", timeoutMs: 10_000, onConsole });
          const outcome = await browsers.run(run);
          expect([outcome, printed], `${title}: ${use}`).to.deep.equal([{ ok: true, data: "1" }, ["before", "after"]]);
          expect(lost).to.deep.equal([]);
        }
      }
    });
  }
});
