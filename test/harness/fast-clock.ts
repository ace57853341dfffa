/**
 * A clock that runs `rate` times as fast as the real one from `began` on, the same in every process with both arguments. It starts three
 * days back, so that it stays behind the database's clock: schedules write no tick before that clock has reached it.
 */
import type { Clock } from "../../src/service/plan.js";

export const BACK_MS = 3 * 24 * 3_600_000;

export function fastClock(began: number, rate: number): Clock {
  const now = () => began - BACK_MS + (Date.now() - began) * rate;
  return { now, msUntil: (time) => (time - now()) / rate };
}
