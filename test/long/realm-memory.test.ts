/** Executes thousands of runs that leave memory in the heap of their shared thread. The memory must be freed when the thread ends. */
import { readdirSync, readFileSync } from "node:fs";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { failureOf, resultOf, testBrowsers } from "../engine/browser/support.js";

const SOAK_RUNS = 5_000;
/** Number of runs before the first measurement of the memory. */
const SETTLED_RUNS = 500;
const GROWTH_MAX_MB = 100;

/** Returns the resident memory in MB of the renderers in a process group. */
function measureRendererMegabytes(group: number): number {
  let sum = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, rest] = readFileSync(`/proc/${pid}/stat`, "latin1").split(/\) (?!.*\) )/s);
      const fields = rest!.split(" ");
      const isRenderer = readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer");
      if (Number(fields[2]) === group && isRenderer) sum += Number(fields[21]) * 4_096;
    } catch {
      // The process has ended.
    }
  }
  return sum / 1024 / 1024;
}

describe("the memory of runs in realms", () => {
  const here = { mode: "isolate" } as const;
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  it("is limited for a run that fills it with objects", async () => {
    const code = "const execute = async () => { const kept = []; for (;;) kept.push(new Array(1e6).fill({})); }";
    expect((await failureOf(browsers, code, here)).cause).to.equal("memory");
    expect(await resultOf(browsers, "const execute = async () => 1", here)).to.equal(1);
  });

  it("is counted for each run: memory of earlier ones does not count", async () => {
    const code = `const execute = async () => {
      const kept = []; for (let i = 0; i < 30; i += 1) kept.push(new Uint8Array(1e7).fill(1));
      for (const end = Date.now() + 250; Date.now() < end; ) await 0;
      return kept.length;
    }`;
    for (let count = 0; count < 6; count += 1) {
      expect(await resultOf(browsers, code, { mode: undefined })).to.equal(30);
    }
  });

  it("does not include that of earlier quick runs, whatever they left in their global scope", async () => {
    const code = "var left = new Uint8Array(3e7).fill(1); const execute = async () => left.length";
    for (let count = 0; count < 60; count += 1) {
      expect(await resultOf(browsers, code, { mode: undefined })).to.equal(3e7);
    }
  });

  it(`grows by less than ${GROWTH_MAX_MB} MB over ${SOAK_RUNS} runs`, async () => {
    let settled = 0;
    for (let count = 0; count < SOAK_RUNS; count += 1) {
      if (count === SETTLED_RUNS) settled = measureRendererMegabytes(browsers.getBrowserPid()!);
      await resultOf(browsers, "const execute = async () => 1", here);
    }
    expect(measureRendererMegabytes(browsers.getBrowserPid()!) - settled).to.be.lessThan(GROWTH_MAX_MB);
  });
});
