/**
 * Runs strangers' scripts in Chromium: a browser that is up, replaced when it dies or has grown old, and a bounded number
 * of runs at once. Knows no app and no action, only opaque keys, and nothing of what a script is for.
 */
import { setTimeout as setTimeoutPromise } from "node:timers/promises";
import type { Logger } from "pino";
import { StartError } from "../../errors.js";
import { type Chromium, type ChromiumOptions, startChromium, sweepFolders } from "./chromium.js";
import type { Lane } from "./lane.js";
import { type MemoryWatch, watchMemory } from "./memory-watch.js";
import { failed, type Outcome, type PageRun } from "./page-run.js";
import { Pool } from "./pool.js";
import { proveSandbox, type SandboxProof } from "./sandbox-proof.js";
import { createSlots, type Slots } from "./slots.js";

export interface BrowsersOptions extends ChromiumOptions {
  /** Runs at once. */
  concurrency: number;
  log: Logger;
  /** Opens a way out for one context. null: a run reaches no network at all. */
  openLane: (() => Promise<Lane>) | null;
  /** Contexts made ahead that serve no key yet; default 2. */
  spares?: number;
  /** Renewed pages kept over all keys, some 15 MB each; default 48. */
  warmPages?: number;
  /** A browser is replaced after this many runs, without failing any; default 5,000. */
  runsPerBrowser?: number;
}

export interface Browsers {
  /** @throws Error that says what to do when Chromium or its sandbox does not start */
  start(): Promise<void>;
  /** Runs a script once, at most once, and answers what became of it. Never rejects. */
  run(request: PageRun): Promise<Outcome>;
  /** A browser is up. */
  ready(): boolean;
  /** Places left of `concurrency`. */
  free(): number;
  /** What /proc says of a renderer of the present browser. */
  sandbox(): Promise<SandboxProof | null>;
  /** The present browser's process, for those who watch or test; null while there is none. */
  pid(): number | null;
  /** Ends every run and every process; nothing is left of them. */
  stop(): Promise<void>;
}

/** One browser with its pages, from its start until the last of its runs has ended. */
interface Generation {
  chromium: Chromium;
  pool: Pool;
  memory: MemoryWatch;
  startedAt: number;
  runs: number;
  active: number;
  retired: boolean;
}

const ATTEMPTS_BEFORE_START = 3;
const READY_WAIT_MS = 15_000;
/** A browser that lives shorter than this died of itself: the next start waits longer. */
const STABLE_MS = 10_000;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 10_000;
const PRESENT_POLL_MS = 20;

/** Keeps one browser present: starts it, replaces it when it dies or has grown old, ends it. */
class Supervisor {
  private readonly generations = new Set<Generation>();
  private starting: Promise<Generation> | null = null;
  private stopping = false;
  private backoff = 0;
  private wake: (() => void) | null = null;
  current: Generation | null = null;

  constructor(private readonly options: BrowsersOptions) {}

  private async launch(): Promise<Generation> {
    const { openLane, spares = 2, warmPages = 48 } = this.options;
    const chromium = await startChromium(this.options);
    const memory = watchMemory(chromium, () => generation.active > 0);
    const pool = new Pool({ chromium, memory, openLane, spares, warmPages });
    const counts = { startedAt: Date.now(), runs: 0, active: 0, retired: false };
    const generation: Generation = { chromium, pool, memory, ...counts };
    this.generations.add(generation);
    void chromium.ended.then(() => {
      memory.stop();
      this.onEnded(generation);
    });
    await pool.fill();
    return generation;
  }

  /** At most one browser is being started at any time; all who need it wait for the same one. */
  replace(): Promise<Generation> {
    this.starting ??= this.launch()
      .then((generation) => {
        const previous = this.current;
        this.current = generation;
        if (previous !== null) this.retire(previous);
        return generation;
      })
      .finally(() => {
        this.starting = null;
      });
    return this.starting;
  }

  private retire(generation: Generation): void {
    generation.retired = true;
    this.endIfDone(generation);
  }

  endIfDone(generation: Generation): void {
    if (generation.retired && generation.active === 0) void generation.chromium.stop();
  }

