/** Pauses or kills a renderer whose flood of messages keeps the browser from responding. Ends a browser that hangs. */
import type { Chromium } from "../browser-source.js";
import {
  type BrowserProcess,
  listBrowserProcesses,
  type MeasuredProcess,
  measureProcesses,
  readSharedProcessLoad,
  type SharedProcessLoad,
  signalProcess,
} from "./processes.js";

/** Time without a response after which the CPU times of the browser's processes are first measured. */
const FIRST_MEASUREMENT_AFTER_MS = 100;
const COMPARISON_INTERVAL_MS = 150;
/** Minimum time that a flooding renderer spends in the kernel, as a share of the time between two measurements. */
const FLOOD_KERNEL_SHARE = 0.08;
/** A flooding renderer spends at least this share of its own CPU time in the kernel. */
const FLOOD_KERNEL_SHARE_OF_OWN = 0.1;
/** If the shared processes (all except renderers) got less than this share of a core, the machine is busy, and no renderer is at fault. */
const SERVING_MIN_CPU_SHARE = 0.25;
/** A flooding renderer is paused, or killed if its last pause was less than this time ago. */
const REPEATED_FLOOD_MS = 10_000;
/** Without a response for this time, the browser counts as hung and is replaced. */
const HUNG_AFTER_MS = 5_000;
/** Replaces HUNG_AFTER_MS for a browser that gets too little CPU time because the machine is overloaded. */
const STARVED_AFTER_MS = 60_000;
/** A crash counts as the effect of a kill until this time after the browser's next response. */
const KILL_EFFECT_MS = 2_000;

export interface CpuUsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

interface UnansweredRequest {
  at: number;
  sample: CpuUsageSample | null;
  sharedLoad: SharedProcessLoad | null;
}

/** True if the browser got too little CPU time in `ms` milliseconds to respond. False if the browser hangs or is flooded. */
export function isBrowserStarved(before: SharedProcessLoad, after: SharedProcessLoad, ms: number): boolean {
  return after.isAnyRunnable && after.cpuMs - before.cpuMs < SERVING_MIN_CPU_SHARE * ms;
}

/** If the browser is flooded, returns the process ID of the renderer that spent most time in the kernel; otherwise null. */
export function findFloodingRenderer(before: CpuUsageSample, after: CpuUsageSample): number | null {
  const elapsedMs = after.at - before.at;
  let sharedCpuMs = 0;
  let maxKernelMs = FLOOD_KERNEL_SHARE * elapsedMs;
  let floodingPid: number | null = null;
  for (const [pid, { cpuMs, kernelMs, isRenderer }] of after.usages) {
    const earlier = before.usages.get(pid);
    if (earlier === undefined) continue;
    const rendererKernelMs = kernelMs - earlier.kernelMs;
    if (!isRenderer) sharedCpuMs += cpuMs - earlier.cpuMs;
    else if (
      rendererKernelMs >= maxKernelMs &&
      rendererKernelMs >= FLOOD_KERNEL_SHARE_OF_OWN * (cpuMs - earlier.cpuMs)
    ) {
      maxKernelMs = rendererKernelMs;
      floodingPid = pid;
    }
  }
  return sharedCpuMs >= SERVING_MIN_CPU_SHARE * elapsedMs ? floodingPid : null;
}

export class FloodWatch {
  processes: readonly BrowserProcess[] = [];
  private readonly paused = new Set<number>();
  private readonly pausedAt = new Map<number, number>();
  private unansweredRequest: UnansweredRequest | null = null;
  /** Unix time in milliseconds until which a crash counts as the effect of a kill; infinite until the browser responds. */
  private killEffectUntil = 0;

  constructor(
    private readonly chromium: Chromium,
    private readonly group: number,
  ) {}

  /** Call this method ten times a second. While the browser has not answered the last request, compares CPU times of its processes. */
  async check(isActive: boolean): Promise<void> {
    if (this.unansweredRequest !== null) await this.checkLateRequest(this.unansweredRequest);
    else if (isActive) this.sendRequest();
  }

  hasCausedCrash(): boolean {
    return Date.now() < this.killEffectUntil;
  }

  private sendRequest(): void {
    const { connection } = this.chromium;
    this.unansweredRequest = { at: Date.now(), sample: null, sharedLoad: null };
    // The browser's main process answers the first command. The network process answers the second one.
    Promise.all([listBrowserProcesses(connection), connection.send("Storage.getCookies", undefined, { timeout: 0 })])
      .then(([processes]) => {
        this.processes = processes;
      })
      // The commands fail only if the browser has ended.
      .catch(() => {})
      .finally(() => this.onAnswer());
  }

  private onAnswer(): void {
    this.unansweredRequest = null;
    // The browser reports the kill only after it has processed the messages of the flood, so KILL_EFFECT_MS starts now.
    if (this.killEffectUntil === Number.POSITIVE_INFINITY) this.killEffectUntil = Date.now() + KILL_EFFECT_MS;
    for (const pid of this.paused) signalProcess(pid, "SIGCONT");
    this.paused.clear();
  }

  private isStarvedFor({ sharedLoad }: UnansweredRequest, ms: number): boolean {
    return sharedLoad !== null && isBrowserStarved(sharedLoad, readSharedProcessLoad(this.group), ms);
  }

  private takeSample(): CpuUsageSample {
    const at = Date.now();
    return { at, usages: new Map(measureProcesses(this.processes, this.group).map((usage) => [usage.pid, usage])) };
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

  private async checkLateRequest(lateRequest: UnansweredRequest): Promise<void> {
    const now = Date.now();
    const lateMs = now - lateRequest.at;
    if (lateMs > HUNG_AFTER_MS && (lateMs > STARVED_AFTER_MS || !this.isStarvedFor(lateRequest, lateMs)))
      return this.chromium.stop();
    if (
      lateMs < FIRST_MEASUREMENT_AFTER_MS ||
      (lateRequest.sample !== null && now - lateRequest.sample.at < COMPARISON_INTERVAL_MS)
    )
      return;
    const before = lateRequest.sample;
    lateRequest.sharedLoad ??= readSharedProcessLoad(this.group);
    lateRequest.sample = this.takeSample();
    if (before === null) return;
    const floodingPid = findFloodingRenderer(before, lateRequest.sample);
    if (floodingPid !== null && !this.paused.has(floodingPid)) this.pauseOrKill(floodingPid);
  }
}
