/**
 * Tests that the service replaces a browser that can no longer start renderers, or whose network service or main process was killed. Rarer
 * failures are in test/long/browser-losses.test.ts.
 */
import { mock } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { Chromium } from "../../../src/engine/browser/browser-source.js";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { findZygotePids, readProcessSandboxStates } from "../../../src/engine/browser/processes/sandbox-proof.js";
import { BrowserWatch, PROCESS_CHECK_INTERVAL_MS } from "../../../src/engine/browser/watch/browser-watch.js";
import { hasProcessEnded, signalProcess } from "../../../src/engine/browser/watch/processes.js";
import { longTest, sampleOf } from "../../harness/samples.js";
import { until } from "../../harness/until.js";
import { groupMembers, procFile, startHangingRun, zygotesOf } from "./process-group.js";
import { resultOf, runOf, startTestChromium, testBrowsers } from "./support.js";

describe("the check of a zygote process", () => {
  it("regards only a missing process as ended, and no other failed read", () => {
    const read = (code: string) => () => {
      throw Object.assign(new Error(code), { code });
    };
    const ended = ["ENOENT", "ESRCH", "EMFILE", "ENFILE", "ENOMEM"].filter((code) => hasProcessEnded(1, read(code)));
    expect(ended).to.deep.equal(["ENOENT", "ESRCH"]);
    expect([hasProcessEnded(1, () => ["Z", "0"]), hasProcessEnded(1, () => ["S", "0"])]).to.deep.equal([true, false]);
  });
});

/** Numbers from which the test creates isolation keys, so that each run gets its own page. */
const PAGES = sampleOf(
  Array.from({ length: 20 }, (_, page) => page),
  0,
  4,
);

async function runOnPages(browsers: Browsers): Promise<void> {
  for (const page of PAGES) {
    expect(await resultOf(browsers, "const execute = async () => 1", { isolationKey: `${page}:master` })).to.equal(1);
  }
}

describe("the zygotes of a browser", () => {
  it("are those that its main process started, not a renderer that was just forked", () => {
    const processes = [
      { pid: 10, parent: 1, kind: "browser" },
      { pid: 11, parent: 10, kind: "browser" },
      { pid: 12, parent: 11, kind: "zygote" },
      { pid: 13, parent: 11, kind: "zygote" },
      { pid: 14, parent: 13, kind: "zygote" },
      { pid: 15, parent: 14, kind: "zygote" },
      { pid: 16, parent: 14, kind: "renderer" },
    ];
    expect(findZygotePids(processes)).to.deep.equal([12, 13]);
  });

  longTest("are the same while pages are opened and renderers end", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    try {
      const found = findZygotePids(readProcessSandboxStates(browsers.getBrowserPid()!));
      expect(found).to.have.length(2);
      let isOver = false;
      const runs = runOnPages(browsers).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        expect(findZygotePids(readProcessSandboxStates(browsers.getBrowserPid()!))).to.have.members(found);
        await delay(5);
      }
      await runs;
    } finally {
      await browsers.stop();
    }
  });
});

describe("a browser whose zygote process is killed", () => {
  let browsers: Browsers;
  const losses: string[] = [];
  /** Kills the sandboxed zygotes of the current browser. One of them starts its renderers. Returns the PID of the browser. */
  function killZygotes(): number {
    const browser = browsers.getBrowserPid()!;
    // If one zygote ends, the other one ends too, so it may not exist any more.
    for (const pid of zygotesOf(browser)) signalProcess(pid, "SIGKILL");
    return browser;
  }
  before(async () => {
    browsers = testBrowsers({ onLoss: (kind) => losses.push(kind) });
    await browsers.start();
  });
  after(() => browsers.stop());

  longTest("is replaced when the next run needs a page", async () => {
    const killed = killZygotes();
    // During this run, the service notices the loss and starts another browser. The run may fail in a page that was opened before the loss.
    await browsers.run(runOf("const execute = async () => 1", { isolationKey: "2:master" }));
    expect(await resultOf(browsers, "const execute = async () => 1", { isolationKey: "3:master" })).to.equal(1);
    expect([losses.includes("browser"), browsers.getBrowserPid() !== killed]).to.deep.equal([true, true]);
  });

  longTest("is replaced while it is idle, so that no run gets a page whose renderer is gone", async () => {
    expect(await resultOf(browsers, "const execute = async () => 2")).to.equal(2);
    const killed = killZygotes();
    await until(() => browsers.isReady() && browsers.getBrowserPid() !== killed);
    expect(await resultOf(browsers, "const execute = async () => 3")).to.equal(3);
  });

  longTest("fails the run in progress at once, not at the run's time limit", async () => {
    const { run, started } = startHangingRun(browsers);
    await started;
    killZygotes();
    expect(await run).to.deep.include({ ok: false, cause: "browser" });
    expect(await resultOf(browsers, "const execute = async () => 4")).to.equal(4);
  });
});

