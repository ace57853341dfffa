/**
 * Detects that the browser's own process, which serves all runs, is too busy to respond. Finds the renderer that floods
 * this process with messages: it spends much time in system calls. Pauses or kills this renderer.
 */
import type { Chromium } from "../browser-source.js";
import {
  type BrowserProcess,
  listProcesses,
  type MeasuredProcess,
  measureProcesses,
  readSharedProcessThreads,
  type SharedProcessThreads,
  signalProcess,
} from "./processes.js";

/**
 * Time in milliseconds without a response of the browser, after which the CPU times of its processes are first
 * measured.
 */
const FIRST_MEASUREMENT_AFTER_MS = 100;
/** Time in milliseconds between the first and the second measurement, which are then compared. */
const COMPARISON_INTERVAL_MS = 150;
/**
 * Minimum CPU time that a flooding renderer spends in the kernel, as a share of COMPARISON_INTERVAL_MS. Code that only
 * computes spends almost no time there; code that sends messages spends a fifth or more.
 */
const FLOOD_KERNEL_SHARE = 0.08;
/** A flooding renderer spends at least this share of its own CPU time in the kernel. */
const FLOOD_KERNEL_SHARE_OF_OWN = 0.1;
/**
 * Minimum CPU time of the browser's shared processes (all except renderers), as a share of the measured time. If they
 * got less, they are slow because the machine is busy, and not because of a renderer.
 */
const SERVING_MIN_CPU_SHARE = 0.25;
/** A renderer's first flood only pauses the renderer. Another flood within this many milliseconds kills it. */
const REPEATED_FLOOD_MS = 10_000;
/** Time in milliseconds without a response, after which the browser counts as hung and is replaced. */
const HUNG_AFTER_MS = 5_000;
/**
 * Longer time limit, in milliseconds without a response, for a browser that gets no CPU time because the machine is
 * overloaded.
 */
const STARVED_AFTER_MS = 60_000;
/**
 * A crash within this many milliseconds after the browser's first response since a kill counts as the effect of the
 * kill.
 */
const KILL_EFFECT_MS = 2_000;

/** CPU times of the browser's processes at one moment. The key is the process ID. */
export interface CpuUsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

/** Request to the browser that the browser has not answered yet. */
interface UnansweredRequest {
  at: number;
  /** Latest measurement of CPU times since the request was sent; null before the first measurement. */
  sample: CpuUsageSample | null;
  /**
   * State of the threads of the browser's shared processes (all except renderers) at the first measurement; null before
   * that.
   */
  threads: SharedProcessThreads | null;
}

/**
 * True if the browser could not respond because it got too little CPU time in the `ms` milliseconds between `before`
 * and `after`. The result is false for a browser that hangs, because it has no runnable thread, and for a flooded
 * browser, because it runs most of the time.
 */
export function isBrowserStarved(before: SharedProcessThreads, after: SharedProcessThreads, ms: number): boolean {
  return after.isAnyRunnable && after.cpuMs - before.cpuMs < SERVING_MIN_CPU_SHARE * ms;
}

/** Returns the process ID of the renderer that sent most messages between two samples; null if no renderer floods the browser. */
export function findFloodingRenderer(before: CpuUsageSample, after: CpuUsageSample): number | null {
  const window = after.at - before.at;
  let serving = 0;
  let most = FLOOD_KERNEL_SHARE * window;
  let sender: number | null = null;
  for (const [pid, { cpuMs, kernelMs, isRenderer }] of after.usages) {
    const earlier = before.usages.get(pid);
    if (earlier === undefined) continue;
    const sending = kernelMs - earlier.kernelMs;
    if (!isRenderer) serving += cpuMs - earlier.cpuMs;
    else if (sending >= most && sending >= FLOOD_KERNEL_SHARE_OF_OWN * (cpuMs - earlier.cpuMs)) {
      most = sending;
      sender = pid;
    }
  }
  return serving >= SERVING_MIN_CPU_SHARE * window ? sender : null;
}

