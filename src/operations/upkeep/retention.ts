/**
 * Removes execution logs, log events, finished runs and their tokens when they are older than LOG_RETENTION_DAYS. Keeps
 * the newest rows of each app where age does not decide. Removes replaced values of settings after an hour. Drops whole
 * partitions, and deletes other rows in small batches, so that no statement waits for it.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import {
  ACCOUNT_EVENTS_KEPT,
  AUDIT_ENTRIES_KEPT,
  HTTP_EVENTS_KEPT,
  IDEMPOTENCY_BYTES_KEPT,
  IDEMPOTENCY_HOURS,
  MESSAGE_BYTES_KEPT,
  NOTIFICATIONS_KEPT,
  PAGE_SESSIONS_KEPT,
  PUSH_SUBSCRIPTIONS_KEPT,
  VERSION_BYTES_KEPT,
} from "../../limits.js";
import { ENTRIES_CHANGED } from "../../rules/entries/entry-events.js";
import { createPartitions } from "./partitions.js";

const BATCH = 1_000;
const EVERY_MS = 3_600_000;
const AHEAD_EVERY_MS = 60_000;

/*
 * $1 days, $2 the id below which partitions are dropped whole. Each statement returns the ids that it deleted;
 * concurrent cleaners share the work. Events are read from their lowest ids, so they need no index on their age. An
 * entry's payload belongs to its run, and a run's payload may belong to its event: each is deleted after the rows that
 * refer to it.
 */