  private onEnded(generation: Generation): void {
    this.generations.delete(generation);
    if (generation !== this.current) return;
    this.current = null;
    if (this.stopping) return;
    const { log } = this.options;
    log.error({ pid: generation.chromium.pid, runs: generation.active }, "the browser ended; starting another");
    if (Date.now() - generation.startedAt > STABLE_MS) this.backoff = 0;
    void this.restart();
  }

  private async restart(): Promise<void> {
    while (!this.stopping) {
      await this.pause(this.backoff);
      this.backoff = Math.min(Math.max(BACKOFF_FIRST_MS, this.backoff * 2), BACKOFF_MAX_MS);
      if (this.stopping) return;
      try {
        await this.replace();
        return;
      } catch (error) {
        this.options.log.error({ err: error }, "the browser did not start");
      }
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The present browser, or the one that is being started; null when none comes in time. */
  async present(): Promise<Generation | null> {
    const deadline = Date.now() + READY_WAIT_MS;
    while (!this.stopping && Date.now() < deadline) {
      if (this.current?.chromium.alive()) return this.current;
      await (this.starting ?? setTimeoutPromise(PRESENT_POLL_MS)).catch(() => setTimeoutPromise(PRESENT_POLL_MS));
    }
    return null;
  }

  /** Counts a run; the browser that has had its number is replaced beside the runs. */
  count(generation: Generation): void {
    const { log, runsPerBrowser = 5_000 } = this.options;
    generation.runs += 1;
    const old = generation.runs >= runsPerBrowser || generation.memory.overgrown();
    if (!old || generation !== this.current || this.starting !== null) return;
    log.info({ runs: generation.runs }, "replacing the browser by a young one");
    this.replace().catch((error) => log.error({ err: error }, "the browser could not be replaced"));
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.wake?.();
    await this.starting?.catch(() => {});
    await Promise.all([...this.generations].map((one) => one.chromium.stop()));
  }
}

/** One attempt. @returns null when it ended before anything of the author's was evaluated, so that another is safe */
async function attempt(supervisor: Supervisor, generation: Generation, request: PageRun): Promise<Outcome | null> {
  const { pool } = generation;
  const { isolationKey, origin, inWorker = false } = request;
  const key = [isolationKey, origin, inWorker].join("\n");
  generation.active += 1;
  try {
    const page = await pool.acquire(key, origin, inWorker).catch(() => null);
    if (page === null) return null;
    if (!page.ready) {
      pool.release(page, key, false);
      return null;
    }
    supervisor.count(generation);
    const outcome = await page.run(request);
    const intact = outcome.ok || outcome.cause === "script" || outcome.cause === "result";
    pool.release(page, key, intact && !generation.retired);
    return outcome;
  } finally {
    generation.active -= 1;
    supervisor.endIfDone(generation);
  }
}

async function run(supervisor: Supervisor, slots: Slots, request: PageRun): Promise<Outcome> {
  const place = await slots.take(request.signal);
  if (place === null) return failed("cancelled", "AbortError", "The run was cancelled before it began");
  try {
    for (let tries = 0; tries < ATTEMPTS_BEFORE_START; tries += 1) {
      const generation = await supervisor.present();
      if (generation === null) break;
      const outcome = await attempt(supervisor, generation, request);
      if (outcome !== null) return outcome;
    }
    return failed("browser", "Error", "No browser was available for the run");
  } finally {
    place.release();
  }
}

async function start(supervisor: Supervisor, { sandbox, log }: BrowsersOptions): Promise<void> {
  sweepFolders();
  if (!sandbox) log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
  const { chromium } = await supervisor.replace();
  const proof = await proveSandbox(chromium);
  log.info({ pid: chromium.pid, sandbox: proof }, "the browser is up");
  if (!sandbox || proof?.sandboxed !== false) return;
  await supervisor.stop();
  throw new StartError(
    "Chromium's renderers are not sandboxed here; set CHROME_SANDBOX=off to run actions all the same",
  );
}

export function createBrowsers(options: BrowsersOptions): Browsers {
  const supervisor = new Supervisor(options);
  const slots = createSlots(options.concurrency);
  return {
    start: () => start(supervisor, options),
    run: (request) => run(supervisor, slots, request),
    ready: () => supervisor.current?.chromium.alive() === true,
    free: slots.free,
    sandbox: async () => (supervisor.current === null ? null : proveSandbox(supervisor.current.chromium)),
    pid: () => supervisor.current?.chromium.pid ?? null,
    stop: () => supervisor.stop(),
  };
}
