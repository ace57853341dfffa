/**
 * Creates a clock for a service process. The clock runs `rate` times as fast as real time. Processes with the same arguments have the same
 * time. The clock starts three days in the past, so that it stays behind the database's clock.
 */
import type { Clock } from "../../src/service/plan.js";

export const CLOCK_BACK_MS = 3 * 24 * 3_600_000;

export function createFastClock(startTime: number, rate: number): Clock {
  const now = () => startTime - CLOCK_BACK_MS + (Date.now() - startTime) * rate;
  return { now, msUntil: (time) => (time - now()) / rate };
}
