/** Inserts completed runs into the database, without executing them, for tests that search runs by a word. */
import type { TestService } from "./service.js";

/**
 * Inserts `count` runs that a search for `word` finds. Their queue times are one second apart, and the last one is now. Returns these
 * times, oldest first.
 */
export async function insertSearchedRuns(
  { db, appId }: TestService,
  { actionId, word, count }: { actionId: number; word: string; count: number },
): Promise<Date[]> {
  const stored: { time: Date }[] = await db.query(
    `WITH stored AS (
       INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at, finished_at)
       SELECT $1, $2, 'master', 'manual', '{}', 'completed', now() - ($4 - n) * interval '1 second', now()
         FROM generate_series(1, $4::int) AS n RETURNING id, app_id, queued_at),
     words AS (INSERT INTO run_search (run_id, words) SELECT id, svc_search_words(app_id, $3) FROM stored)
     SELECT queued_at AS time FROM stored ORDER BY id`,
    [appId, actionId, word, count],
  );
  return stored.map(({ time }) => time);
}

export const deleteStoredRuns = ({ db }: TestService, actionId: number) =>
  db.query("DELETE FROM run WHERE action_id = $1 AND started_at IS NULL", [actionId]);
