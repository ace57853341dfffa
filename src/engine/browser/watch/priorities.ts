/**
 * Lowers the priority of renderers that use much CPU time, so that other runs, the service and its database come first.
 * Also moves such renderers to a control group with low CPU weight (idle-group.ts). Without root there is no such
 * group, and a lowered priority cannot be raised again.
 */

import { writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { moveToIdleGroup, moveToServiceGroup } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Priority (nice value) of the browser's own processes, and of renderers that use little CPU time. */
export const BROWSER_PRIORITY = 5;
/**
 * Priority (nice value) of the browser's session, if the kernel divides CPU time between sessions first (autogroups).
 * Then priorities of threads are only compared within a session, and without this one, threads that a run has just
 * started delay the service by up to 140 ms. With 10, the session gets a tenth of the CPU time that the service's
 * session gets, if both need it.
 */
export const SESSION_PRIORITY = 10;
/**
 * Priorities (nice values) by the number of cores that a renderer keeps busy. A thread with priority 5 gets as much CPU
 * time as twenty threads with 19.
 */
const PRIORITY_BY_BUSY_CORES: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/** Number of busy cores from which a renderer is moved to the idle group, if other renderers also use CPU time. */
const IDLE_CORES = 0.5;
/**
 * Time after which a renderer leaves the idle group if it is less busy, or if no other renderer uses CPU time. After a
 * shorter time, even a busy renderer that got no CPU time would leave the group.
 */
const IDLE_MS = 2_000;
/** Period over which CPU time is measured. A run that is shorter cannot delay other runs much. */
const WINDOW_MS = 150;
/**
 * Period over which CPU time is measured for renderers with several busy threads. Ordinary code does not have them, and
 * they delay other runs sooner.
 */
const THREADS_WINDOW_MS = 40;
/** Number of busy cores from which THREADS_WINDOW_MS applies instead of WINDOW_MS. */
const THREADS_CORES = 1.2;
/** Number of busy cores from which a renderer with many new threads is moved to the idle group. */
const CROWDED_CORES = 0.15;
/** Number of additional threads from which a renderer counts as having many new threads. */
const MANY_NEW_THREADS = 8;

type Renderer = Pick<MeasuredProcess, "pid" | "cpuMs" | "threads">;

/** Last measurement of a renderer. */
interface Measurement {
  at: number;
  cpuMs: number;
  /** Lowest number of threads that was measured so far. */
  threads: number;
  /** Last time at which the renderer had used CPU time. */
  computedAt: number;
  priority: number;
  /** Time until which the renderer stays in the idle group; 0 if the renderer is not in the group. */
  idleUntil: number;
}

/** Returns the priority of a renderer with this many busy cores. */
export function priorityOf(cores: number): number {
  return PRIORITY_BY_BUSY_CORES.find(([least]) => cores >= least)?.[1] ?? BROWSER_PRIORITY;
}

/**
 * Lowers the priority of a browser that has just been started as the leader of its session. Later threads and child
 * processes inherit it.
 */
export function lowerBrowserPriority(pid: number): void {
  setPriority(pid, BROWSER_PRIORITY);
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(SESSION_PRIORITY));
  } catch {
    // The kernel has no autogroups, or the browser has already ended.
  }
}

/** Sets the priority of all threads of a process. A new thread inherits the priority of its creator. */
async function setThreadPriorities(pid: number, priority: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
}

/** Moves a renderer to the idle group or back. @returns the new `idleUntil` of the renderer */
function moveRenderer(pid: number, isDelayingOthers: boolean, now: number, idleUntil: number): number {
  if (isDelayingOthers) {
    if (idleUntil === 0) runInBackground(moveToIdleGroup(pid));
    return now + IDLE_MS;
  }
  if (idleUntil === 0 || now < idleUntil) return idleUntil;
  runInBackground(moveToServiceGroup(pid));
  return 0;
}

export class Priorities {
  private readonly measurements = new Map<number, Measurement>();

  /** Sets the priority of each renderer by the CPU time that it has used since the last call. */
  update(renderers: readonly Renderer[]): void {
    const present = new Set(renderers.map(({ pid }) => pid));
    for (const pid of this.measurements.keys()) if (!present.has(pid)) this.measurements.delete(pid);
    const at = performance.now();
    for (const renderer of renderers) this.updateOne(renderer, at);
  }

  private isAnotherBusy(pid: number, now: number): boolean {
    return [...this.measurements].some(([other, { computedAt }]) => other !== pid && now - computedAt < IDLE_MS);
  }

  private updateOne({ pid, cpuMs: spent, threads }: Renderer, now: number): void {
    const before = this.measurements.get(pid);
    if (before === undefined) {
      const idle = { computedAt: -IDLE_MS, priority: BROWSER_PRIORITY, idleUntil: 0 };
      this.measurements.set(pid, { at: now, cpuMs: spent, threads, ...idle });
      return;
    }
    const cores = (spent - before.cpuMs) / (now - before.at);
    const hasMore = threads >= before.threads + MANY_NEW_THREADS;
    if (now - before.at < (cores >= THREADS_CORES || hasMore ? THREADS_WINDOW_MS : WINDOW_MS)) return;
    const priority = priorityOf(cores);
    const isInTheWay = cores >= (hasMore ? CROWDED_CORES : IDLE_CORES) && this.isAnotherBusy(pid, now);
    this.measurements.set(pid, {
      at: now,
      cpuMs: spent,
      threads: Math.min(threads, before.threads),
      computedAt: cores > 0 ? now : before.computedAt,
      priority,
      idleUntil: moveRenderer(pid, isInTheWay, now, before.idleUntil),
    });
    // Setting the priority fails if the process has ended, or if the account is not allowed to raise the priority
    // again.
    if (priority !== before.priority) setThreadPriorities(pid, priority).catch(() => {});
  }
}