const PARTITIONED_DELETES = [
  [
    "execution_log",
    `DELETE FROM execution_log WHERE id IN (
       SELECT id FROM execution_log WHERE id >= $2 AND created_at < now() - $1 * interval '1 day'
        ORDER BY created_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  ],
  [
    "run",
    `WITH gone AS (
       DELETE FROM run WHERE id IN (
         SELECT id FROM run WHERE id >= $2 AND finished_at < now() - $1 * interval '1 day'
            AND NOT EXISTS (SELECT FROM execution_log WHERE run_id = run.id)
          ORDER BY finished_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id),
     lines AS (DELETE FROM console_line USING gone WHERE run_id = gone.id),
     words AS (DELETE FROM run_search USING gone WHERE run_id = gone.id)
     SELECT id FROM gone`,
  ],
  [
    "log_event",
    `DELETE FROM log_event WHERE id IN (
       SELECT id FROM (SELECT id, created_at FROM log_event AS event
                        WHERE id >= $2 AND NOT EXISTS (SELECT FROM run WHERE event_id = event.id)
                        ORDER BY id LIMIT ${BATCH}) AS oldest
        WHERE created_at < now() - $1 * interval '1 day') RETURNING id`,
  ],
] as const;

/* $1 days. */
const BATCH_DELETES = [
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE kind = 'task' AND expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE revoked_at < now() - $1 * interval '1 day'
      ORDER BY revoked_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential JOIN person_session ON credential_id = id WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE OF credential SKIP LOCKED) RETURNING id`,
  `DELETE FROM one_time_link WHERE id IN (
     SELECT id FROM one_time_link WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  // Deletes access tokens of programs, then the secrets of their grants, then grants without secrets.
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE grant_id IS NOT NULL AND expires_at < now() - $1 * interval '1 day'
      ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM oauth_secret WHERE hash IN (
     SELECT hash FROM oauth_secret WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING hash`,
  `DELETE FROM oauth_grant WHERE id IN (
     SELECT id FROM oauth_grant WHERE created_at < now() - $1 * interval '1 day'
        AND NOT EXISTS (SELECT FROM oauth_secret WHERE oauth_secret.grant_id = oauth_grant.id)
      ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  // What a visitor has read is stored as long as visits are.
  `DELETE FROM notification_read WHERE ctid IN (
     SELECT ctid FROM notification_read WHERE reader LIKE 'credential:%' AND read_at < now() - $1 * interval '1 day'
      LIMIT ${BATCH}) RETURNING reader`,
  `DELETE FROM notification_read_all WHERE ctid IN (
     SELECT ctid FROM notification_read_all WHERE reader LIKE 'credential:%' AND read_at < now() - $1 * interval '1 day'
      LIMIT ${BATCH}) RETURNING reader`,
  `DELETE FROM message WHERE id IN (
     SELECT id FROM message WHERE status <> 'queued' AND created_at < now() - $1 * interval '1 day'
      ORDER BY created_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM alert_delivery WHERE ctid IN (
     SELECT ctid FROM alert_delivery WHERE status <> 'queued' AND created_at < now() - $1 * interval '1 day'
      LIMIT ${BATCH}) RETURNING id`,
];

/** SQL of the newest ID to delete so that $1 rows of each owner stay. The owner is an app unless `owner` is another expression. */
const newestId = (table: string, condition = "true", owner = "app_id") => `
  DELETE FROM ${table} WHERE id IN (
    SELECT old.id FROM (SELECT ${owner} AS id FROM ${table} WHERE ${condition} GROUP BY 1 HAVING count(*) > $1) AS full_owner
      CROSS JOIN LATERAL (SELECT id FROM ${table} WHERE ${owner} = full_owner.id AND ${condition}
                           ORDER BY id DESC OFFSET $1) AS old LIMIT ${BATCH}) RETURNING id`;

const NOT_FAILED = "type <> 'person.signInFailed'";

/* Each statement with its bound: rows or bytes of one app, or hours. */
const BOUNDED_DELETES: readonly (readonly [sql: string, bound: number])[] = [
  [
    `DELETE FROM run_key WHERE (action_id, credential_id, key) IN (
       SELECT action_id, credential_id, key FROM run_key WHERE created_at < now() - $1 * interval '1 hour'
        LIMIT ${BATCH}) RETURNING key`,
    IDEMPOTENCY_HOURS,
  ],
  [
    `DELETE FROM http_event WHERE ctid IN (
       SELECT ctid FROM http_event WHERE created_at < now() - $1 * interval '1 hour' LIMIT ${BATCH}) RETURNING run_id`,
    IDEMPOTENCY_HOURS,
  ],
  [
    `DELETE FROM http_event WHERE ctid IN (
       SELECT old.row_at FROM (SELECT action_id FROM http_event GROUP BY action_id HAVING count(*) > $1) AS full_action
        CROSS JOIN LATERAL (SELECT ctid AS row_at FROM http_event AS event WHERE event.action_id = full_action.action_id
                             ORDER BY created_at DESC OFFSET $1) AS old LIMIT ${BATCH}) RETURNING run_id`,
    HTTP_EVENTS_KEPT,
  ],
  // A program that writes many entries must not push out the records of changes to the app.
  [newestId("audit_entry", `type <> '${ENTRIES_CHANGED}'`), AUDIT_ENTRIES_KEPT],
  [newestId("audit_entry", `type = '${ENTRIES_CHANGED}'`), AUDIT_ENTRIES_KEPT],
  // Separate for each organization and account, so that many changes by one cannot push out the records of others.
  [newestId("access_event", `organization_id IS NOT NULL AND ${NOT_FAILED}`, "organization_id"), AUDIT_ENTRIES_KEPT],
  [
    newestId("access_event", `organization_id IS NULL AND ${NOT_FAILED}`, "coalesce(subject_id, 0)"),
    ACCOUNT_EVENTS_KEPT,
  ],
  // Failures have their own bound, so that guessing cannot push out the record of what people did.
  [
    `DELETE FROM access_event WHERE id IN (
       SELECT id FROM access_event WHERE type = 'person.signInFailed' ORDER BY id DESC OFFSET $1 LIMIT ${BATCH}) RETURNING id`,
    AUDIT_ENTRIES_KEPT,
  ],
  [newestId("credential", "page_session"), PAGE_SESSIONS_KEPT],
  [newestId("notification"), NOTIFICATIONS_KEPT],
  [newestId("push_subscription"), PUSH_SUBSCRIPTIONS_KEPT],
  [
    `DELETE FROM action_version WHERE id IN (
       SELECT id FROM (SELECT version.id, sum(pg_column_size(version.data)) OVER (PARTITION BY app_id ORDER BY version.id DESC) AS total
                         FROM action_version AS version JOIN action ON action.id = action_id) AS summed
        WHERE total > $1 LIMIT ${BATCH}) RETURNING id`,
    VERSION_BYTES_KEPT,
  ],
  [
    `DELETE FROM idempotency WHERE ctid IN (
       SELECT row_at FROM (SELECT ctid AS row_at,
                                  sum(pg_column_size(answer)) OVER (PARTITION BY app_id ORDER BY created_at DESC) AS total
                             FROM idempotency) AS summed
        WHERE total > $1 LIMIT ${BATCH}) RETURNING key`,
    IDEMPOTENCY_BYTES_KEPT,
  ],
  [
    `DELETE FROM message WHERE id IN (
       SELECT id FROM (SELECT id, sum(bytes) OVER (PARTITION BY app_id ORDER BY id DESC) AS total
                         FROM message WHERE status <> 'queued') AS summed
        WHERE total > $1 LIMIT ${BATCH}) RETURNING id`,
    MESSAGE_BYTES_KEPT,
  ],
];

/*
 * $1 hours. Searches no longer find runs that began before the newest deleted row, so the app records that time. The
 * app is locked first, as by a change of settings.
 */
const REPLACED_SETTINGS = `
  WITH stale AS (
    SELECT id FROM app
     WHERE id IN (SELECT app_id FROM replaced_setting WHERE replaced_at < now() - $1 * interval '1 hour')
     LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED),
  dropped AS (
    DELETE FROM replaced_setting USING stale
     WHERE app_id = stale.id AND replaced_at < now() - $1 * interval '1 hour' RETURNING app_id, version)
  UPDATE app SET secrets_forgotten = greatest(secrets_forgotten, last)
    FROM (SELECT app_id, max(version) AS last FROM dropped GROUP BY app_id) AS forgotten
   WHERE app.id = forgotten.app_id RETURNING app.id`;
const REPLACED_HOURS = 1;

/* Trace contexts of runs that were never executed. */
const RUN_TRACES = "DELETE FROM run_trace WHERE created_at < now() - interval '1 day'";

/* Rows of processes that ended long ago have no use. */
const DEAD_INSTANCES = "DELETE FROM instance WHERE lease_until < now() - interval '1 day'";

export interface DataRetention {
  /** Frees disk space for new rows. Returns the Unix time in milliseconds of the next call. */
  makeAhead(): Promise<number>;
  /** Deletes all rows that are too old. Returns the Unix time in milliseconds of the next call. */
  clean(): Promise<number>;
  /** Stops a running cleanup after its current batch. */
  stop(): void;
}

export function createRetention({ db, days }: { db: DataSource; days: number }): DataRetention {
  let isStopped = false;
  const partitions = createPartitions({ db, days });

  /** Deletes batch by batch until no row is left. */
  async function dropAll(batch: string, ...bounds: number[]): Promise<void> {
    let droppedRows = BATCH;
    while (droppedRows === BATCH && !isStopped) droppedRows = (await rows(db, batch, bounds)).length;
  }

  return {
    async makeAhead() {
      await partitions.makeAhead();
      return Date.now() + AHEAD_EVERY_MS;
    },
    async clean() {
      await partitions.dropOld();
      for (const [table, batch] of PARTITIONED_DELETES) await dropAll(batch, days, await partitions.wholeBelow(table));
      for (const batch of BATCH_DELETES) await dropAll(batch, days);
      for (const [batch, bound] of BOUNDED_DELETES) await dropAll(batch, bound);
      await dropAll(REPLACED_SETTINGS, REPLACED_HOURS);
      if (!isStopped) await db.query(DEAD_INSTANCES);
      if (!isStopped) await db.query(RUN_TRACES);
      return Date.now() + EVERY_MS;
    },
    stop() {
      isStopped = true;
    },
  };
}
