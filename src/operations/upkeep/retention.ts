/**
 * Deletes old data by dropping partitions and in small batches, so that no other statement waits for long. Most rows are deleted after
 * LOG_RETENTION_DAYS. Others, such as audit entries, have a maximum number or size per owner, for example per app.
 */
import type { Logger } from "pino";
import { deleteInBatches } from "../../data/batches.js";
import { type Db, rows } from "../../data/database.js";
import {
  ACTION_VERSIONS_PER_APP_MAX_BYTES,
  AUDIT_ENTRIES_PER_ACCOUNT_MAX,
  AUDIT_ENTRIES_PER_APP_MAX,
  HTTP_EVENT_IDS_PER_ACTION_MAX,
  IDEMPOTENCY_KEY_LIFETIME_HOURS,
  IDEMPOTENT_RESPONSES_PER_APP_MAX_BYTES,
  NOTIFICATIONS_PER_APP_MAX,
  PAGE_SESSIONS_PER_APP_MAX,
  PUSH_SUBSCRIPTIONS_PER_APP_MAX,
  SENT_MESSAGES_PER_APP_MAX_BYTES,
  VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX,
} from "../../limits.js";
import { ENTRIES_CHANGED_AUDIT_TYPE } from "../../rules/entries/entry-events.js";
import { TOOL_CALL_AUDIT_TYPE } from "../access/tool-calls.js";
import { IS_VISITOR_READER_SQL } from "../notifications/reader.js";
import { Partitions } from "./partitions.js";
import { createFailureSkipper, type SkipFailure } from "./skipped-failures.js";

const BATCH_SIZE = 1_000;
const CLEAN_INTERVAL_MS = 3_600_000;
const CREATE_PARTITIONS_INTERVAL_MS = 60_000;

/**
 * Statements that delete old rows from partitions that will not be dropped soon. The order matters: log entries refer to runs, and runs to
 * events.
 */
const PARTITIONED_DELETES = [
  [
    "execution_log",
    `DELETE FROM execution_log WHERE id IN (
       SELECT id FROM execution_log WHERE id >= $2 AND created_at < now() - $1 * interval '1 day'
        ORDER BY created_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING id`,
  ],
  [
    "run",
    `WITH gone AS (
       DELETE FROM run WHERE id IN (
         SELECT id FROM run WHERE id >= $2 AND finished_at < now() - $1 * interval '1 day'
            AND NOT EXISTS (SELECT FROM execution_log WHERE run_id = run.id)
          ORDER BY finished_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING id),
     lines AS (DELETE FROM console_line USING gone WHERE run_id = gone.id),
     words AS (DELETE FROM run_search USING gone WHERE run_id = gone.id)
     SELECT id FROM gone`,
  ],
  [
    "log_event",
    `DELETE FROM log_event WHERE id IN (
       SELECT id FROM (SELECT id, created_at FROM log_event AS event
                        WHERE id >= $2 AND NOT EXISTS (SELECT FROM run WHERE event_id = event.id)
                        ORDER BY id LIMIT $3) AS oldest
        WHERE created_at < now() - $1 * interval '1 day') RETURNING id`,
  ],
] as const;

/** Rows with the app ID 0 belong to no app. */
const createAppGoneCondition = (table: string) =>
  `${table}.app_id > 0 AND NOT EXISTS (SELECT FROM app WHERE app.id = ${table}.app_id)`;

