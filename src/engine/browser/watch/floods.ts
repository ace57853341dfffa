/** Pauses or kills a renderer whose flood of messages keeps the browser from responding. */
import type { Connection } from "puppeteer";
import {
  type BrowserProcess,
  isAnyThreadRunnable,
  listBrowserProcesses,
  type MeasuredProcess,
  measureProcesses,
  signalProcess,
} from "./processes.js";

const COMPARISON_INTERVAL_MS = 150;
/** Minimum time that a flooding renderer spends in the kernel, as a share of the time between two measurements. */
const FLOOD_KERNEL_SHARE = 0.08;
/** A flooding renderer spends at least this share of its own CPU time in the kernel. */
const FLOOD_KERNEL_SHARE_OF_CPU_TIME = 0.1;
/** If the shared processes (all except renderers) got less than this share of a core, the machine is busy, and no renderer is at fault. */
const SERVING_MIN_CPU_SHARE = 0.25;
/** A flooding renderer is paused, or killed if its last pause was less than this time ago. */
const REPEATED_FLOOD_MS = 10_000;
/** A crash counts as the effect of a kill until this time after the browser's next response. */
const KILL_EFFECT_MS = 2_000;

export interface CpuUsageSample {
  at: number;
  usages: Map<number, MeasuredProcess>;
}

const listSharedProcesses = ({ usages }: CpuUsageSample) =>
  [...usages.values()].filter(({ isRenderer }) => !isRenderer);

/** Returns the CPU time that the shared processes (all except renderers) got, as a share of a core. */
function measureSharedCpuShare(before: CpuUsageSample, after: CpuUsageSample): number {
  const usedMs = listSharedProcesses(after).map(({ pid, cpuMs }) => cpuMs - (before.usages.get(pid)?.cpuMs ?? cpuMs));
  return usedMs.reduce((sum, ms) => sum + ms, 0) / (after.at - before.at);
}

/** True if the browser waits for CPU time and got too little to respond. False if it hangs or is flooded. */
export function isBrowserStarved(
  before: CpuUsageSample,
  after: CpuUsageSample,
  isRunnable = isAnyThreadRunnable,
): boolean {
  const hasEnoughCpuTime = measureSharedCpuShare(before, after) >= SERVING_MIN_CPU_SHARE;
  return !hasEnoughCpuTime && isRunnable(listSharedProcesses(after).map(({ pid }) => pid));
}

/** If the browser is flooded, returns the process ID of the renderer that spent most time in the kernel; otherwise null. */
export function findFloodingRenderer(before: CpuUsageSample, after: CpuUsageSample): number | null {
  if (measureSharedCpuShare(before, after) < SERVING_MIN_CPU_SHARE) return null;
  const floodingRenderers = [...after.usages.values()].flatMap(({ pid, isRenderer, cpuMs, kernelMs }) => {
    const usageBefore = before.usages.get(pid);
    if (!isRenderer || usageBefore === undefined) return [];
    const spentKernelMs = kernelMs - usageBefore.kernelMs;
    const isFlooding =
      spentKernelMs >= FLOOD_KERNEL_SHARE * (after.at - before.at) &&
      spentKernelMs >= FLOOD_KERNEL_SHARE_OF_CPU_TIME * (cpuMs - usageBefore.cpuMs);
    return isFlooding ? [{ pid, spentKernelMs }] : [];
  });
  return floodingRenderers.sort((a, b) => b.spentKernelMs - a.spentKernelMs)[0]?.pid ?? null;
}

export class FloodWatch {
  processes: readonly BrowserProcess[] = [];
  private readonly pausedPids = new Set<number>();
  private readonly pausedAt = new Map<number, number>();
  private firstSample: CpuUsageSample | null = null;
  private lastSample: CpuUsageSample | null = null;
  /** Unix time in milliseconds until which a crash counts as the effect of a kill; infinite until the browser responds. */
  private killEffectUntil = 0;

  constructor(
    private readonly connection: Connection,
    private readonly group: number,
  ) {}

  /** Resolves when the browser has responded to a test request. */
  async sendTestRequest(): Promise<void> {
    // The network process answers this command. The browser's main process answers the command of `listBrowserProcesses`.
    const cookies = this.connection.send("Storage.getCookies", undefined, { timeout: 0 });
    try {
      [this.processes] = await Promise.all([listBrowserProcesses(this.connection), cookies]);
    } finally {
      this.onAnswer();
    }
  }

  /** Call this method ten times a second while the browser does not respond. Pauses or kills a renderer that floods the browser. */
  onLateAnswer(): void {
    const before = this.lastSample;
    const after = this.takeSample();
    if (before !== null && after.at - before.at < COMPARISON_INTERVAL_MS) return;
    this.firstSample ??= after;
    this.lastSample = after;
    const floodingPid = before && findFloodingRenderer(before, after);
    if (floodingPid !== null && !this.pausedPids.has(floodingPid)) this.pauseOrKill(floodingPid);
  }

  isBrowserStarved(): boolean {
    const { firstSample, lastSample } = this;
    return firstSample !== null && lastSample !== null && isBrowserStarved(firstSample, lastSample);
  }

  hasCausedCrash(): boolean {
    return Date.now() < this.killEffectUntil;
  }

  private onAnswer(): void {
    this.firstSample = null;
    this.lastSample = null;
    // The browser reports the kill only after it has processed the messages of the flood, so KILL_EFFECT_MS starts now.
    if (this.killEffectUntil === Number.POSITIVE_INFINITY) this.killEffectUntil = Date.now() + KILL_EFFECT_MS;
    for (const pid of this.pausedPids) signalProcess(pid, "SIGCONT");
    this.pausedPids.clear();
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
    this.pausedPids.add(pid);
    signalProcess(pid, "SIGSTOP");
  }
}
