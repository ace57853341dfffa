/** Keeps a browser running: starts it, and starts the next one if it ends, does not respond, or has executed enough runs. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { BrowserSource, Chromium } from "./browser-source.js";
import type { ProxyPort } from "./network/proxy-port.js";
import type { PageLossReason } from "./pages/loss.js";
import { type PageKey, type PageOpeningQueue, PagePool } from "./pages/pool.js";
import {
  createFailedPageRunOutcome,
  type EvaluationMode,
  type PageRunOutcome,
  type PageRunRequest,
  type RunFailureCause,
} from "./run.js";
import { BrowserWatch } from "./watch/browser-watch.js";

export interface BrowserSupervisorOptions {
  log: Logger;
  /** Null if runs have no network. */
  openProxyPort: (() => Promise<ProxyPort>) | null;
  /** Queue in which all browsers wait to open contexts and documents. By default, there is none. */
  openingQueue?: PageOpeningQueue;
  spareContexts?: number;
  /** Maximum number of idle pages of a browser, which need 20 to 45 MB each; default 48. */
  idlePagesMax?: number;
  /** Number of runs after which a new browser replaces this one; default {@link RUNS_PER_BROWSER}. Active runs complete first. */
  runsPerBrowser?: number;
  /** Called with the reason when a run has lost its page, and with `browser` when the current browser has ended unexpectedly. */
  onLoss?: (kind: PageLossReason) => void;
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** One browser with its pages. After another browser has replaced it, it gets no new runs, and ends after its last run. */
interface SupervisedBrowser {
  chromium: Chromium;
  pool: PagePool;
  watch: BrowserWatch;
  runCount: number;
  activeRuns: number;
  /** Is resolved when the browser has had too many runs or uses too much memory. */
  replacementNeeded: PromiseWithResolvers<void>;
}

