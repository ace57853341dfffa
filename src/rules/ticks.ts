/** Computes the due ticks of a schedule. Ticks that are late by up to a minute still start a run; older ones were missed. */
import { createHash } from "node:crypto";
import { nextRuns } from "./schedule.js";

/** Delay after which a due tick no longer starts a run. */
export const TICK_LATE_MS = 60_000;

/** Maximum number of missed ticks of a schedule that get an entry each. All others share one entry. */
export const MISSED_LISTED_MAX = 100;
/** Maximum number of missed ticks that are counted. A tick takes 50 µs to compute, and months of ticks may be due. */
export const MISSED_COUNTED_MAX = 1_000;

/** Stored next tick of a schedule that never fires again. */
const FAR_FUTURE = new Date("9999-12-31T00:00:00Z");

export interface MissedTicks {
  tick: Date;
  /** Number of missed ticks, starting with `tick`. */
  count: number;
  /** True if more ticks were missed than `count`. */
  atLeast: boolean;
}

export interface DueTicks {
  /** Ticks that are too late, the oldest first. */
  missed: MissedTicks[];
  /** Ticks that still start a run: at most two. */
  current: Date[];
  /** The first tick after now. */
  next: Date;
}

export function nextTick(frequency: string, timezone: string, from: Date): Date {
  return nextRuns(frequency, timezone, from, 1)[0] ?? FAR_FUTURE;
}

/**
 * Returns the delay in milliseconds between a tick and its run. It is the same for all ticks of an action, and is spread
 * evenly over the actions.
 * @param jitterSeconds maximum delay in seconds; null for none
 */
export function jitterOffset(actionId: number, jitterSeconds: number | null): number {
  const digest = createHash("sha256").update(`jitter of ${actionId}`).digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * ((jitterSeconds ?? 0) * 1_000 + 1));
}

/** Returns the due ticks of a schedule, from its stored next tick until `now`. */
export function dueTicks(frequency: string, timezone: string, storedTick: Date, now: Date): DueTicks {
  const tickAfter = (tick: Date) => nextTick(frequency, timezone, tick);
  const inTime = now.getTime() - TICK_LATE_MS;
  const missed: MissedTicks[] = [];
  let tick = storedTick;
  for (; tick.getTime() < inTime && missed.length < MISSED_LISTED_MAX; tick = tickAfter(tick)) {
    missed.push({ tick, count: 1, atLeast: false });
  }
  if (tick.getTime() < inTime) {
    const first = tick;
    let count = 0;
    for (; tick.getTime() < inTime && count < MISSED_COUNTED_MAX; tick = tickAfter(tick)) count += 1;
    const atLeast = tick.getTime() < inTime;
    if (atLeast) tick = tickAfter(new Date(inTime - 1));
    missed.push({ tick: first, count, atLeast });
  }
  const current: Date[] = [];
  for (; tick <= now; tick = tickAfter(tick)) current.push(tick);
  return { missed, current, next: tick };
}
