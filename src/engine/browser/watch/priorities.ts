/**
 * Lets renderers that compute much go behind those that compute little, all of them behind the service and its database: by
 * priority, and behind everything where the kernel has a group for it. Knows pids and processor times, not pages. Where the service is
 * not root, there is no such group, and one that has gone behind stays there until it ends.
 */

import { readdir } from "node:fs/promises";
import { setPriority } from "node:os";
import { runInBackground } from "../../../background.js";
import { putIdle, takeFromIdle } from "./idle-group.js";
import type { MeasuredProcess } from "./processes.js";

/** Of the browser's own processes, and of renderers that compute little. */
export const BROWSER_PRIORITY = 5;
/** Cores that a renderer keeps busy, and its priority then: a thread at 5 weighs as much as twenty at 19. */
const BUSY: readonly (readonly [cores: number, priority: number])[] = [
  [1, 19],
  [0.5, 15],
  [0.15, 10],
];
/** From here on it goes behind everything while other renderers compute as well: its threads together weigh a twentieth then. */
const IDLE_CORES = 0.5;
/** It comes back when it has not computed so much, or has been the only one, for so long; sooner, one that others starve would look calm. */
const IDLE_MS = 2_000;
/** Over so long: a run that ends sooner has no time to be in the way. */
const WINDOW_MS = 150;
/** Several threads that compute at once are in everybody's way much sooner, and no plain code has them. */
const THREADS_WINDOW_MS = 40;
/** They keep so much busy; where others do the same, less: then the process has so many more of them than ever before. */
const THREADS_CORES = 1.2;
const CROWDED_CORES = 0.15;
const MORE_THREADS = 8;

type Renderer = Pick<MeasuredProcess, "pid" | "spent" | "threads">;

interface Seen {
  at: number;
  spent: number;
  /** As few as it ever had. */
  threads: number;
  /** When it last computed at all. */
  computedAt: number;
  priority: number;
  /** Until when it computes behind everything; 0: among all others. */
  idleUntil: number;
}

/** The priority of a renderer that keeps so many cores busy. */
export function priorityOf(cores: number): number {
  return BUSY.find(([least]) => cores >= least)?.[1] ?? BROWSER_PRIORITY;
}

/** A priority is each thread's own; threads that come later have that of the thread that makes them. */
async function setAll(pid: number, priority: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) setPriority(Number(thread), priority);
}

/** Moves it where it belongs. @returns its `idleUntil` from now on */
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
    // It went by itself, or has gone behind for good.
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
