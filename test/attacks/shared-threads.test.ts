/** Tests consecutive runs that share a thread and use no platform functions. Each run has fresh globals and the full memory. */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { THREAD_LIMITS } from "../../src/engine/browser/pages/harness.js";
import { resultOf, sharedBrowsers } from "../engine/browser/support.js";
import { longTest } from "../harness/samples.js";

/** Number of runs, more than one thread executes. */
const RUN_COUNT = THREAD_LIMITS.runsMax + 20;
/** Code that leaves 8 MiB behind. The data of RUN_COUNT runs together is larger than the heap of a thread. */
const LEAVING_CODE =
  "globalThis.left = []; for (let i = 0; i < 8; i += 1) left.push(new Array(131_072).fill(i + 0.5));";

describe("consecutive runs on a thread", function () {
  this.timeout(180_000);
  const here = { mode: "isolate" } as const;
  let browsers: Browsers;

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  it("see nothing of each other, over more runs than a thread serves", async () => {
    const source = `const seen = [typeof left, typeof leftVar, Object.prototype.left, Map.prototype.left, Symbol.for("left").left, RegExp.$1];
      globalThis.left = 1; var leftVar = 1; Object.prototype.left = Map.prototype.left = Symbol.prototype.left = 1; /(l)/.exec("l");
      const execute = async () => seen.map((one) => one ?? null)`;
    for (let count = 0; count < RUN_COUNT; count += 1) {
      expect(await resultOf(browsers, source, here)).to.deep.equal(["undefined", "undefined", null, null, null, ""]);
    }
  });

  longTest("have the full memory of a run, whatever earlier runs kept", async () => {
    const code = `const execute = async () => { ${LEAVING_CODE} return left.length }`;
    for (let count = 0; count < RUN_COUNT; count += 1) expect(await resultOf(browsers, code, here)).to.equal(8);
  });

  longTest("are ended with their page if they do not end, and the next run has another page", async () => {
    const load = `(() => {}).constructor('return import("data:text/javascript,1")')`;
    for (const continuationCode of [
      "(function next() { Promise.resolve().then(next) })()",
      `const load = ${load}; (function next() { load().then(next, next) })()`,
      "Array.fromAsync((async function* () { for (;;) yield 1 })())",
    ]) {
      const source = `const execute = async () => { ${continuationCode}; return 1 }`;
      expect(await resultOf(browsers, source, here), continuationCode).to.equal(1);
      expect(await resultOf(browsers, "const execute = async () => typeof left", here)).to.equal("undefined");
    }
  });

  it("have no memory that two threads could share, and cannot wait on it", async () => {
    const source = `const execute = async () => {
      const found = [typeof WebAssembly, typeof SharedArrayBuffer];
      for (const wait of [Atomics.wait, Atomics.waitAsync]) {
        try { wait(new Int32Array(8), 0, 0, 1); found.push("waits") } catch (error) { found.push(error.name) }
      }
      return found;
    }`;
    expect(await resultOf(browsers, source, here)).to.deep.equal(["undefined", "undefined", "TypeError", "TypeError"]);
  });
});
