/**
 * Lowers the priority of renderers that compute much, so that other runs, the service and its database are served first. Uses priorities, and
 * the idle group if the kernel allows it. Without root there is no such group, and a lowered priority stays until the process ends.
 */

import { readdir } from "node:fs/promises";
import { setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { putIdle, takeFromIdle } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Priority of the browser's own processes, and of renderers that compute little. */
export const BROWSER_PRIORITY = 5;
/** Priorities by the number of busy cores. A thread at 5 weighs as much as twenty at 19. */
const BUSY: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/** Number of busy cores from which a renderer moves to the idle group, while other renderers compute as well. */
const IDLE_CORES = 0.5;
/** It moves back when it has computed less, or alone, for this long. A shorter time would return renderers that are only starved. */
const IDLE_MS = 2_000;
/** Window of the measurement. A shorter run cannot delay others much. */
const WINDOW_MS = 150;
/** Window for several busy threads, which delay others sooner and which ordinary code does not have. */
const THREADS_WINDOW_MS = 40;
/** Number of busy cores for the short window; with many new threads the lower number is enough. */
const THREADS_CORES = 1.2;
const CROWDED_CORES = 0.15;
const MORE_THREADS = 8;

type Renderer = Pick<MeasuredProcess, "pid" | "spent" | "threads">;

interface Seen {
  at: number;
  spent: number;
  /** Minimum number of threads so far. */
  threads: number;
  /** Time of its last measured computation. */
  computedAt: number;
  priority: number;
  /** End of its time in the idle group; 0 if it is not there. */
  idleUntil: number;
}

/** Priority of a renderer with this many busy cores. */
export function priorityOf(cores: number): number {
  return BUSY.find(([least]) => cores >= least)?.[1] ?? BROWSER_PRIORITY;
}

/** Sets the priority of all threads. A new thread inherits that of its creator. */
async function setAll(pid: number, priority: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
}

/** Moves a renderer to the idle group or back. @returns its new `idleUntil` */
function idleUntil(pid: number, isInTheWay: boolean, at: number, until: number): number {
  if (isInTheWay) {
    if (until === 0) runInBackground(putIdle(pid));
    return at + IDLE_MS;
  }
  if (until === 0 || at < until) return until;
  runInBackground(takeFromIdle(pid));
  return 0;
}

export function createPriorities(): { look(renderers: readonly Renderer[]): void } {
  const seen = new Map<number, Seen>();

  const anotherComputes = (pid: number, at: number) =>
    [...seen].some(([other, { computedAt }]) => other !== pid && at - computedAt < IDLE_MS);

  function lookAt({ pid, spent, threads }: Renderer, at: number): void {
    const before = seen.get(pid) ?? {
      at,
      spent,
      threads,
      computedAt: -IDLE_MS,
      priority: BROWSER_PRIORITY,
      idleUntil: 0,
    };
    if (!seen.has(pid)) seen.set(pid, before);
    const cores = (spent - before.spent) / (at - before.at);
    const hasMore = threads >= before.threads + MORE_THREADS;
    if (at - before.at < (cores >= THREADS_CORES || hasMore ? THREADS_WINDOW_MS : WINDOW_MS)) return;
    const priority = priorityOf(cores);
    const isInTheWay = cores >= (hasMore ? CROWDED_CORES : IDLE_CORES) && anotherComputes(pid, at);
    const until = idleUntil(pid, isInTheWay, at, before.idleUntil);
    const computedAt = cores > 0 ? at : before.computedAt;
    const least = Math.min(threads, before.threads);
    seen.set(pid, { at, spent, threads: least, computedAt, priority, idleUntil: until });
    // Fails if the process has ended, or if the account may not raise the priority again.
    if (priority !== before.priority) setAll(pid, priority).catch(() => {});
  }

  return {
    look(renderers) {
      const present = new Set(renderers.map(({ pid }) => pid));
      for (const pid of seen.keys()) if (!present.has(pid)) seen.delete(pid);
      const at = performance.now();
      for (const renderer of renderers) lookAt(renderer, at);
    },
  };
}
