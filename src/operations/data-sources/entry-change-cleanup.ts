/** Deletes old records of changed entries, and old records of failed sign-ins, in small batches. */
import { type Db, rows } from "../../data/database.js";
import { APP_USER_SIGN_IN_WINDOW_SECONDS } from "../../limits.js";

const CLEANUP_INTERVAL_MS = 60_000;
const ROWS_PER_BATCH = 1_000;
/** Must be longer than POSITION_VALIDITY_MS (entry-positions.ts), so that each subscriber with a valid position can resume. */
const CHANGE_RETENTION_PERIOD = "15 minutes";

/**
 * Deletes a batch of old changes, and stores the ID of the newest deleted change in `forgotten`. Skips data sources whose counts another
 * transaction has locked: to wait for this lock could cause a deadlock.
 */
const DELETE_OLD_CHANGES = `
  WITH old AS MATERIALIZED (
    SELECT id, app_id, data_source_id, created_at FROM data_source_change
     WHERE created_at < now() - interval '${CHANGE_RETENTION_PERIOD}'
       AND created_at >= $1::timestamptz AND (created_at, id) > ($1::timestamptz, $2::bigint)
     ORDER BY created_at, id LIMIT ${ROWS_PER_BATCH}),
  tally AS MATERIALIZED (
    SELECT app_id, data_source_id FROM data_source_tally
     WHERE (app_id, data_source_id) IN (SELECT app_id, data_source_id FROM old) FOR NO KEY UPDATE SKIP LOCKED),
  locked AS MATERIALIZED (
    SELECT id, app_id, data_source_id FROM data_source_change
     WHERE id IN (SELECT old.id FROM old JOIN tally USING (app_id, data_source_id)) FOR UPDATE SKIP LOCKED),
  last AS (SELECT app_id, data_source_id, max(id) AS id FROM locked GROUP BY app_id, data_source_id),
  forgotten AS (
    UPDATE data_source_tally AS tally SET forgotten = greatest(forgotten, last.id) FROM last
     WHERE tally.app_id = last.app_id AND tally.data_source_id = last.data_source_id),
  deleted AS (DELETE FROM data_source_change USING locked WHERE data_source_change.id = locked.id)
  SELECT id, created_at::text AS "createdAt" FROM old ORDER BY created_at, id`;

const DELETE_OLD_FAILURES = `
  DELETE FROM app_user_failure WHERE id IN (
    SELECT id FROM app_user_failure WHERE created_at < now() - interval '${APP_USER_SIGN_IN_WINDOW_SECONDS} seconds'
     ORDER BY created_at LIMIT ${ROWS_PER_BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`;

export class EntryChangeCleanup {
  private isStopped = false;

  constructor(private readonly options: { db: Db }) {}

  private async deleteOldChanges(): Promise<void> {
    let last = { id: 0, createdAt: "-infinity" };
    while (!this.isStopped) {
      const batch = await rows<{ id: number; createdAt: string }>(this.options.db, DELETE_OLD_CHANGES, [
        last.createdAt,
        last.id,
      ]);
      if (batch.length < ROWS_PER_BATCH) return;
      last = batch.at(-1)!;
    }
  }

  private async deleteOldFailures(): Promise<void> {
    let deletedCount = ROWS_PER_BATCH;
    while (deletedCount === ROWS_PER_BATCH && !this.isStopped)
      deletedCount = (await rows(this.options.db, DELETE_OLD_FAILURES)).length;
  }

  /** Deletes old records. Returns the Unix time in milliseconds at which the next cleanup is due. */
  async clean(): Promise<number> {
    await this.deleteOldChanges();
    await this.deleteOldFailures();
    return Date.now() + CLEANUP_INTERVAL_MS;
  }

  stop(): void {
    this.isStopped = true;
  }
}
