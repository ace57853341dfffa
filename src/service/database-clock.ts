/**
 * Measures how far the database's clock differs from this machine's clock. Due times use the database's clock, so that processes on several
 * machines agree.
 */
import type { Logger } from "pino";
import { type Db, rows } from "../data/database.js";
import type { Clock } from "./plan.js";

export const CLOCK_SKEW_WARNING_MS = 2_000;
const MEASURE_INTERVAL_MS = 10_000;

export interface DatabaseClock {
  /** Milliseconds by which the database's clock is ahead of this machine's clock; 0 if the difference is smaller than the network delay. */
  getSkewMs(): number;
  /** Compares the clocks. Resolves to the Unix time in milliseconds of the next comparison. */
  measureSkew(): Promise<number>;
}

export function createDatabaseClock(options: { db: Db; log: Logger }): DatabaseClock {
  const { db, log } = options;
  let skewMs = 0;
  let hasWarned = false;

  return {
    getSkewMs: () => skewMs,
    async measureSkew() {
      const requestedAt = Date.now();
      const [row] = await rows<{ ms: number }>(db, "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms");
      const respondedAt = Date.now();
      const { ms } = row!;
      skewMs = ms < requestedAt ? ms - requestedAt : ms > respondedAt ? ms - respondedAt : 0;
      const isSkewed = Math.abs(skewMs) > CLOCK_SKEW_WARNING_MS;
      if (isSkewed && !hasWarned) {
        const seconds = Math.round(skewMs) / 1_000;
        log.warn(
          { databaseAheadSeconds: seconds },
          "this machine's clock differs from the database's; schedules follow the database's",
        );
      }
      if (!isSkewed && hasWarned) log.info("this machine's clock and the database's clock agree again");
      hasWarned = isSkewed;
      return respondedAt + MEASURE_INTERVAL_MS;
    },
  };
}

export function createSkewCorrectedClock(clock: Clock, getSkewMs: () => number): Clock {
  return { now: () => clock.now() + getSkewMs(), msUntil: (time) => clock.msUntil(time - getSkewMs()) };
}
