/**
 * Lowers the priority of renderers that use much CPU time, so that other runs, the service and its database come first.
 * Also moves these renderers to a control group with low CPU weight (idle-group.ts). Without root, the control group
 * does not exist, and a lowered priority cannot be raised again.
 */

import { readdirSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { type IdleControlGroup, rendererIdleControlGroup } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Priority (nice value) of renderers that use little CPU time, and of all other processes of the browser. */
export const BROWSER_PRIORITY = 5;
/**
 * Priority (nice value) of the browser's session, for kernels that first divide CPU time between sessions (autogroups).
 * With 3, the browser's session gets half the CPU time of the service's session if both need it. With 0, threads that a
 * run has just started delay the service by up to 140 ms, because priorities of threads count only within a session.
 * With 10, large results that the service processes for one app delay the runs of others: by 400 to 950 ms (p95) on a
 * slow machine, where 3 delays them by 70 to 130 ms.
 */
export const BROWSER_SESSION_PRIORITY = 3;
/**
 * Priorities (nice values) by the number of cores that a renderer keeps busy. A thread with priority 5 gets as much CPU
 * time as twenty threads with 19.
 */
const PRIORITY_BY_BUSY_CORES: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/**
 * Number of busy cores from which a renderer is moved to the idle group (control group with low CPU weight), if other
 * renderers also use CPU time.
 */
const IDLE_GROUP_MIN_CORES = 0.5;
/**
 * A renderer stays in the idle group (control group with low CPU weight) for at least this time in milliseconds. Then
 * it leaves the group if it is less busy, or if no other renderer uses CPU time. After a shorter time, a busy renderer
 * that got no CPU time in the group would also leave it.
 */
const IDLE_GROUP_MIN_MS = 2_000;
/**
 * Period in milliseconds over which CPU time is measured. A run that is shorter than this period cannot delay other
 * runs much.
 */
const MEASURE_PERIOD_MS = 150;
/**
 * Shorter period in milliseconds for renderers with several busy threads. Ordinary code has only one busy thread;
 * several of them delay other runs sooner.
 */
const THREADS_MEASURE_PERIOD_MS = 40;
/** Number of busy cores from which the period THREADS_MEASURE_PERIOD_MS applies instead of MEASURE_PERIOD_MS. */
const THREADS_MIN_CORES = 1.2;
/**
 * Number of busy cores from which a renderer with many new threads is moved to the idle group (control group with low
 * CPU weight).
 */
const MANY_THREADS_MIN_CORES = 0.15;
/** Number of threads, in addition to the renderer's lowest number, that counts as many new threads. */
const MANY_NEW_THREADS = 8;
/** Time in milliseconds until the second attempt to set the priority of the browser's session. */
const SESSION_RETRY_MS = 150;

type Renderer = Pick<MeasuredProcess, "pid" | "cpuMs" | "threads">;

interface Measurement {
  at: number;
  cpuMs: number;
  /** Lowest number of threads that the renderer has had at any measurement. */
  threads: number;
  /** Time of the last measurement at which the renderer had used CPU time. */
  lastBusyAt: number;
  priority: number;
  /**
   * Time until which the renderer stays in the idle group (control group with low CPU weight); 0 if the renderer is not
   * in the group.
   */
  idleUntil: number;
}

/** Returns the priority of a renderer with this many busy cores. */
export function chooseRendererPriority(cores: number): number {
  return PRIORITY_BY_BUSY_CORES.find(([least]) => cores >= least)?.[1] ?? BROWSER_PRIORITY;
}

/**
 * Lowers the priority of a browser that has just been started as the leader of a new session. Later threads and child
 * processes of the browser inherit the priority.
 */
export function lowerBrowserPriority(pid: number): void {
  try {
    setPriority(pid, BROWSER_PRIORITY);
  } catch {
    // Ignores the error: the service was started with a lower priority, which the browser has inherited. The account is
    // not allowed to raise it.
  }
  setBrowserSessionPriority(pid);
}

/**
 * Sets the priority of the session of a browser. Without CAP_SYS_ADMIN, the kernel rejects the change with EAGAIN if a
 * process has changed the priority of any session in the last 100 ms, for example that of another browser. So the
 * change is then repeated once.
 * @param write replaces `writeFileSync` in tests
 */
export function setBrowserSessionPriority(
  pid: number,
  write: typeof writeFileSync = writeFileSync,
  isRetry = false,
): void {
  try {
    write(`/proc/${pid}/autogroup`, String(BROWSER_SESSION_PRIORITY));
  } catch (error) {
    // Ignores other errors: the kernel has no autogroups, or the browser has already ended.
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || isRetry) return;
    setTimeout(setBrowserSessionPriority, SESSION_RETRY_MS, pid, write, true).unref();
  }
}

