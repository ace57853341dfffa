/** A clock that runs `rate` times as fast as the real one from `began` on: the same in every process that is told both. */
import type { Clock } from "../../src/service/plan.js";

export function fastClock(began: number, rate: number): Clock {
  const now = () => began + (Date.now() - began) * rate;
  return { now, msUntil: (time) => (time - now()) / rate };
}
