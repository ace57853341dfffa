/**
 * Computes the due ticks (planned start times) of a schedule. A tick starts a run if it is at most a minute late; older ticks are missed.
 */
import { createHash } from "node:crypto";
import { computeNextTicks } from "./schedule.js";

/** Maximum milliseconds by which a planned run may start late. After that, it is not started. */
export const TICK_MAX_LATENESS_MS = 60_000;

/** Maximum number of missed start times of a schedule that get a separate log entry each. The later ones share one entry. */
export const LISTED_MISSED_TICKS_MAX = 100;
/** Maximum count in this shared entry. Counting a missed start time takes 50 µs, and a schedule may miss months of start times. */
export const COUNTED_MISSED_TICKS_MAX = 1_000;

/** Stored as the next start time of a schedule that never starts a run again. */
const FAR_FUTURE = new Date("9999-12-31T00:00:00Z");

export interface MissedTicks {
  tick: Date;
  /** Number of consecutive missed start times, of which `tick` is the first. */
  count: number;
  /** True if there may be more than `count` missed start times, because counting stopped at the maximum. */
  isMinimum: boolean;
}

export interface DueTicks {
  /** Planned start times that are too long ago, the oldest first. */
  missed: MissedTicks[];
  /** Planned start times that still start a run, because they are at most a minute ago. */
  current: Date[];
  next: Date;
}

export function computeNextTick(frequency: string, timezone: string, from: Date): Date {
  return computeNextTicks(frequency, timezone, from, 1)[0] ?? FAR_FUTURE;
}

/**
 * Returns the delay of an action's scheduled runs in milliseconds. All runs of the action have the same delay; those of different actions
 * are spread evenly.
 * @param jitterSeconds maximum delay in seconds; null for none
 */
export function computeJitterDelayMs(actionId: number, jitterSeconds: number | null): number {
  const digest = createHash("sha256").update(`jitter of ${actionId}`).digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * ((jitterSeconds ?? 0) * 1_000 + 1));
}

/** Returns the planned start times of a schedule from `storedTick` to `now`, and the next one after `now`. */
export function computeDueTicks(frequency: string, timezone: string, storedTick: Date, now: Date): DueTicks {
  const computeTickAfter = (tick: Date) => computeNextTick(frequency, timezone, tick);
  const lateBeforeMs = now.getTime() - TICK_MAX_LATENESS_MS;
  const missed: MissedTicks[] = [];
  let tick = storedTick;
  for (; tick.getTime() < lateBeforeMs && missed.length < LISTED_MISSED_TICKS_MAX; tick = computeTickAfter(tick)) {
    missed.push({ tick, count: 1, isMinimum: false });
  }
  if (tick.getTime() < lateBeforeMs) {
    const first = tick;
    let count = 0;
    for (; tick.getTime() < lateBeforeMs && count < COUNTED_MISSED_TICKS_MAX; tick = computeTickAfter(tick)) count += 1;
    const isMinimum = tick.getTime() < lateBeforeMs;
    if (isMinimum) tick = computeTickAfter(new Date(lateBeforeMs - 1));
    missed.push({ tick: first, count, isMinimum });
  }
  const current: Date[] = [];
  for (; tick <= now; tick = computeTickAfter(tick)) current.push(tick);
  return { missed, current, next: tick };
}
