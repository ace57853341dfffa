/** Computes the due ticks of a schedule: those that still start a run, and those that were missed. */
import { createHash } from "node:crypto";
import { nextRuns } from "./schedule.js";

/** Delay in milliseconds after which a found tick is skipped instead of run. */
export const TICK_LATE_MS = 60_000;

/** Maximum number of missed ticks of a schedule that get their own entry after a pause. The remaining ones share one entry. */
export const MISSED_LISTED = 100;
/** Maximum number of missed ticks that are counted, because a computed tick costs 50 µs and a pause may have lasted for months. */
export const MISSED_COUNTED = 1_000;

/** Next tick of a schedule that never fires again. */
const FAR_FUTURE = new Date("9999-12-31T00:00:00Z");

export interface MissedTicks {
  tick: Date;
  /** Number of missed ticks, starting with `tick`. */
  count: number;
  /** True if more ticks were missed than `count`. */
  atLeast: boolean;
}

export interface OwedTicks {
  /** Ticks that are too late, the oldest first. */
  missed: MissedTicks[];
  /** Ticks that are not too late: at most the two of the current minute. */
  current: Date[];
  /** The first tick after now. */
  next: Date;
}

export function nextTick(frequency: string, timezone: string, from: Date): Date {
  return nextRuns(frequency, timezone, from, 1)[0] ?? FAR_FUTURE;
}

/**
 * Returns the delay in milliseconds between the ticks of an action and its scheduled runs. It is the same for each tick of an action, and
 * spread evenly over the actions.
 * @param jitterSeconds maximum that the author of the action allows; null for none
 */
export function jitterOffset(actionId: number, jitterSeconds: number | null): number {
  const digest = createHash("sha256").update(`jitter of ${actionId}`).digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * ((jitterSeconds ?? 0) * 1_000 + 1));
}

/** Returns the due ticks from `waiting`, the next tick that the schedule has stored, until `now`. */
export function ticksOwed(frequency: string, timezone: string, waiting: Date, now: Date): OwedTicks {
  const tickAfter = (tick: Date) => nextTick(frequency, timezone, tick);
  const inTime = now.getTime() - TICK_LATE_MS;
  const missed: MissedTicks[] = [];
  let tick = waiting;
  for (; tick.getTime() < inTime && missed.length < MISSED_LISTED; tick = tickAfter(tick)) {
    missed.push({ tick, count: 1, atLeast: false });
  }
  if (tick.getTime() < inTime) {
    const first = tick;
    let count = 0;
    for (; tick.getTime() < inTime && count < MISSED_COUNTED; tick = tickAfter(tick)) count += 1;
    const atLeast = tick.getTime() < inTime;
    if (atLeast) tick = tickAfter(new Date(inTime - 1));
    missed.push({ tick: first, count, atLeast });
  }
  const current: Date[] = [];
  for (; tick <= now; tick = tickAfter(tick)) current.push(tick);
  return { missed, current, next: tick };
}
