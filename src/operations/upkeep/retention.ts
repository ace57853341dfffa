/** Drops what is older than LOG_RETENTION_DAYS: execution logs, log events, finished runs, their tokens. In small batches, so that nobody waits for it. */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";

const BATCH = 1_000;
const EVERY_MS = 3_600_000;

/*
 * $1 days. Each returns the ids that it dropped; several cleaners at once share the work.
 * Events are taken from the low end of their ids: they need no index of their age. An entry's payload is its run's and a run's may
 * be its event's: each goes after what refers to it.
 */
const BATCHES = [
  `DELETE FROM execution_log WHERE id IN (
     SELECT id FROM execution_log WHERE created_at < now() - $1 * interval '1 day'
      ORDER BY created_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM run WHERE id IN (
     SELECT id FROM run WHERE finished_at < now() - $1 * interval '1 day'
        AND NOT EXISTS (SELECT FROM execution_log WHERE run_id = run.id)
      ORDER BY finished_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM log_event WHERE id IN (
     SELECT id FROM (SELECT id, created_at FROM log_event AS event
                      WHERE NOT EXISTS (SELECT FROM run WHERE event_id = event.id) ORDER BY id LIMIT ${BATCH}) AS oldest
      WHERE created_at < now() - $1 * interval '1 day') RETURNING id`,
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE kind = 'task' AND expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
];

/* The dead are buried long before; their rows are only in the way. */
const DEAD_INSTANCES = "DELETE FROM instance WHERE lease_until < now() - interval '1 day'";

export interface Retention {
  /** Drops all that is too old. Answers with the Unix time in milliseconds at which to come again. */
  clean(): Promise<number>;
  /** Ends a cleaning under way after its batch. */
  stop(): void;
}

export function createRetention({ db, days }: { db: DataSource; days: number }): Retention {
  let stopped = false;

  return {
    async clean() {
      for (const batch of BATCHES) {
        let dropped = BATCH;
        while (dropped === BATCH && !stopped) dropped = (await rows(db, batch, [days])).length;
      }
      if (!stopped) await db.query(DEAD_INSTANCES);
      return Date.now() + EVERY_MS;
    },
    stop() {
      stopped = true;
    },
  };
}
