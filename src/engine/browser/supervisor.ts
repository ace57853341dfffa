/** Keeps one browser running: starts it, and replaces it when it has ended, does not respond or has executed its share of runs. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { BrowserSource, Chromium } from "./browser-source.js";
import type { ProxyPort } from "./network/proxy-port.js";
import { type PageOpenings, Pool } from "./pages/pool.js";
import { BrowserWatch } from "./watch/browser-watch.js";
import { LaunchWatch } from "./watch/launches.js";

export interface SupervisorOptions {
  log: Logger;
  /** Opens the network connection of one context. Null if runs have no network. */
  openProxyPort: (() => Promise<ProxyPort>) | null;
  /** Queue for opening contexts and documents, shared by all browsers; by default no queue. */
  openings?: PageOpenings;
  /** Contexts opened in advance; default 2. */
  spares?: number;
  /** Maximum idle pages over all keys, 20 to 45 MB each; default 48. */
  warmPages?: number;
  /** Runs after which a browser is replaced without failing a run; default {@link RUNS_PER_BROWSER}. */
  runsPerBrowser?: number;
  /** Called for each page that a run lost, with the reason, and for each browser that was lost, with `browser`. */
  onLoss?: (kind: string) => void;
  /** Waits before a restart; by default with a timer. Tests replace it. */
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** One browser with its pages, from its start until the last of its runs has ended. */
export interface BrowserGeneration {
  chromium: Chromium;
  pool: Pool;
  watch: BrowserWatch;
  runs: number;
  active: number;
  retired: boolean;
}

/**
 * Number of runs after which a browser is replaced. The browser's own processes grow by 2 MB in 30,000 runs in an isolate, by 15 MB in
 * 12,000 with a document, by 12 MB with 1,000 contexts. watch/memory.ts detects faster growth. After a replacement, each app needs a new
 * context: up to half a second on a busy machine.
 */
const RUNS_PER_BROWSER = 50_000;
/** Wait in milliseconds after a failed start. It doubles with each failure. A failed start costs a fifth of a second of processor time. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 1_000;
const WITHOUT_QUEUE: PageOpenings = { enter: async () => () => undefined };

export class Supervisor {
  private readonly generations = new Set<BrowserGeneration>();
  private starting: Promise<BrowserGeneration> | null = null;
  private readonly stopping = new AbortController();
  private backoff = 0;
  private lastFault = "";
  private newest: BrowserGeneration | null = null;

  constructor(
    private readonly source: BrowserSource,
    private readonly options: SupervisorOptions,
  ) {}

  /** The browser for new runs; null while none is running. */
  get current(): BrowserGeneration | null {
    return this.newest?.chromium.alive() ? this.newest : null;
  }

  get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private createGeneration(chromium: Chromium): BrowserGeneration {
    const { openProxyPort, openings = WITHOUT_QUEUE, spares = 2, warmPages = 48 } = this.options;
    const watch = new BrowserWatch(chromium, () => generation.active > 0);
    const pool = new Pool({
      chromium,
      crashCause: () => watch.crashCause(),
      openProxyPort,
      openings,
      spares,
      warmPages,
    });
    const counts = { runs: 0, active: 0, retired: false };
    const generation: BrowserGeneration = { chromium, pool, watch, ...counts };
    this.generations.add(generation);
    const launches = new LaunchWatch(chromium, pool.hasPages, () =>
      this.options.log.error({ browser: this.source.name }, "the browser can start no page; it is replaced"),
    );
    runInBackground(
      chromium.ended.then(() => {
        watch.stop();
        launches.stop();
        this.onEnded(generation);
      }),
    );
    return generation;
  }

  private async launch(): Promise<BrowserGeneration> {
    const { source } = this;
    this.stopping.signal.throwIfAborted();
    const chromium = await source.open(this.stopping.signal);
    if (this.stopped) await chromium.stop();
    const generation = this.createGeneration(chromium);
    try {
      await generation.pool.fill();
      this.options.log.info(await source.inspect(chromium), "the browser is up");
      if (!chromium.alive()) throw new Error("it ended during its start");
    } catch (error) {
      await chromium.stop();
      throw error;
    }
    const previous = this.newest;
    this.newest = generation;
    if (previous !== null) this.retire(previous);
    this.lastFault = "";
    return generation;
  }

  /**
   * Starts a browser that replaces the current one for new runs. Concurrent calls share one start.
   * @throws Error described by the source if the start fails
   */
  replace(): Promise<BrowserGeneration> {
    this.starting ??= this.launch()
      .catch((error) => {
        throw this.source.describeFailure(error);
      })
      .finally(() => {
        this.starting = null;
      });
    return this.starting;
  }

  private retire(generation: BrowserGeneration): void {
    generation.retired = true;
    generation.pool.retire();
    this.stopIfDone(generation);
  }

  stopIfDone(generation: BrowserGeneration): void {
    if (generation.retired && generation.active === 0) runInBackground(generation.chromium.stop());
  }

  private onEnded(generation: BrowserGeneration): void {
    this.generations.delete(generation);
    if (generation !== this.newest) return;
    this.newest = null;
    if (this.stopped) return;
    this.options.onLoss?.("browser");
    const { pid } = generation.chromium;
    this.options.log.error(
      { browser: this.source.name, browserPid: pid, runs: generation.active },
      "the browser is gone",
    );
    runInBackground(this.restart());
  }

  /** Starts a browser, and retries until one is running. The wait grows until a browser has served a run. */
  async restart(): Promise<void> {
    const { pause = (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined) } = this.options;
    while (!this.stopped) {
      await pause(this.backoff, this.stopping.signal);
      this.backoff = Math.min(Math.max(BACKOFF_FIRST_MS, this.backoff * 2), BACKOFF_MAX_MS);
      if (this.stopped) return;
      try {
        await this.replace();
        return;
      } catch (error) {
        this.logFault(error as Error);
      }
    }
  }

  /** Logs why no browser is running. Logs a repeated reason once. */
  logFault(fault: Error): void {
    if (fault.message !== this.lastFault) this.options.log.error({ err: fault }, "the browser did not start");
    this.lastFault = fault.message;
  }

  /** Returns the number of active runs, including those in browsers that are being replaced. */
  busy(): number {
    return [...this.generations].reduce((sum, { active }) => sum + active, 0);
  }

  /** Number of contexts of each browser, including those that are being replaced. */
  contexts(): { serving: number; warm: number; spare: number }[] {
    return [...this.generations].map(({ active, pool }) => ({ serving: active, ...pool.idleCounts() }));
  }

  /** Reports that a run lost its page. */
  reportLoss(kind: string): void {
    this.options.onLoss?.(kind);
  }

  /** Counts a run that starts. Replaces an old or large browser in the background. */
  countRun(generation: BrowserGeneration): void {
    const { log, runsPerBrowser = RUNS_PER_BROWSER } = this.options;
    generation.runs += 1;
    this.backoff = 0;
    const old = generation.runs >= runsPerBrowser || generation.watch.overgrown();
    if (!old || generation !== this.newest || this.starting !== null) return;
    log.info({ runs: generation.runs }, "replacing the browser");
    this.replace().catch((error) => log.error({ err: error }, "the browser could not be replaced"));
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    // Browsers are stopped first, including one that is starting, because its start waits for the browser's responses.
    await Promise.all([...this.generations].map(({ chromium }) => chromium.stop()));
    await this.starting?.catch(() => undefined);
  }
}
