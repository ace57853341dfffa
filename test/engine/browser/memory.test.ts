/** Checks that no run exceeds its memory limit, and that no run fills the memory of the service's process. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { CONSOLE_MAX_CHARACTERS, CONSOLE_MAX_LINES } from "../../../src/engine/browser/pages/harness.js";
import type { ConsoleLine } from "../../../src/engine/browser/run.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { expectEndedByMemory } from "./memory-runs.js";
import { failureOf, resultOf, testBrowsers } from "./support.js";

describe("the memory of a run", function () {
  this.timeout(180_000);
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  // The values refer to no other objects, because many references would keep the garbage collector busy.
  // test/long/browser-memory.test.ts tests all APIs and modes.
  const allocations = [
    ["numbers", "const kept = []; for (;;) kept.push(new Array(1e6).fill(0.5));"],
    ["array buffers", "const kept = []; for (;;) { kept.push(new Uint8Array(1e7).fill(1)); await 0; }"],
  ];
  for (const [title, code] of sampleOf(allocations, 1, 2)) {
    it(`is limited: a run that fills it with ${title} ends with a memory error, and no other run ends`, () =>
      expectEndedByMemory(browsers, code!));
  }

  it("is limited in the number of workers", async () => {
    const code = "for (let i = 0; i < 100; i += 1) new Worker(URL.createObjectURL(new Blob(['0'])));";
    const failure = await failureOf(browsers, `const execute = async () => { ${code} await new Promise(() => {}) }`);
    expect(failure.cause).to.equal("memory");
    expect(failure.error.message).to.equal("The action opened too many pages, frames or workers");
  });

  longTest("is limited for the console in lines and characters inside the page", async () => {
    const lines: ConsoleLine[] = [];
    const source = "const execute = async () => { for (let i = 0; i < 1e5; i += 1) console.log(i) }";
    await resultOf(browsers, source, { onConsole: (line) => lines.push(line) });
    expect(lines).to.have.length(CONSOLE_MAX_LINES + 1);
    expect(lines.at(-1)?.text).to.equal("The console is full: further lines are not stored");
    const long: ConsoleLine[] = [];
    const printingCode =
      "const execute = async () => { const m = 'x'.repeat(1e6); for (let i = 0; i < 1e4; i += 1) console.log(m) }";
    await resultOf(browsers, printingCode, { onConsole: (line) => long.push(line) });
    expect(long.reduce((sum, line) => sum + line.text.length, 0)).to.be.lessThan(CONSOLE_MAX_CHARACTERS + 32_768);
  });

  it("has each console line with its level and time, objects as JSON and errors with their stack", async () => {
    const lines: ConsoleLine[] = [];
    const source = `const execute = async () => {
  console.log("a", 1, null, undefined, { b: [2] });
  console.warn(new TypeError("t"));
  console.assert(false, "c");
  console.count(); console.time("x");
}`;
    const before = Date.now();
    await resultOf(browsers, source, { onConsole: (line) => lines.push(line) });
    expect(lines.map(({ level, text }) => [level, text.split("\n")[0]])).to.deep.equal([
      ["log", 'a 1 null undefined {"b":[2]}'],
      ["warn", "TypeError: t"],
      ["error", "Assertion failed c"],
      ["log", "default: 1"],
    ]);
    expect(lines[1]?.text).to.equal("TypeError: t\n    at execute (action.js:3:16)");
    expect(lines[0]?.at).to.be.within(before, Date.now());
  });

  it("cannot be filled in this process by frames through the console", async () => {
    const source = `const execute = async () => {
      const frame = document.createElement("iframe"); document.body.append(frame);
      return Reflect.ownKeys(frame.contentWindow).filter((key) => String(key).includes("svc_"));
    }`;
    expect(await resultOf(browsers, source)).to.deep.equal([]);
  });
});
