/** Tests when the pool of pages renews a used page, how it counts pages that open, and that it delays pages after a memory error. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { runInBackground } from "../../../src/background.js";
import type { Chromium } from "../../../src/engine/browser/browser-source.js";
import type { Page } from "../../../src/engine/browser/pages/page.js";
import { PagePool } from "../../../src/engine/browser/pages/pool.js";
import { until } from "../../harness/until.js";
import { zygotesOf } from "./process-group.js";
import { runOf, startTestChromium } from "./support.js";

const { origin } = runOf("");
const PAGE_KEY = { key: "key", origin, mode: "isolate" } as const;

describe("a pool whose browser starts no renderer", () => {
  let chromium: Chromium;
  before(async () => {
    chromium = await startTestChromium();
  });
  after(() => chromium.stop());

  it("counts a page that is being opened, so that the browser is replaced before the page's own limit", async () => {
    for (const pid of zygotesOf(chromium.pid!)) process.kill(pid, "SIGSTOP");
    const openings = { enter: async () => () => undefined };
    const pool = new PagePool({
      chromium,
      getCrashCause: () => null,
      openProxyPort: null,
      openingQueue: openings,
      spareContexts: 1,
      idlePagesMax: 4,
    });
    const filled = pool.fillSparePages();
    await until(pool.hasPages);
    await chromium.stop();
    await filled;
    expect(pool.countIdlePages().spare).to.equal(0);
    expect(pool.hasPages()).to.equal(false);
  });
});

describe("an origin whose run exceeded the memory limit", () => {
  it("opens its next page after a delay, and delays no other origin", async () => {
    const entered: string[] = [];
    const otherEntered = Promise.withResolvers<void>();
    const other = "https://app-2.actions.internal";
    const pool = new PagePool({
      // The queue never lets the pool open a page, so the pool never uses this browser.
      chromium: { ended: new Promise(() => {}) } as unknown as Chromium,
      getCrashCause: () => null,
      openProxyPort: null,
      openingQueue: {
        enter(of) {
          entered.push(of);
          if (of === other) otherEntered.resolve();
          return new Promise(() => {});
        },
      },
      spareContexts: 0,
      idlePagesMax: 4,
    });
    pool.delayNextPage(origin);
    for (const slot of [PAGE_KEY, { key: "other", origin: other, mode: "isolate" } as const])
      runInBackground(pool.acquire(slot));
    // The promise resolves without a timer. So the first origin's delay has not ended yet, even on a busy machine.
    await otherEntered.promise;
    expect(entered).to.deep.equal([other]);
  });
});

describe("a page after a run", () => {
  let chromium: Chromium;
  let pool: PagePool;
  let page: Page;
  let renewed = 0;
  let enter: () => Promise<() => void> = async () => () => undefined;

  before(async () => {
    chromium = await startTestChromium();
    const openings = { enter: () => enter() };
    pool = new PagePool({
      chromium,
      getCrashCause: () => null,
      openProxyPort: null,
      openingQueue: openings,
      spareContexts: 1,
      idlePagesMax: 4,
    });
    page = await pool.acquire(PAGE_KEY);
    const renew = page.resetSandbox.bind(page);
    page.resetSandbox = (...args) => {
      renewed += 1;
      return renew(...args);
    };
  });
  after(() => chromium.stop());

  async function runOnce(): Promise<void> {
    const outcome = await page.run(runOf("async function execute() { return 1; }", { mode: "isolate" }));
    expect(outcome.ok).to.equal(true);
    renewed = 0;
    pool.release(page, PAGE_KEY, true);
  }

  it("is not renewed while the end of the run is written, and then by itself", async () => {
    await runOnce();
    await Promise.resolve();
    expect(renewed).to.equal(0);
    await until(() => pool.countIdlePages().warm === 1);
    expect(renewed).to.equal(1);
    expect(page.isReady).to.equal(true);
  });

  it("is renewed at once if a run waits for it", async () => {
    // After this pause, the pool does not expect another run soon. So it renews the page at once only because a run waits for it.
    await delay(50);
    expect(await pool.acquire(PAGE_KEY)).to.equal(page);
    await runOnce();
    const next = pool.acquire(PAGE_KEY);
    await Promise.resolve();
    expect(renewed).to.equal(1);
    expect(await next).to.equal(page);
    expect(page.isReady).to.equal(true);
  });

  it("is renewed at once if runs follow each other closely", async () => {
    // The clock stands still, because on a slow machine a renewal takes longer than the pause between runs that the test simulates.
    const now = performance.now();
    performance.now = () => now;
    try {
      await runOnce();
      expect(await pool.acquire(PAGE_KEY)).to.equal(page);
      await runOnce();
    } finally {
      Reflect.deleteProperty(performance, "now");
    }
    expect(page.wasFollowUpRun).to.equal(true);
    expect(renewed).to.equal(1);
    expect(await pool.acquire(PAGE_KEY)).to.equal(page);
  });

  it("serves a waiting run, which gives back its turn to open a page", async () => {
    // The previous test has not released the page yet. So the run waits until `runOnce` releases it.
    const { promise: turn, resolve: grant } = Promise.withResolvers<void>();
    let left = 0;
    enter = async () => {
      await turn;
      return () => {
        left += 1;
      };
    };
    const waiting = pool.acquire(PAGE_KEY);
    await runOnce();
    expect(await waiting).to.equal(page);
    expect(left).to.equal(0);
    grant();
    await until(() => left === 1);
  });
});
