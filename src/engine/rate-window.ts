/** Counts accepted calls in a sliding window kept in the database, exact over any span and any number of processes. Knows no limits' meaning. */
import type { DataSource } from "typeorm";
import { RATE_WINDOW_MS } from "../limits.js";

export interface RateAnswer {
  accepted: boolean;
  remaining: number;
  /** When the next call will be accepted, or when a place of a full window frees. */
  nextAt: Date;
}

/*
 * The row lock serialises callers of one app and class. `clock_timestamp()` is read under that lock, so the hits are in order;
 * the window keeps the newest `limit` hits, and a call is accepted when the oldest of them has left it.
 * A refused call writes nothing.
 */
const TAKE = `
  INSERT INTO rate_window AS w (app_id, class, hits) VALUES ($1, $2, ARRAY[clock_timestamp()])
  ON CONFLICT (app_id, class) DO UPDATE
    SET hits = (w.hits || clock_timestamp())[greatest(1, cardinality(w.hits) + 2 - $3::int) :]
    WHERE cardinality(w.hits) < $3::int
       OR w.hits[cardinality(w.hits) + 1 - $3::int] <= clock_timestamp() - $4::int * interval '1 millisecond'
  RETURNING hits`;

const LOOK = `SELECT hits[greatest(1, cardinality(hits) + 1 - $3::int)] + $4::int * interval '1 millisecond' AS next_at
  FROM rate_window WHERE app_id = $1 AND class = $2`;

export interface RateWindow {
  /** Counts one call of `limit` per window for (appId, rateClass), or refuses it. */
  take(appId: number, rateClass: string, limit: number): Promise<RateAnswer>;
}

export function createRateWindow(db: DataSource): RateWindow {
  return {
    async take(appId, rateClass, limit) {
      const parameters = [appId, rateClass, limit, RATE_WINDOW_MS];
      const [row]: { hits: Date[] }[] = await db.query(TAKE, parameters);
      if (row) {
        const newest = row.hits.at(-1)!.getTime();
        const counted = row.hits.filter((hit) => hit.getTime() > newest - RATE_WINDOW_MS);
        return {
          accepted: true,
          remaining: limit - counted.length,
          nextAt: counted.length < limit ? new Date(newest) : new Date(counted[0]!.getTime() + RATE_WINDOW_MS),
        };
      }
      const [look]: { next_at: Date }[] = await db.query(LOOK, parameters);
      return { accepted: false, remaining: 0, nextAt: look?.next_at ?? new Date() };
    },
  };
}