describe("the time until a browser without a zygote is stopped", () => {
  beforeEach(() => mock.timers.enable({ apis: ["setInterval"] }));
  afterEach(() => mock.timers.reset());

  const watchBrowser = (chromium: Chromium, onBroken: () => void) =>
    new BrowserWatch({ chromium, isActive: () => false, hasPages: () => true, onBroken });

  /**
   * Moves the clock until the watch reports a broken browser, but for at most 60 s. Returns the time in milliseconds.
   * @param readProcessTypes returns null if the browser does not respond to this check
   */
  async function timeUntilBroken(readProcessTypes: (check: number) => string[] | null): Promise<number> {
    let checks = 0;
    let isBroken = false;
    const send = async () => {
      checks += 1;
      const types = readProcessTypes(checks) ?? (await new Promise<never>(() => {}));
      return { processInfo: types.map((type, id) => ({ id, type })) };
    };
    const connection = { on() {}, off() {}, send };
    const watch = watchBrowser({ connection, pid: null, stop: async () => {} } as unknown as Chromium, () => {
      isBroken = true;
    });
    let elapsedMs = 0;
    for (; !isBroken && elapsedMs < 60_000; elapsedMs += PROCESS_CHECK_INTERVAL_MS) {
      mock.timers.tick(PROCESS_CHECK_INTERVAL_MS);
      await new Promise(setImmediate);
    }
    watch.stop();
    return elapsedMs;
  }

  it("is below 5 s for a remote browser, which reports no renderer, by the clock of the checks", async () => {
    expect(await timeUntilBroken(() => ["browser"])).to.be.below(5_000);
    // Every sixth check finds a renderer, so the watch never reports the browser as broken.
    expect(await timeUntilBroken((check) => (check % 6 === 0 ? ["renderer"] : []))).to.equal(60_000);
  });

  it("is 15 s for a remote browser that does not respond, but not for one whose response is late", async () => {
    expect(await timeUntilBroken(() => null)).to.be.within(15_000, 16_000);
    expect(await timeUntilBroken(() => ["renderer"])).to.equal(60_000);
  });

  longTest("is below 1 s for a local browser, by the clock of the checks", async () => {
    const chromium = await startTestChromium();
    const watch = watchBrowser(chromium, () => {});
    try {
      const zygotes = zygotesOf(chromium.pid!);
      for (const pid of zygotes) signalProcess(pid, "SIGKILL");
      await until(() => zygotes.every((pid) => hasProcessEnded(pid)));
      // The clock stands still, so no check has run yet.
      expect(chromium.isAlive()).to.equal(true);
      mock.timers.tick(1_000);
      await until(() => !chromium.isAlive());
    } finally {
      watch.stop();
      await chromium.stop();
    }
  });
});

describe("a browser whose network service is killed", () => {
  longTest("is replaced, because requests of its open pages would fail", async () => {
    const browsers = testBrowsers();
    await browsers.start();
    try {
      expect(await resultOf(browsers, "const execute = async () => 5")).to.equal(5);
      const group = browsers.getBrowserPid()!;
      const isNetworkService = (pid: number) => procFile(pid, "cmdline").includes("NetworkService");
      // The service watches the process that its first check finds. The test waits for this check.
      await delay(2 * PROCESS_CHECK_INTERVAL_MS);
      for (const pid of groupMembers(group).filter(isNetworkService)) process.kill(pid, "SIGKILL");
      await until(() => browsers.isReady() && browsers.getBrowserPid() !== group);
      expect(await resultOf(browsers, "const execute = async () => 6")).to.equal(6);
    } finally {
      await browsers.stop();
    }
  });
});

describe("a browser that is lost", () => {
  let browsers: Browsers;
  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  longTest("is replaced after its main process was killed below the process that was started", async () => {
    const started = browsers.getBrowserPid()!;
    const isMain = (pid: number) => !procFile(pid, "cmdline").includes("--type=");
    // If the browser was started through a wrapper, the wrapper comes first, and the last process is the browser itself.
    const main = groupMembers(started).filter(isMain).at(-1)!;
    process.kill(main, "SIGKILL");
    await until(() => browsers.isReady() && browsers.getBrowserPid() !== started);
    expect(await resultOf(browsers, "const execute = async () => 6")).to.equal(6);
  });
});