/** High: after the replacement of a browser, each app needs a new browser context. Opening a context takes up to half a second. */
const RUNS_PER_BROWSER = 50_000;
/** Delay after the first failed start of a browser. It doubles with each further failure, up to BACKOFF_MAX_MS. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 1_000;
const PAGE_REUSABLE_CAUSES: readonly RunFailureCause[] = ["script", "result", "retry"];
const NO_OPENING_QUEUE: PageOpeningQueue = { enter: async () => () => undefined };
const POOL_DEFAULTS = { openingQueue: NO_OPENING_QUEUE, spareContexts: 2, idlePagesMax: 48 };

export const createCancelledOutcome = () =>
  createFailedPageRunOutcome("cancelled", "AbortError", "The run was cancelled before it began");

export class BrowserSupervisor {
  readonly browsers = new Set<SupervisedBrowser>();
  private startPromise: Promise<SupervisedBrowser> | null = null;
  private readonly stopController = new AbortController();
  private backoffMs = 0;
  private newestBrowser: SupervisedBrowser | null = null;

  constructor(
    private readonly source: BrowserSource,
    private readonly options: BrowserSupervisorOptions,
  ) {}

  get current(): SupervisedBrowser | null {
    return this.newestBrowser?.chromium.isAlive() ? this.newestBrowser : null;
  }

  get isStopped(): boolean {
    return this.stopController.signal.aborted;
  }

  private createSupervisedBrowser(chromium: Chromium): SupervisedBrowser {
    const getCrashCause = () => browser.watch.getCrashCause();
    const pool = new PagePool({ ...POOL_DEFAULTS, ...this.options, chromium, getCrashCause });
    const watch = new BrowserWatch({
      chromium,
      isActive: () => browser.activeRuns > 0,
      hasPages: pool.hasPages,
      onBroken: () =>
        this.options.log.error(
          { browser: this.source.name },
          "the browser starts no pages, lost its network service, or hangs; replacing it",
        ),
    });
    const replacementNeeded = Promise.withResolvers<void>();
    const browser: SupervisedBrowser = { chromium, pool, watch, runCount: 0, activeRuns: 0, replacementNeeded };
    this.browsers.add(browser);
    runInBackground(chromium.ended.then(() => this.onEnded(browser)));
    return browser;
  }

  private async openBrowser(): Promise<SupervisedBrowser> {
    const { source } = this;
    this.stopController.signal.throwIfAborted();
    const chromium = await source.open(this.stopController.signal);
    if (this.isStopped) await chromium.stop();
    const browser = this.createSupervisedBrowser(chromium);
    try {
      await browser.pool.fillSparePages(1);
      this.options.log.info(await source.checkSandbox(chromium), "the browser is up");
      if (!chromium.isAlive()) throw new Error("the browser ended during its start");
    } catch (error) {
      await chromium.stop();
      throw error;
    }
    const previousBrowser = this.newestBrowser;
    this.newestBrowser = browser;
    browser.pool.fillSparePagesInBackground();
    previousBrowser?.pool.retire();
    if (previousBrowser !== null) this.stopIfUnused(previousBrowser);
    return browser;
  }

  /** Makes one attempt to start a browser, and rejects if it fails. The new browser then gets all new runs. */
  startBrowser(): Promise<SupervisedBrowser> {
    this.startPromise = this.openBrowser();
    return this.startPromise;
  }

  /** Starts the next browser when an attempt has failed, or when the browser has ended or must be replaced. Resolves after `stop`. */
  async keepRunning(): Promise<void> {
    const { log, pause = (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined) } = this.options;
    let lastFaultMessage = "";
    for (;;) {
      try {
        const browser = (await this.startPromise)!;
        lastFaultMessage = "";
        await Promise.race([browser.chromium.ended, browser.replacementNeeded.promise]);
        if (browser.chromium.isAlive()) log.info({ runs: browser.runCount }, "replacing the browser");
      } catch (error) {
        const { message } = error as Error;
        if (message !== lastFaultMessage) log.error({ err: error }, "the browser did not start");
        lastFaultMessage = message;
      }
      await pause(this.backoffMs, this.stopController.signal);
      if (this.isStopped) return;
      // The delay grows until a browser gets its first run.
      this.backoffMs = Math.min(Math.max(BACKOFF_FIRST_MS, this.backoffMs * 2), BACKOFF_MAX_MS);
      this.startPromise = this.openBrowser();
    }
  }

  /** Stops a browser that another one has replaced, if it has no more runs. */
  private stopIfUnused({ chromium, activeRuns }: SupervisedBrowser): void {
    if (chromium !== this.newestBrowser?.chromium && activeRuns === 0) runInBackground(chromium.stop());
  }

  private onEnded(browser: SupervisedBrowser): void {
    browser.watch.stop();
    this.browsers.delete(browser);
    if (browser !== this.newestBrowser) return;
    this.newestBrowser = null;
    if (this.isStopped) return;
    this.options.onLoss?.("browser");
    const { pid } = browser.chromium;
    this.options.log.error(
      { browser: this.source.name, browserPid: pid, runs: browser.activeRuns },
      "the browser ended unexpectedly",
    );
  }

  countActiveRuns(): number {
    return [...this.browsers].reduce((sum, { activeRuns }) => sum + activeRuns, 0);
  }

  /** Executes a run in the newest browser. Resolves with null if no page was available; no code was evaluated, so a retry is safe. */
  async run(request: PageRunRequest, mode: EvaluationMode): Promise<PageRunOutcome | null> {
    const browser = this.current;
    if (browser === null) return null;
    const { pool } = browser;
    const { isolationKey, origin } = request;
    const pageKey: PageKey = { key: [isolationKey, origin, mode].join("\n"), origin, mode };
    browser.activeRuns += 1;
    try {
      // After an error, the caller tries another browser.
      const page = await pool.acquire(pageKey).catch(() => null);
      if (page === null) return null;
      if (request.signal?.aborted) {
        pool.release(page, pageKey, true);
        return createCancelledOutcome();
      }
      // Only the first run resets the pause: while its replacement fails to start, an old browser's runs must not shorten the pauses.
      if (browser.runCount === 0) this.backoffMs = 0;
      browser.runCount += 1;
      const { runsPerBrowser = RUNS_PER_BROWSER } = this.options;
      if (browser.runCount >= runsPerBrowser || browser.watch.usesTooMuchMemory()) browser.replacementNeeded.resolve();
      const outcome = await page.run(request);
      const cause = outcome.ok ? null : outcome.cause;
      if (page.loss !== null) this.options.onLoss?.(page.loss);
      if (cause === "memory") pool.delayNextPage(origin);
      pool.release(page, pageKey, cause === null || PAGE_REUSABLE_CAUSES.includes(cause));
      return outcome;
    } finally {
      browser.activeRuns -= 1;
      this.stopIfUnused(browser);
    }
  }

  async stop(): Promise<void> {
    this.stopController.abort();
    // Also stops a browser that is starting. Otherwise this method would wait for the end of the start.
    await Promise.all([...this.browsers].map(({ chromium }) => chromium.stop()));
    await this.startPromise?.catch(() => undefined);
  }
}
