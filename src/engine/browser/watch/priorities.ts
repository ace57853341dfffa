/** Lowers the priority of busy renderers, so that other runs, the service and its database come first. */

import { readdirSync, writeFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { type IdleControlGroup, rendererIdleControlGroup } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Nice value of renderers that use little CPU time, and of all other processes of the browser. */
export const BROWSER_NICE_VALUE = 5;
/** Nice value of the browser's session (autogroup of the kernel). Measurements with 0 and with 10 showed longer delays. */
export const BROWSER_AUTOGROUP_NICE_VALUE = 3;
/** Nice value of a renderer by the number of cores that it demands. A thread with 5 gets as much CPU time as about twenty threads with 19. */
const PRIORITY_BY_BUSY_CORES: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/** A renderer that demands this many cores moves to the idle group (low CPU weight) if another renderer also uses CPU time. */
const IDLE_GROUP_MIN_CORES = 0.5;
/** Minimum time in the idle group (low CPU weight). Without it, a renderer that gets no CPU time there seems idle and leaves too soon. */
const IDLE_GROUP_MIN_MS = 2_000;
/** Period over which CPU time is measured. A shorter run cannot delay other runs much. */
const MEASURE_PERIOD_MS = 150;
/** Measurement period for renderers with several busy threads, or with many new threads, because they delay other runs sooner. */
const THREADS_MEASURE_PERIOD_MS = 40;
const THREADS_MIN_CORES = 1.2;
/** Like IDLE_GROUP_MIN_CORES, for a renderer with many new threads. */
const MANY_THREADS_MIN_CORES = 0.15;
/** A renderer has many new threads if it has this many more threads than at the earlier measurement with the fewest. */
const MANY_NEW_THREADS = 8;

/** A renderer that uses this many cores is busy: it competes with other busy ones. */
const BUSY_MIN_CORES = 0.1;

type Renderer = Pick<MeasuredProcess, "pid" | "cpuMs" | "threads" | "nice">;

interface Measurement {
  at: number;
  cpuMs: number;
  /** Number of cores that the renderer used in the last period. */
  cores: number;
  threads: number;
  lastBusyAt: number;
  /** End of the minimum stay in the idle group (low CPU weight); 0 if the renderer is not in the group. */
  idleUntil: number;
}

export function chooseRendererPriority(cores: number): number {
  return PRIORITY_BY_BUSY_CORES.find(([minCores]) => cores >= minCores)?.[1] ?? BROWSER_NICE_VALUE;
}

/** Call this function just after the start of the browser, whose later threads and child processes inherit the priority. */
export function lowerBrowserPriority(pid: number): void {
  try {
    setPriority(pid, BROWSER_NICE_VALUE);
  } catch {
    // The browser has inherited a lower priority of the service, which the account is not allowed to raise.
  }
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(BROWSER_AUTOGROUP_NICE_VALUE));
  } catch {
    // The kernel has no autogroups, or allows an unprivileged account one change in 100 ms on the whole machine.
  }
}

const listThreadsOfProcess = (pid: number): number[] => readdirSync(`/proc/${pid}/task`).map(Number);

function setThreadPriorities(threads: readonly number[], priority: number): void {
  for (const thread of threads) {
    try {
      setPriority(thread, priority);
    } catch (error) {
      // Skips a thread that has ended. Stops at another error: an account that may not raise one priority may not raise the others.
      if ((error as { info: { code: string } }).info.code !== "ESRCH") return;
    }
  }
}

export class RendererPriorities {
  private readonly measurements = new Map<number, Measurement>();

  constructor(
    private readonly listThreads = listThreadsOfProcess,
    private readonly idleGroup: Pick<IdleControlGroup, "moveProcess"> = rendererIdleControlGroup,
    private readonly coreCount = availableParallelism(),
  ) {}

  update(renderers: readonly Renderer[]): void {
    const presentPids = new Set(renderers.map(({ pid }) => pid));
    for (const pid of this.measurements.keys()) if (!presentPids.has(pid)) this.measurements.delete(pid);
    const at = performance.now();
    for (const renderer of renderers) this.updateRenderer(renderer, at);
  }

  private isAnotherBusy(pid: number, now: number): boolean {
    return [...this.measurements].some(
      ([otherPid, { lastBusyAt }]) => otherPid !== pid && now - lastBusyAt < IDLE_GROUP_MIN_MS,
    );
  }

  private updateRenderer({ pid, cpuMs, threads, nice }: Renderer, now: number): void {
    const before = this.measurements.get(pid);
    if (before === undefined) {
      this.measurements.set(pid, { at: now, cpuMs, cores: 0, threads, lastBusyAt: -IDLE_GROUP_MIN_MS, idleUntil: 0 });
      return;
    }
    const cores = (cpuMs - before.cpuMs) / (now - before.at);
    const hasManyNewThreads = threads >= before.threads + MANY_NEW_THREADS;
    const periodMs = cores >= THREADS_MIN_CORES || hasManyNewThreads ? THREADS_MEASURE_PERIOD_MS : MEASURE_PERIOD_MS;
    if (now - before.at < periodMs) return;
    const busyCount = [...this.measurements.values()].filter((other) => other.cores >= BUSY_MIN_CORES).length;
    // Estimates how many cores the renderer would use alone: if many renderers are busy, each of them gets only part of a core.
    const demandedCores = cores * Math.max(1, busyCount / this.coreCount);
    this.setPriority(pid, nice, chooseRendererPriority(demandedCores));
    const isDelayingOthers =
      demandedCores >= (hasManyNewThreads ? MANY_THREADS_MIN_CORES : IDLE_GROUP_MIN_CORES) &&
      this.isAnotherBusy(pid, now);
    this.measurements.set(pid, {
      at: now,
      cpuMs,
      cores,
      threads: Math.min(threads, before.threads),
      lastBusyAt: cores > 0 ? now : before.lastBusyAt,
      idleUntil: this.moveRenderer(pid, isDelayingOthers, now, before.idleUntil),
    });
  }

  /** Moves the renderer into or out of the idle group if necessary. Returns its new `idleUntil`, which a failed move later sets back. */
  private moveRenderer(pid: number, isDelayingOthers: boolean, now: number, idleUntil: number): number {
    const newIdleUntil = isDelayingOthers ? now + IDLE_GROUP_MIN_MS : idleUntil;
    const willBeIdle = now < newIdleUntil;
    if (willBeIdle !== (idleUntil !== 0)) {
      const move = this.idleGroup.moveProcess(pid, willBeIdle ? "idle" : "service").then((isMoved) => {
        const measurement = this.measurements.get(pid);
        if (!isMoved && measurement !== undefined) measurement.idleUntil = idleUntil;
      });
      runInBackground(move);
    }
    return willBeIdle ? newIdleUntil : 0;
  }

  private setPriority(pid: number, nice: number, priority: number): void {
    if (priority === nice) return;
    try {
      setThreadPriorities(this.listThreads(pid), priority);
    } catch {
      // The threads could not be listed. The next update tries again, because the renderer still has its old nice value.
    }
  }
}