export class FloodWatch {
  /** Processes that the browser reported in its last response. */
  processes: readonly BrowserProcess[] = [];
  private readonly paused = new Set<number>();
  private readonly pausedAt = new Map<number, number>();
  private unansweredRequest: UnansweredRequest | null = null;
  /** Time in Unix milliseconds until which a crash counts as the effect of a kill by this class. */
  private killEffectUntil = 0;

  /** @param group ID of the browser's process group */
  constructor(
    private readonly chromium: Chromium,
    private readonly group: number,
  ) {}

  /**
   * Sends a request to the browser if a run is active. If the previous request has no response yet, measures and
   * compares CPU times instead. The caller calls this method ten times a second.
   */
  async check(isActive: boolean): Promise<void> {
    if (this.unansweredRequest !== null) await this.checkLateRequest(this.unansweredRequest);
    else if (isActive) this.sendRequest();
  }

  /** True if a crash that the browser reports at this moment is the effect of a kill by this class. */
  hasCausedCrash(): boolean {
    return Date.now() < this.killEffectUntil;
  }

  private sendRequest(): void {
    const { connection } = this.chromium;
    this.unansweredRequest = { at: Date.now(), sample: null, threads: null };
    // The browser process answers the first command, and the network process, which all runs share, the second one.
    Promise.all([listProcesses(connection, 0), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([processes]) => {
        this.processes = processes;
      })
      // Ignores the error: the commands fail only if the browser has ended.
      .catch(() => {})
      .finally(() => this.onAnswer());
  }

  private onAnswer(): void {
    this.unansweredRequest = null;
    // The event about the killed renderer may arrive only after the many messages of the flood, so KILL_EFFECT_MS is
    // counted from now.
    if (this.killEffectUntil === Number.POSITIVE_INFINITY) this.killEffectUntil = Date.now() + KILL_EFFECT_MS;
    for (const pid of this.paused) signalProcess(pid, "SIGCONT");
    this.paused.clear();
  }

  private isStarvedFor({ threads }: UnansweredRequest, ms: number): boolean {
    return threads !== null && isBrowserStarved(threads, readSharedProcessThreads(this.group), ms);
  }

  private async takeSample(): Promise<CpuUsageSample> {
    const at = Date.now();
    const measured = await measureProcesses(this.processes, this.group);
    return { at, usages: new Map(measured.map((usage) => [usage.pid, usage])) };
  }

  private pauseOrKill(pid: number): void {
    if (Date.now() - (this.pausedAt.get(pid) ?? 0) < REPEATED_FLOOD_MS) {
      this.killEffectUntil = Number.POSITIVE_INFINITY;
      signalProcess(pid, "SIGKILL");
      return;
    }
    this.pausedAt.set(pid, Date.now());
    this.paused.add(pid);
    signalProcess(pid, "SIGSTOP");
  }

  /**
   * Measures CPU times while the request `late` has no response, and compares them with the previous measurement. Stops
   * a browser that hangs, and pauses or kills a renderer that floods the browser.
   */
  private async checkLateRequest(late: UnansweredRequest): Promise<void> {
    const now = Date.now();
    const lateMs = now - late.at;
    if (lateMs > HUNG_AFTER_MS && (lateMs > STARVED_AFTER_MS || !this.isStarvedFor(late, lateMs)))
      await this.chromium.stop();
    if (lateMs < FIRST_MEASUREMENT_AFTER_MS || (late.sample !== null && now - late.sample.at < COMPARISON_INTERVAL_MS))
      return;
    const before = late.sample;
    late.threads ??= readSharedProcessThreads(this.group);
    late.sample = await this.takeSample();
    if (before === null || this.unansweredRequest !== late) return;
    const sender = findFloodingRenderer(before, late.sample);
    if (sender !== null && !this.paused.has(sender)) this.pauseOrKill(sender);
  }
}