/* Statements that delete rows by age. $1 is the number of days. */
const BATCH_DELETES = [
  // Credentials are tokens and sessions. Expired access tokens of OAuth programs must be deleted before their grants.
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM credential WHERE id IN (
     SELECT id FROM credential WHERE revoked_at < now() - $1 * interval '1 day'
      ORDER BY revoked_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM one_time_link WHERE id IN (
     SELECT id FROM one_time_link WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
  // Deletes expired codes and refresh tokens first, then the grants that have no code or token left.
  `DELETE FROM oauth_secret WHERE hash IN (
     SELECT hash FROM oauth_secret WHERE expires_at < now() - $1 * interval '1 day'
      ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING hash`,
  `DELETE FROM oauth_grant WHERE id IN (
     SELECT id FROM oauth_grant WHERE created_at < now() - $1 * interval '1 day'
        AND NOT EXISTS (SELECT FROM oauth_secret WHERE oauth_secret.grant_id = oauth_grant.id)
      ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM notification_read WHERE ctid IN (
     SELECT ctid FROM notification_read WHERE ${IS_VISITOR_READER_SQL} AND read_at < now() - $1 * interval '1 day'
      LIMIT $2) RETURNING reader`,
  `DELETE FROM notification_read_all WHERE ctid IN (
     SELECT ctid FROM notification_read_all WHERE ${IS_VISITOR_READER_SQL} AND read_at < now() - $1 * interval '1 day'
      LIMIT $2) RETURNING reader`,
  `DELETE FROM message WHERE id IN (
     SELECT id FROM message WHERE status <> 'queued' AND created_at < now() - $1 * interval '1 day'
      ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`,
  `DELETE FROM alert_delivery WHERE ctid IN (
     SELECT ctid FROM alert_delivery WHERE status <> 'queued' AND created_at < now() - $1 * interval '1 day'
      LIMIT $2) RETURNING id`,
];

/** Selects deleted apps that still have audit entries. Reads only one entry of each app, because an app can have many entries. */
const SELECT_GONE_APPS = `
  WITH RECURSIVE owner (id) AS (
    (SELECT app_id FROM audit_entry WHERE app_id > 0 ORDER BY app_id LIMIT 1)
    UNION ALL
    SELECT (SELECT app_id FROM audit_entry WHERE app_id > owner.id ORDER BY app_id LIMIT 1) FROM owner WHERE id IS NOT NULL)
  SELECT id FROM owner WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM app WHERE app.id = owner.id)`;
const DELETE_AUDIT_ENTRIES_OF_GONE_APP = `
  DELETE FROM audit_entry WHERE id IN (
    SELECT id FROM audit_entry WHERE app_id = $2 AND created_at < now() - $1 * interval '1 day'
     ORDER BY id LIMIT $3) RETURNING id`;

/** Rows with a maximum per owner, for example per app. The service keeps the newest rows of each owner, and deletes the others. */
interface RetainedRows {
  table: string;
  /** SQL source of the rows, with the columns of the table; by default, the table. */
  source?: string;
  /** SQL condition: only these rows count, and only these rows are deleted. */
  condition?: string;
  /** SQL expression for the ID of the owner; by default, the owner is the app. */
  owner?: string;
  /** SQL column that identifies a row; by default `id`. */
  row?: string;
  /** SQL column that orders the rows by age; by default `id`. */
  order?: string;
  /** SQL expression for the bytes of a row; by default, the number of rows counts. */
  bytes?: string;
  /** Number of rows or bytes that each owner keeps. */
  kept: number;
}

/** Returns SQL that selects the owners with more than $1 rows or bytes. */
const createFullOwnersSql = ({ table, source = table, condition = "true", owner = "app_id", bytes }: RetainedRows) => `
  SELECT ${owner} AS id FROM ${source} WHERE ${condition} GROUP BY 1 HAVING ${bytes ? `sum(${bytes})` : "count(*)"} > $1`;

/** Returns SQL that selects the highest value of `order` to delete. $1 is the owner, $2 the number of rows or bytes to keep. */
function createCutOffSql({
  table,
  source = table,
  condition = "true",
  owner = "app_id",
  order = "id",
  bytes,
}: RetainedRows) {
  const fromOwnerRowsSql = `FROM ${source} WHERE ${owner} = $1 AND ${condition}`;
  if (!bytes) return `SELECT ${order}::text AS "cutOff" ${fromOwnerRowsSql} ORDER BY ${order} DESC OFFSET $2 LIMIT 1`;
  return `
    SELECT position::text AS "cutOff"
      FROM (SELECT ${order} AS position, sum(${bytes}) OVER (ORDER BY ${order} DESC) AS total ${fromOwnerRowsSql}) AS summed
     WHERE total > $2 ORDER BY position DESC LIMIT 1`;
}

/** Returns SQL that deletes rows. $1 is the owner, $2 the highest value of `order` to delete, $3 the maximum number of rows. */
function createDeleteUpToSql(retainedRows: RetainedRows) {
  const { table, source = table, condition = "true", owner = "app_id", row = "id", order = "id" } = retainedRows;
  return `
    DELETE FROM ${table} WHERE ${row} IN (
      SELECT ${row} FROM ${source} WHERE ${owner} = $1 AND ${condition} AND ${order} <= $2 ORDER BY ${order} LIMIT $3) RETURNING ${row}`;
}

const IS_NOT_SIGN_IN_FAILURE = "type <> 'person.signInFailed'";

/* Statements that delete rows beyond a bound ($1): a number of hours or rows. */
const BOUNDED_DELETES: readonly (readonly [sql: string, bound: number])[] = [
  [
    `DELETE FROM run_key WHERE (action_id, credential_id, key) IN (
       SELECT action_id, credential_id, key FROM run_key WHERE created_at < now() - $1 * interval '1 hour'
        LIMIT $2) RETURNING key`,
    IDEMPOTENCY_KEY_LIFETIME_HOURS,
  ],
  [
    `DELETE FROM http_event WHERE ctid IN (
       SELECT ctid FROM http_event WHERE created_at < now() - $1 * interval '1 hour' LIMIT $2) RETURNING run_id`,
    IDEMPOTENCY_KEY_LIFETIME_HOURS,
  ],
  [
    `DELETE FROM http_event WHERE ctid IN (
       SELECT old.row_at FROM (SELECT action_id FROM http_event GROUP BY action_id HAVING count(*) > $1) AS full_action
        CROSS JOIN LATERAL (SELECT ctid AS row_at FROM http_event AS event WHERE event.action_id = full_action.action_id
                             ORDER BY created_at DESC OFFSET $1) AS old LIMIT $2) RETURNING run_id`,
    HTTP_EVENT_IDS_PER_ACTION_MAX,
  ],
  // Failed sign-ins have their own maximum, so that attempts to guess passwords do not displace the records of changes.
  [
    `DELETE FROM access_event WHERE id IN (
       SELECT id FROM access_event WHERE type = 'person.signInFailed' ORDER BY id DESC OFFSET $1 LIMIT $2) RETURNING id`,
    AUDIT_ENTRIES_PER_APP_MAX,
  ],
];

/** Audit entries that callers with few rights can write at will. Each group has its own maximum. */
const FREQUENT_AUDIT_TYPES: readonly (readonly string[])[] = [
  [ENTRIES_CHANGED_AUDIT_TYPE],
  [TOOL_CALL_AUDIT_TYPE],
  [
    ...["media.file.create", "media.file.update", "media.file.delete"],
    ...["media.folder.create", "media.folder.update", "media.folder.delete"],
    ...["app.notification.create", "app.notification.update", "app.notification.delete"],
    ...["app.grant.create", "app.grant.revoke", "app.runs.cancel", "app.schedules.pause", "app.schedules.resume"],
  ],
];
const createAuditTypeCondition = (types: readonly string[]) =>
  `type IN (${types.map((type) => `'${type}'`).join(", ")})`;
const IS_FREQUENT_AUDIT_TYPE = createAuditTypeCondition(FREQUENT_AUDIT_TYPES.flat());

const RETAINED_ROWS: readonly RetainedRows[] = [
  // Frequent entries have their own maximum, so that they do not displace other entries.
  { table: "audit_entry", condition: `NOT (${IS_FREQUENT_AUDIT_TYPE})`, kept: AUDIT_ENTRIES_PER_APP_MAX },
  ...FREQUENT_AUDIT_TYPES.map((types) => ({
    table: "audit_entry",
    condition: createAuditTypeCondition(types),
    kept: AUDIT_ENTRIES_PER_APP_MAX,
  })),
  // Each organization and account has its own maximum, so that many changes of one do not displace the records of others.
  {
    table: "access_event",
    condition: `organization_id IS NOT NULL AND ${IS_NOT_SIGN_IN_FAILURE}`,
    owner: "organization_id",
    kept: AUDIT_ENTRIES_PER_APP_MAX,
  },
  {
    table: "access_event",
    condition: `organization_id IS NULL AND ${IS_NOT_SIGN_IN_FAILURE}`,
    owner: "coalesce(subject_id, 0)",
    kept: AUDIT_ENTRIES_PER_ACCOUNT_MAX,
  },
  { table: "credential", condition: "page_session", kept: PAGE_SESSIONS_PER_APP_MAX },
  { table: "notification", kept: NOTIFICATIONS_PER_APP_MAX },
  {
    table: "action_version",
    source: `(SELECT version.id, version.data, app_id FROM action_version AS version JOIN action ON action.id = action_id) AS version`,
    bytes: "pg_column_size(data)",
    kept: ACTION_VERSIONS_PER_APP_MAX_BYTES,
  },
  {
    table: "idempotency",
    row: "ctid",
    order: "created_at",
    bytes: "pg_column_size(answer)",
    kept: IDEMPOTENT_RESPONSES_PER_APP_MAX_BYTES,
  },
  { table: "message", condition: "status <> 'queued'", bytes: "bytes", kept: SENT_MESSAGES_PER_APP_MAX_BYTES },
  // Devices of visitors have their own maximum, so that they do not displace devices of users.
  { table: "push_subscription", condition: `NOT (${IS_VISITOR_READER_SQL})`, kept: PUSH_SUBSCRIPTIONS_PER_APP_MAX },
  { table: "push_subscription", condition: IS_VISITOR_READER_SQL, kept: VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX },
];

/**
 * Deletes values of settings that were replaced more than $1 hours ago. Runs need replaced values to mask secrets. The app's row stores the
 * newest deleted version. A run that started with an older version fails, because it cannot mask the deleted values.
 */
const DELETE_REPLACED_SETTINGS = `
  WITH stale AS (
    SELECT id FROM app
     WHERE id IN (SELECT app_id FROM replaced_setting WHERE replaced_at < now() - $1 * interval '1 hour')
     LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED),
  dropped AS (
    DELETE FROM replaced_setting USING stale
     WHERE app_id = stale.id AND replaced_at < now() - $1 * interval '1 hour' RETURNING app_id, version)
  UPDATE app SET secrets_forgotten = greatest(secrets_forgotten, last)
    FROM (SELECT app_id, max(version) AS last FROM dropped GROUP BY app_id) AS forgotten
   WHERE app.id = forgotten.app_id RETURNING app.id`;
const REPLACED_SETTINGS_HOURS = 1;

const DELETE_COUNTS_OF_GONE_APPS = `DELETE FROM rate_window WHERE ${createAppGoneCondition("rate_window")}`;

const DELETE_DEAD_INSTANCES = "DELETE FROM instance WHERE lease_until < now() - interval '1 day'";

export interface DataRetention {
  /** Creates partitions before rows for them exist. Returns the time of the next call as Unix time in milliseconds. */
  createPartitionsAhead(): Promise<number>;
  /** Deletes rows that are too old, or above the maximum of their owner. Returns the time of the next call (Unix milliseconds). */
  clean(): Promise<number>;
  /** Makes `clean` stop after the batch that it is deleting now. */
  stop(): void;
}

export function createDataRetention(options: { db: Db; days: number; log: Pick<Logger, "warn"> }): DataRetention {
  const { db, days, log } = options;
  let isStopped = false;
  const partitions = new Partitions({ db, days });

  /** Executes `sql` until it deletes no more rows. Its last parameter is the maximum number of rows to delete at a time. */
  function deleteAll(sql: string, ...bounds: (number | string)[]): Promise<void> {
    return deleteInBatches(
      BATCH_SIZE,
      () => isStopped,
      async (limit) => (await rows(db, sql, [...bounds, limit])).length,
    );
  }

  async function deletePartitioned([table, sql]: (typeof PARTITIONED_DELETES)[number]): Promise<void> {
    await deleteAll(sql, days, await partitions.findEndOfExpiringPartitions(table));
  }

  async function deleteExcessRows(retainedRows: RetainedRows, owner: number): Promise<void> {
    const [oldest] = await rows<{ cutOff: string }>(db, createCutOffSql(retainedRows), [owner, retainedRows.kept]);
    if (oldest) await deleteAll(createDeleteUpToSql(retainedRows), owner, oldest.cutOff);
  }

  /** Calls `deleteOfOwner` for each owner. If the deletion for one owner fails, continues with the other owners. */
  async function deleteByOwner(
    skipFailure: SkipFailure,
    owners: Promise<{ id: number }[]>,
    deleteOfOwner: (owner: number) => Promise<void>,
  ): Promise<void> {
    for (const { id } of (await skipFailure(owners)) ?? []) if (!isStopped) await skipFailure(deleteOfOwner(id));
  }

  return {
    async createPartitionsAhead() {
      await partitions.createPartitionsAhead();
      return Date.now() + CREATE_PARTITIONS_INTERVAL_MS;
    },
    async clean() {
      const skipFailure = createFailureSkipper(log);
      await skipFailure(partitions.dropOldPartitions());
      for (const partitionedDelete of PARTITIONED_DELETES) await skipFailure(deletePartitioned(partitionedDelete));
      for (const batch of BATCH_DELETES) await skipFailure(deleteAll(batch, days));
      for (const [batch, bound] of BOUNDED_DELETES) await skipFailure(deleteAll(batch, bound));
      for (const retainedRows of RETAINED_ROWS) {
        if (isStopped) break;
        const owners = rows<{ id: number }>(db, createFullOwnersSql(retainedRows), [retainedRows.kept]);
        await deleteByOwner(skipFailure, owners, (owner) => deleteExcessRows(retainedRows, owner));
      }
      const deleteAuditEntries = (app: number) => deleteAll(DELETE_AUDIT_ENTRIES_OF_GONE_APP, days, app);
      if (!isStopped) await deleteByOwner(skipFailure, rows(db, SELECT_GONE_APPS), deleteAuditEntries);
      await skipFailure(deleteAll(DELETE_REPLACED_SETTINGS, REPLACED_SETTINGS_HOURS));
      if (!isStopped) await skipFailure(db.query(DELETE_DEAD_INSTANCES));
      if (!isStopped) await skipFailure(db.query(DELETE_COUNTS_OF_GONE_APPS));
      return Date.now() + CLEAN_INTERVAL_MS;
    },
    stop() {
      isStopped = true;
    },
  };
}
