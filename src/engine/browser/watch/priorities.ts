/**
 * Lowers the priority of renderers that compute much, so that other runs, the service and its database are served first. Uses priorities, and
 * the idle group if the kernel allows it. Without root there is no such group, and a lowered priority stays until the process ends.
 */

import { readdir } from "node:fs/promises";
import { setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { moveToIdleGroup, moveToServiceGroup } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Priority of the browser's own processes, and of renderers that compute little. */
export const BROWSER_PRIORITY = 5;
/** Priorities by the number of cores that a renderer keeps busy. A thread with priority 5 has the weight of twenty threads with 19. */
const PRIORITY_BY_BUSY_CORES: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/** Number of busy cores from which a renderer moves to the idle group, while other renderers compute as well. */
const IDLE_CORES = 0.5;
/**
 * Milliseconds after which a renderer leaves the idle group, if it has computed less or no other renderer has computed.
 * After a shorter time, renderers would leave that only got no processor time.
 */
const IDLE_MS = 2_000;
/** Window of the measurement in milliseconds. A shorter run cannot delay other runs much. */
const WINDOW_MS = 150;
/** Window for renderers with several busy threads, which delay others sooner. Ordinary code does not have them. */
const THREADS_WINDOW_MS = 40;
/** Number of busy cores that count in the short window; with many new threads the lower number is enough. */
const THREADS_CORES = 1.2;
const CROWDED_CORES = 0.15;
const MORE_THREADS = 8;

type Renderer = Pick<MeasuredProcess, "pid" | "spent" | "threads">;

/** The last measurement of a renderer. */
interface Measurement {
  at: number;
  spent: number;
  /** Lowest number of threads that was measured so far. */
  threads: number;
  /** Time of its last measured computation. */
  computedAt: number;
  priority: number;
  /** Time until which the renderer stays in the idle group; 0 if it is not in the group. */
  idleUntil: number;
}

/** Returns the priority of a renderer with this many busy cores. */
export function priorityOf(cores: number): number {
  return PRIORITY_BY_BUSY_CORES.find(([least]) => cores >= least)?.[1] ?? BROWSER_PRIORITY;
}

/** Sets the priority of all threads. A new thread inherits that of its creator. */
async function setAll(pid: number, priority: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
}

/** Moves a renderer to the idle group or back. @returns its new `idleUntil` */
function moveRenderer(pid: number, isInTheWay: boolean, now: number, idleUntil: number): number {
  if (isInTheWay) {
    if (idleUntil === 0) runInBackground(moveToIdleGroup(pid));
    return now + IDLE_MS;
  }
  if (idleUntil === 0 || now < idleUntil) return idleUntil;
  runInBackground(moveToServiceGroup(pid));
  return 0;
}

export class Priorities {
  private readonly measurements = new Map<number, Measurement>();

  /** Sets the priority of each renderer by the processor time that it has used since the last call. */
  update(renderers: readonly Renderer[]): void {
    const present = new Set(renderers.map(({ pid }) => pid));
    for (const pid of this.measurements.keys()) if (!present.has(pid)) this.measurements.delete(pid);
    const at = performance.now();
    for (const renderer of renderers) this.updateOne(renderer, at);
  }

  private anotherComputes(pid: number, now: number): boolean {
    return [...this.measurements].some(([other, { computedAt }]) => other !== pid && now - computedAt < IDLE_MS);
  }

  private updateOne({ pid, spent, threads }: Renderer, now: number): void {
    const before = this.measurements.get(pid);
    if (before === undefined) {
      const idle = { computedAt: -IDLE_MS, priority: BROWSER_PRIORITY, idleUntil: 0 };
      this.measurements.set(pid, { at: now, spent, threads, ...idle });
      return;
    }
    const cores = (spent - before.spent) / (now - before.at);
    const hasMore = threads >= before.threads + MORE_THREADS;
    if (now - before.at < (cores >= THREADS_CORES || hasMore ? THREADS_WINDOW_MS : WINDOW_MS)) return;
    const priority = priorityOf(cores);
    const isInTheWay = cores >= (hasMore ? CROWDED_CORES : IDLE_CORES) && this.anotherComputes(pid, now);
    this.measurements.set(pid, {
      at: now,
      spent,
      threads: Math.min(threads, before.threads),
      computedAt: cores > 0 ? now : before.computedAt,
      priority,
      idleUntil: moveRenderer(pid, isInTheWay, now, before.idleUntil),
    });
    // This fails if the process has ended, or if the account may not raise the priority again.
    if (priority !== before.priority) setAll(pid, priority).catch(() => {});
  }
}
