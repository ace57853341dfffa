/**
 * Clock that runs `rate` times as fast as the real clock, starting at `began`. All processes with the same two arguments
 * have the same time. The clock starts three days in the past, so that it stays behind the database's clock, which
 * schedules wait for before they write a tick.
 */
import type { Clock } from "../../src/service/plan.js";

export const BACK_MS = 3 * 24 * 3_600_000;

export function fastClock(began: number, rate: number): Clock {
  const now = () => began - BACK_MS + (Date.now() - began) * rate;
  return { now, msUntil: (time) => (time - now()) / rate };
}
