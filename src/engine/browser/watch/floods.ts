/** Pauses or kills a renderer whose flood of messages keeps the browser from responding. Ends a browser that hangs. */
import type { Chromium } from "../browser-source.js";
import {
  type BrowserProcess,
  isAnyThreadRunnable,
  listBrowserProcesses,
  type MeasuredProcess,
  measureProcesses,
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
  firstSample: CpuUsageSample | null;
  lastSample: CpuUsageSample | null;
}

const listShared = ({ usages }: CpuUsageSample) => [...usages.values()].filter(({ isRenderer }) => !isRenderer);

/** True if the shared processes (all except renderers) got enough CPU time to respond. */
function areSharedProcessesServed(before: CpuUsageSample, after: CpuUsageSample): boolean {
  const usedMs = listShared(after).map(({ pid, cpuMs }) => cpuMs - (before.usages.get(pid)?.cpuMs ?? cpuMs));
  return usedMs.reduce((sum, ms) => sum + ms, 0) >= SERVING_MIN_CPU_SHARE * (after.at - before.at);
}

/** True if the browser waits for CPU time and got too little to respond. False if it hangs or is flooded. */
export function isBrowserStarved(
  before: CpuUsageSample,
  after: CpuUsageSample,
  isRunnable = isAnyThreadRunnable,
): boolean {
  return !areSharedProcessesServed(before, after) && isRunnable(listShared(after).map(({ pid }) => pid));
}

/** If the browser is flooded, returns the process ID of the renderer that spent most time in the kernel; otherwise null. */
export function findFloodingRenderer(before: CpuUsageSample, after: CpuUsageSample): number | null {
  if (!areSharedProcessesServed(before, after)) return null;
  const senders = [...after.usages.values()].flatMap(({ pid, isRenderer, cpuMs, kernelMs }) => {
    const earlier = before.usages.get(pid);
    if (!isRenderer || earlier === undefined) return [];
    const spentKernelMs = kernelMs - earlier.kernelMs;
    const isFlooding =
      spentKernelMs >= FLOOD_KERNEL_SHARE * (after.at - before.at) &&
      spentKernelMs >= FLOOD_KERNEL_SHARE_OF_OWN * (cpuMs - earlier.cpuMs);
    return isFlooding ? [{ pid, spentKernelMs }] : [];
  });
  return senders.sort((a, b) => b.spentKernelMs - a.spentKernelMs)[0]?.pid ?? null;
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
    this.unansweredRequest = { at: Date.now(), firstSample: null, lastSample: null };
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
    const { at, firstSample, lastSample: before } = lateRequest;
    const after = this.takeSample();
    const lateMs = after.at - at;
    const isStarved = () => firstSample !== null && isBrowserStarved(firstSample, after);
    if (lateMs > HUNG_AFTER_MS && (lateMs > STARVED_AFTER_MS || !isStarved())) return this.chromium.stop();
    if (lateMs < FIRST_MEASUREMENT_AFTER_MS || (before !== null && after.at - before.at < COMPARISON_INTERVAL_MS))
      return;
    lateRequest.firstSample ??= after;
    lateRequest.lastSample = after;
    if (before === null) return;
    const floodingPid = findFloodingRenderer(before, after);
    if (floodingPid !== null && !this.paused.has(floodingPid)) this.pauseOrKill(floodingPid);
  }
}
