/** Tests that the service replaces browsers after rare losses. test/engine/browser/lost-zygote.test.ts tests more frequent losses. */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { findZygotePids, readProcessSandboxStates } from "../../src/engine/browser/processes/sandbox-proof.js";
import { signalProcess } from "../../src/engine/browser/watch/processes.js";
import { zygotesOf } from "../engine/browser/process-group.js";
import { resultOf, testBrowsers } from "../engine/browser/support.js";
import { until } from "../harness/until.js";

describe("a browser that is lost while no run uses it", () => {
  let browsers: Browsers;
  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  it("is replaced if only its zygote is killed, the process that forks its renderers", async () => {
    const browser = browsers.getBrowserPid()!;
    const started = findZygotePids(readProcessSandboxStates(browser));
    const forkingZygotes = zygotesOf(browser).filter((pid) => !started.includes(pid));
    expect(forkingZygotes).to.not.have.length(0);
    for (const pid of forkingZygotes) signalProcess(pid, "SIGKILL");
    await until(() => browsers.isReady() && browsers.getBrowserPid() !== browser);
  });

  it("is replaced while it has no page, before a run needs one", async () => {
    const empty = testBrowsers({ spareContexts: 0 });
    await empty.start();
    try {
      const killed = empty.getBrowserPid()!;
      // Both zygotes end shortly after each other, so the second one may not exist any more.
      for (const pid of zygotesOf(killed)) signalProcess(pid, "SIGKILL");
      await until(() => empty.isReady() && empty.getBrowserPid() !== killed);
    } finally {
      await empty.stop();
    }
  });

  it("is replaced if it no longer responds, and the run that waits for a page is executed", async () => {
    process.kill(-browsers.getBrowserPid()!, "SIGSTOP");
    expect(await resultOf(browsers, "const execute = async () => 5")).to.equal(5);
  });
});

describe("the pause before a browser is replaced", () => {
  let browsers: Browsers;
  let pauses: number[];
  beforeEach(async () => {
    pauses = [];
    browsers = testBrowsers({ pause: async (ms) => pauses.push(ms) });
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  async function killAndAwaitNext(): Promise<void> {
    const killed = browsers.getBrowserPid()!;
    process.kill(-killed, "SIGKILL");
    await until(() => browsers.isReady() && browsers.getBrowserPid() !== killed);
  }

  it("is zero for each browser that had served a run", async () => {
    for (const value of [1, 2, 3]) {
      expect(await resultOf(browsers, `const execute = async () => ${value}`)).to.equal(value);
      await killAndAwaitNext();
    }
    expect(pauses).to.deep.equal([0, 0, 0]);
  });

  it("grows while browsers end before they have served a run", async () => {
    for (let kill = 0; kill < 3; kill += 1) await killAndAwaitNext();
    expect(pauses).to.deep.equal([0, 100, 200]);
  });
});
