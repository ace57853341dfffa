/**
 * Keeps one browser present: opens it, opens another when it dies or has grown old, ends it. Knows neither how a browser comes
 * about nor of any browser beside it.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { runInBackground } from "../../background.js";
import type { BrowserSource, Chromium } from "./browser-source.js";
import type { Lane } from "./network/lane.js";
import { type Openings, Pool } from "./pages/pool.js";
import { type BrowserWatch, watchBrowser } from "./watch/browser-watch.js";
import { watchLaunches } from "./watch/launches.js";

export interface SupervisorOptions {
  log: Logger;
  /** Opens a way out for one context. null: a run reaches no network at all. */
  openLane: (() => Promise<Lane>) | null;
  /** Who waits for whom to have a context or document made, in all browsers; default: nobody does. */
  openings?: Openings;
  /** Contexts made ahead that serve no key yet; default 2. */
  spares?: number;
  /** Renewed pages kept over all keys, 20 to 45 MB each; default 48. */
  warmPages?: number;
  /** A browser is replaced after this many runs, without failing any; default {@link RUNS_PER_BROWSER}. */
  runsPerBrowser?: number;
  /** Called for each page that a run lost, with the reason, and for each browser that was lost: `browser`. */
  onLoss?: (kind: string) => void;
}

/** One browser with its pages, from its start until the last of its runs has ended. */
export interface Generation {
  chromium: Chromium;
  pool: Pool;
  watch: BrowserWatch;
  startedAt: number;
  runs: number;
  active: number;
  retired: boolean;
}

/**
 * Its own processes grow by 2 MB in 30,000 runs of the language, by 15 in 12,000 with a document, by 12 with 1,000 contexts; what grows faster
 * is seen by its size (watch/memory.ts). After it each app has its context made anew, which takes a busy machine up to half a second each.
 */
const RUNS_PER_BROWSER = 50_000;
/** A browser that ended sooner than this makes the next start wait longer, up to EARLY_END_MAX_MS: its runs must not wait for seconds. */
const STABLE_MS = 10_000;
const EARLY_END_MAX_MS = 1_000;
const BACKOFF_FIRST_MS = 100;
const AT_ONCE: Openings = { enter: async () => () => undefined };

export class Supervisor {
  private readonly generations = new Set<Generation>();
  private starting: Promise<Generation> | null = null;
  private readonly stopping = new AbortController();
  private backoff = 0;
  private lastFault = "";
  private present: Generation | null = null;

  constructor(
    private readonly source: BrowserSource,
    private readonly options: SupervisorOptions,
  ) {}

  /** The browser that takes runs; null while there is none. */
  get current(): Generation | null {
    return this.present?.chromium.alive() ? this.present : null;
  }

  get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private follow(chromium: Chromium): Generation {
    const { openLane, openings = AT_ONCE, spares = 2, warmPages = 48 } = this.options;
    const watch = watchBrowser(chromium, () => generation.active > 0);
    const pool = new Pool({ chromium, blame: watch.blame, openLane, openings, spares, warmPages });
    const counts = { startedAt: Date.now(), runs: 0, active: 0, retired: false };
    const generation: Generation = { chromium, pool, watch, ...counts };
    this.generations.add(generation);
    const launches = watchLaunches(chromium, pool.hasPages, () =>
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

  private async launch(): Promise<Generation> {
    const { source } = this;
    this.stopping.signal.throwIfAborted();
    const chromium = await source.open(this.stopping.signal);
    if (this.stopped) await chromium.stop();
    const generation = this.follow(chromium);
    try {
      await generation.pool.fill();
      this.options.log.info(await source.inspect(chromium), "the browser is up");
      if (!chromium.alive()) throw new Error("it ended as soon as it was there");
    } catch (error) {
      await chromium.stop();
      throw error;
    }
    const previous = this.present;
    this.present = generation;
    if (previous !== null) this.retire(previous);
    this.lastFault = "";
    return generation;
  }

  /**
   * Opens a browser in the place of the present one. At most one is being opened at any time; all who need it wait for the same one.
   * @throws what the source makes of the failure
   */
  replace(): Promise<Generation> {
    this.starting ??= this.launch()
      .catch((error) => {
        throw this.source.fault(error);
      })
      .finally(() => {
        this.starting = null;
      });
    return this.starting;
  }

  private retire(generation: Generation): void {
    generation.retired = true;
    generation.pool.retire();
    this.endIfDone(generation);
  }

  endIfDone(generation: Generation): void {
    if (generation.retired && generation.active === 0) runInBackground(generation.chromium.stop());
  }

  private onEnded(generation: Generation): void {
    this.generations.delete(generation);
    if (generation !== this.present) return;
    this.present = null;
    if (this.stopped) return;
    this.options.onLoss?.("browser");
    const { pid } = generation.chromium;
    this.options.log.error(
      { browser: this.source.name, browserPid: pid, runs: generation.active },
      "the browser is gone",
    );
    const isStable = Date.now() - generation.startedAt > STABLE_MS;
    this.backoff = isStable ? 0 : Math.min(this.backoff, EARLY_END_MAX_MS);
    runInBackground(this.restart());
  }

  /** Tries until a browser is present. A fault that goes on is told once. */
  async restart(): Promise<void> {
    while (!this.stopped) {
      await delay(this.backoff, undefined, { signal: this.stopping.signal }).catch(() => undefined);
      this.backoff = Math.min(Math.max(BACKOFF_FIRST_MS, this.backoff * 2), this.source.retryMaxMs);
      if (this.stopped) return;
      try {
        await this.replace();
        return;
      } catch (error) {
        this.tell(error as Error);
      }
    }
  }

  /** Says in the log why there is no browser, unless it has just said the same. */
  tell(fault: Error): void {
    if (fault.message !== this.lastFault) this.options.log.error({ err: fault }, "the browser did not start");
    this.lastFault = fault.message;
  }

  /** Runs under way, in browsers that are being replaced too. */
  busy(): number {
    return [...this.generations].reduce((sum, { active }) => sum + active, 0);
  }

  /** The contexts of all its browsers, those that are being replaced too. */
  contexts(): { serving: number; warm: number; spare: number } {
    const all = [...this.generations].map(({ active, pool }) => ({ serving: active, ...pool.kept() }));
    const sum = (of: "serving" | "warm" | "spare") => all.reduce((total, one) => total + one[of], 0);
    return { serving: sum("serving"), warm: sum("warm"), spare: sum("spare") };
  }

  /** A run lost its page. */
  lostPage(kind: string): void {
    this.options.onLoss?.(kind);
  }

  /** Counts a run; the browser that has had its number is replaced beside the runs. */
  count(generation: Generation): void {
    const { log, runsPerBrowser = RUNS_PER_BROWSER } = this.options;
    generation.runs += 1;
    const old = generation.runs >= runsPerBrowser || generation.watch.overgrown();
    if (!old || generation !== this.present || this.starting !== null) return;
    log.info({ runs: generation.runs }, "replacing the browser by a young one");
    this.replace().catch((error) => log.error({ err: error }, "the browser could not be replaced"));
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    // First the browsers, one that is still starting too: an attempt to start one waits for its answers.
    await Promise.all([...this.generations].map(({ chromium }) => chromium.stop()));
    await this.starting?.catch(() => undefined);
  }
}