const listThreadsOfProcess = (pid: number): number[] => readdirSync(`/proc/${pid}/task`).map(Number);

/**
 * Sets the priority of each thread. A new thread inherits the priority of its creator.
 * @throws the errors that a later attempt may not have
 */
function setThreadPriorities(threads: readonly number[], priority: number): void {
  for (const thread of threads) {
    try {
      setPriority(thread, priority);
    } catch (error) {
      // Ignores a thread that has ended, and a priority that the account is not allowed to raise again. The other
      // threads must still get the priority.
      const { code } = (error as { info: { code: string } }).info;
      if (code !== "ESRCH" && code !== "EACCES" && code !== "EPERM") throw error;
    }
  }
}

export class RendererPriorities {
  private readonly measurements = new Map<number, Measurement>();

  /** @param listThreads returns the thread IDs of a process */
  constructor(
    private readonly listThreads = listThreadsOfProcess,
    private readonly idleGroup: Pick<IdleControlGroup, "moveProcess"> = rendererIdleControlGroup,
  ) {}

  /** Sets the priority of each renderer by the CPU time that it has used since the last call. */
  update(renderers: readonly Renderer[]): void {
    const present = new Set(renderers.map(({ pid }) => pid));
    for (const pid of this.measurements.keys()) if (!present.has(pid)) this.measurements.delete(pid);
    const at = performance.now();
    for (const renderer of renderers) this.updateRenderer(renderer, at);
  }

  private isAnotherBusy(pid: number, now: number): boolean {
    return [...this.measurements].some(
      ([other, { lastBusyAt }]) => other !== pid && now - lastBusyAt < IDLE_GROUP_MIN_MS,
    );
  }

  private updateRenderer({ pid, cpuMs, threads }: Renderer, now: number): void {
    const before = this.measurements.get(pid);
    if (before === undefined) {
      const idle = { lastBusyAt: -IDLE_GROUP_MIN_MS, priority: BROWSER_PRIORITY, idleUntil: 0 };
      this.measurements.set(pid, { at: now, cpuMs, threads, ...idle });
      return;
    }
    const cores = (cpuMs - before.cpuMs) / (now - before.at);
    const hasMore = threads >= before.threads + MANY_NEW_THREADS;
    if (now - before.at < (cores >= THREADS_MIN_CORES || hasMore ? THREADS_MEASURE_PERIOD_MS : MEASURE_PERIOD_MS))
      return;
    const priority = chooseRendererPriority(cores);
    const isInTheWay =
      cores >= (hasMore ? MANY_THREADS_MIN_CORES : IDLE_GROUP_MIN_CORES) && this.isAnotherBusy(pid, now);
    this.measurements.set(pid, {
      at: now,
      cpuMs,
      threads: Math.min(threads, before.threads),
      lastBusyAt: cores > 0 ? now : before.lastBusyAt,
      priority: this.changePriority(pid, before.priority, priority),
      idleUntil: this.moveRenderer(pid, isInTheWay, now, before.idleUntil),
    });
  }

  /**
   * Moves a renderer to the idle group (control group with low CPU weight) or back. If the move fails, the next update
   * tries again.
   * @returns the renderer's new time limit in the idle group (`idleUntil`)
   */
  private moveRenderer(pid: number, isDelayingOthers: boolean, now: number, idleUntil: number): number {
    const idleUntilNext = isDelayingOthers ? now + IDLE_GROUP_MIN_MS : idleUntil;
    const isIdleNext = now < idleUntilNext;
    if (isIdleNext !== (idleUntil !== 0)) {
      const move = this.idleGroup.moveProcess(pid, isIdleNext ? "idle" : "service").then((isMoved) => {
        const measurement = this.measurements.get(pid);
        if (!isMoved && measurement !== undefined) measurement.idleUntil = idleUntil;
      });
      runInBackground(move);
    }
    return isIdleNext ? idleUntilNext : 0;
  }

  /** Changes the priority of a renderer. Returns its new priority: the old one if the next update must try again. */
  private changePriority(pid: number, oldPriority: number, priority: number): number {
    if (priority === oldPriority) return oldPriority;
    try {
      setThreadPriorities(this.listThreads(pid), priority);
      return priority;
    } catch {
      return oldPriority;
    }
  }
}
