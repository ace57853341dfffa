/** Counts accepted calls in a sliding time window. The database stores them, so the limit is exact for all processes together. */
import type { EntityManager } from "typeorm";

export interface RateLimitDecision {
  accepted: boolean;
  remaining: number;
  /** Time at which the oldest call leaves the window. A full window accepts the next call at this time. */
  nextAcceptedAt: Date;
}

/** Current time, rounded up to milliseconds, the precision of JavaScript dates. So a call at `nextAcceptedAt` is accepted. */
const NOW_SQL = "date_trunc('milliseconds', clock_timestamp() + interval '999 microseconds')";
const INSERT_CALL_SQL = `
  INSERT INTO rate_window AS w (app_id, class, hits) VALUES ($1, $2, ARRAY[${NOW_SQL}])
  ON CONFLICT (app_id, class) DO UPDATE
    SET hits = (w.hits || greatest(w.hits[cardinality(w.hits)], ${NOW_SQL}))
               [greatest(1, cardinality(w.hits) + 2 - $3::int) :]
    WHERE cardinality(w.hits) < $3::int
       OR w.hits[cardinality(w.hits) + 1 - $3::int] <= clock_timestamp() - $4::int * interval '1 millisecond'
  RETURNING hits`;

const SELECT_OLDEST_CALL_SQL = `
  SELECT hits[greatest(1, cardinality(hits) + 1 - $3::int)] AS hit FROM rate_window WHERE app_id = $1 AND class = $2`;

const SELECT_CALL_COUNT_SQL = `
  SELECT count(*)::int AS hits FROM rate_window, unnest(hits) AS hit
   WHERE app_id = $1 AND class = $2 AND hit > clock_timestamp() - $3::int * interval '1 millisecond'`;

export interface RateWindow {
  /** Counts one call, or rejects it if the window is full. Each rate class of an app has its own window. */
  admitCall(
    appId: number,
    rateClass: string,
    { limit, windowMs }: { limit: number; windowMs: number },
  ): Promise<RateLimitDecision>;
  /** Returns the number of accepted calls in the window. */
  count(appId: number, rateClass: string, windowMs: number): Promise<number>;
}

export function createRateWindow(db: Pick<EntityManager, "query">): RateWindow {
  return {
    async admitCall(appId, rateClass, { limit, windowMs }) {
      const computeLeaveTime = (hit: Date): Date => new Date(hit.getTime() + windowMs);
      const parameters = [appId, rateClass, limit];
      const [row]: { hits: Date[] }[] = await db.query(INSERT_CALL_SQL, [...parameters, windowMs]);
      if (row) {
        const newest = row.hits.at(-1)!;
        const callsInWindow = row.hits.filter((hit) => computeLeaveTime(hit) > newest);
        return {
          accepted: true,
          remaining: limit - callsInWindow.length,
          nextAcceptedAt: computeLeaveTime(callsInWindow[0]!),
        };
      }
      const [oldest]: { hit: Date }[] = await db.query(SELECT_OLDEST_CALL_SQL, parameters);
      return { accepted: false, remaining: 0, nextAcceptedAt: oldest ? computeLeaveTime(oldest.hit) : new Date() };
    },

    async count(appId, rateClass, windowMs) {
      const [row]: { hits: number }[] = await db.query(SELECT_CALL_COUNT_SQL, [appId, rateClass, windowMs]);
      return row!.hits;
    },
  };
}
