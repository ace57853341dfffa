/**
 * Detects that the browser's own process, which serves all runs, is too busy to respond. Finds the renderer that floods it
 * with messages by the renderer's time in system calls, and pauses or kills the renderer.
 */
import type { Chromium } from "../browser-source.js";
import {
  type BrowserProcess,
  listProcesses,
  type MeasuredProcess,
  measureProcesses,
  readServingThreads,
  type ServingThreads,
  signalProcess,
} from "./processes.js";

/** Time without a response of the browser after which the CPU times of its processes are first measured. */
const LATE_MS = 100;
/** Time after the first measurement after which CPU times are measured again and compared. */
const COMPARED_AFTER_MS = 150;
/**
 * Minimum share of COMPARED_AFTER_MS that a flooding renderer spends in the kernel. Code that only computes spends almost no time
 * there; code that sends messages spends a fifth or more.
 */
const FLOOD_KERNEL_SHARE = 0.08;
/** Minimum share of a flooding renderer's own CPU time that it spends in the kernel. */
const FLOOD_KERNEL_SHARE_OF_OWN = 0.1;
/**
 * Minimum share of COMPARED_AFTER_MS that the browser's own processes get. With less, they are slow because the machine is busy,
 * and not because of a renderer.
 */
const SERVING_SHARE = 0.25;
/** If a renderer floods the browser again within this time, it is killed. The first flood only pauses the renderer. */
const FORGIVEN_AFTER_MS = 10_000;
/** Time without a response after which the browser counts as hung and is replaced. */
const HUNG_MS = 5_000;
/** Time without a response after which the browser is replaced if it gets no CPU time because the machine is overloaded. */
const STARVED_MS = 60_000;
/** Time after the browser's first response after a kill during which a crash counts as the effect of the kill. */
const CAUSED_WITHIN_MS = 2_000;

/** Processor times of the browser's processes at one time, by process ID. */
export interface UsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

/** Request to the browser that the browser has not answered yet. */
interface UnansweredRequest {
  at: number;
  /** Last measurement of CPU times since the request was sent; null before the first one. */
  sample: UsageSample | null;
  /** The browser's own threads at the first measurement. */
  threads: ServingThreads | null;
}

/**
 * True if the browser could not respond since the measurement `before`, `ms` milliseconds ago, because it got too
 * little CPU time. A browser that hangs has no runnable thread, and a flooded browser runs most of the time.
 */
export function isStarved(before: ServingThreads, after: ServingThreads, ms: number): boolean {
  return after.isAnyRunnable && after.cpuMs - before.cpuMs < SERVING_SHARE * ms;
}

/** Returns the process ID of the renderer that sent most messages between two samples; null if no renderer floods the browser. */
export function findFloodingRenderer(before: UsageSample, after: UsageSample): number | null {
  const window = after.at - before.at;
  let serving = 0;
  let most = FLOOD_KERNEL_SHARE * window;
  let sender: number | null = null;
  for (const [pid, { cpuMs: spent, kernelMs: kernel, renderer }] of after.usages) {
    const earlier = before.usages.get(pid);
    if (earlier === undefined) continue;
    const sending = kernel - earlier.kernelMs;
    if (!renderer) serving += spent - earlier.cpuMs;
    else if (sending >= most && sending >= FLOOD_KERNEL_SHARE_OF_OWN * (spent - earlier.cpuMs)) {
      most = sending;
      sender = pid;
    }
  }
  return serving >= SERVING_SHARE * window ? sender : null;
}

export class FloodWatch {
  /** Processes of the browser at the time of its last response. */
  processes: readonly BrowserProcess[] = [];
  private readonly paused = new Set<number>();
  private readonly pausedAt = new Map<number, number>();
  private unansweredRequest: UnansweredRequest | null = null;
  /** Time until which a crash counts as the effect of a kill by this class. */
  private causedUntil = 0;

  /** @param group the browser's process group */
  constructor(
    private readonly chromium: Chromium,
    private readonly group: number,
  ) {}

  /**
   * Sends a request to the browser if a run is active. If the previous request has no response yet, measures and
   * compares CPU times instead. Call this function ten times a second.
   */
  async check(isActive: boolean): Promise<void> {
    if (this.unansweredRequest !== null) await this.checkLate(this.unansweredRequest);
    else if (isActive) this.sendRequest();
  }

  /** True if a crash that is reported now is the effect of a kill by this class. */
  causedCrash(): boolean {
    return Date.now() < this.causedUntil;
  }

  private sendRequest(): void {
    const { connection } = this.chromium;
    this.unansweredRequest = { at: Date.now(), sample: null, threads: null };
    // The browser process answers the first command, and the network process, which all runs share, the second one.
    Promise.all([listProcesses(connection, 0), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([processes]) => {
        this.processes = processes;
      })
      // The commands fail only if the browser has ended.
      .catch(() => {})
      .finally(() => this.onAnswer());
  }

  private onAnswer(): void {
    this.unansweredRequest = null;
    // The event about the killed renderer may arrive only after the many messages of the flood, so the time limit
    // starts now.
    if (this.causedUntil === Number.POSITIVE_INFINITY) this.causedUntil = Date.now() + CAUSED_WITHIN_MS;
    for (const pid of this.paused) signalProcess(pid, "SIGCONT");
    this.paused.clear();
  }

  private isStarvedFor({ threads }: UnansweredRequest, ms: number): boolean {
    return threads !== null && isStarved(threads, readServingThreads(this.group), ms);
  }

  private async takeSample(): Promise<UsageSample> {
    const at = Date.now();
    const measured = await measureProcesses(this.processes, this.group);
    return { at, usages: new Map(measured.map((usage) => [usage.pid, usage])) };
  }

  private pauseOrKill(pid: number): void {
    if (Date.now() - (this.pausedAt.get(pid) ?? 0) < FORGIVEN_AFTER_MS) {
      this.causedUntil = Number.POSITIVE_INFINITY;
      signalProcess(pid, "SIGKILL");
      return;
    }
    this.pausedAt.set(pid, Date.now());
    this.paused.add(pid);
    signalProcess(pid, "SIGSTOP");
  }

  /**
   * Measures processor times while the request `late` has no response, and compares them with the previous measurement.
   * Stops a browser that hangs, and pauses or kills a renderer that floods the browser.
   */
  private async checkLate(late: UnansweredRequest): Promise<void> {
    const now = Date.now();
    const lateMs = now - late.at;
    if (lateMs > HUNG_MS && (lateMs > STARVED_MS || !this.isStarvedFor(late, lateMs))) await this.chromium.stop();
    if (lateMs < LATE_MS || (late.sample !== null && now - late.sample.at < COMPARED_AFTER_MS)) return;
    const before = late.sample;
    late.threads ??= readServingThreads(this.group);
    late.sample = await this.takeSample();
    if (before === null || this.unansweredRequest !== late) return;
    const sender = findFloodingRenderer(before, late.sample);
    if (sender !== null && !this.paused.has(sender)) this.pauseOrKill(sender);
  }
}
