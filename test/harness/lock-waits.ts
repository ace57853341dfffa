/** Waits until a statement waits for a lock in the database. */
import type { DataSource } from "typeorm";
import { rows } from "../../src/data/database.js";
import { until } from "./until.js";

const COUNT_LOCK_WAITS =
  "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/** Returns the number of statements in the database of `db` that wait for a lock. */
export async function countLockWaits(db: DataSource): Promise<number> {
  const [{ count }] = (await rows<{ count: number }>(db, COUNT_LOCK_WAITS)) as [{ count: number }];
  return count;
}

/** Resolves as soon as a statement in the database of `db` waits for a lock, or `request` ends without such a wait. */
export async function untilLockWait(db: DataSource, request: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  request.then(end, end);
  await until(async () => hasEnded || (await countLockWaits(db)) > 0);
}
