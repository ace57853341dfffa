/** Deletes changes that are too old for subscriptions to resume from, and expired sign-in failures, in small batches. */
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import { SIGN_IN_WINDOW_SECONDS } from "../../limits.js";

const EVERY_MS = 60_000;
const CHANGES_PER_BATCH = 1_000;
/** Time for which changes are stored; longer than a position is valid (entry-positions.ts). */
const CHANGES_KEPT_FOR = "15 minutes";

/**
 * Removes old changes. It first stores the position up to which they are removed, because subscriptions cannot resume from earlier
 * positions.
 */
const FORGET_CHANGES = `
  WITH old AS (
    SELECT id, app_id, data_source_id FROM data_source_change WHERE created_at < now() - interval '${CHANGES_KEPT_FOR}'
     ORDER BY created_at LIMIT ${CHANGES_PER_BATCH} FOR UPDATE SKIP LOCKED),
  last AS (SELECT app_id, data_source_id, max(id) AS id FROM old GROUP BY app_id, data_source_id ORDER BY app_id, data_source_id),
  told AS (
    UPDATE data_source_tally AS tally SET forgotten = greatest(forgotten, last.id) FROM last
     WHERE tally.app_id = last.app_id AND tally.data_source_id = last.data_source_id)
  DELETE FROM data_source_change USING old WHERE data_source_change.id = old.id RETURNING data_source_change.id`;

const FORGET_FAILURES = `
  DELETE FROM app_user_failure WHERE id IN (
    SELECT id FROM app_user_failure WHERE created_at < now() - interval '${SIGN_IN_WINDOW_SECONDS} seconds'
     ORDER BY created_at LIMIT ${CHANGES_PER_BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`;

export function createChangeUpkeep({ db }: { db: Database }) {
  let isStopped = false;

  async function dropAll(batch: string): Promise<void> {
    let droppedChanges = CHANGES_PER_BATCH;
    while (droppedChanges === CHANGES_PER_BATCH && !isStopped) droppedChanges = (await rows(db, batch)).length;
  }

  return {
    /** Removes old rows. Returns the Unix time in milliseconds of the next call. */
    async clean(): Promise<number> {
      await dropAll(FORGET_CHANGES);
      await dropAll(FORGET_FAILURES);
      return Date.now() + EVERY_MS;
    },
    /** Stops a running cleanup after its batch. */
    stop(): void {
      isStopped = true;
    },
  };
}
