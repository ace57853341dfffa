/**
 * Limits the disk space of each app's runs and log events by deleting the oldest rows. Rows that visitors of pages have
 * caused have a limit half as large, so that visits do not displace other records. Sizes are compressed bytes on the
 * disk.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { INTAKE_ROW_BYTES } from "../../limits.js";

/** Interval in milliseconds between two checks of the limits. */
const TRIM_INTERVAL_MS = 60_000;
/** Maximum number of rows that one SQL statement deletes. */
const BATCH_SIZE = 1_000;
/**
 * An app's rows are measured again when the app has written this share of its limit since the last measurement. So the
 * cost of measuring is proportional to the amount of written data.
 */
const REMEASURE_SHARE = 1 / 8;
/**
 * Interval in milliseconds at which the rows of all apps are measured. They are also measured when the process starts,
 * because the limit may have been lowered.
 */
const MEASURE_ALL_INTERVAL_MS = 3_600_000;

/**
 * A kind of rows whose total size per app is limited, described by SQL expressions. In these expressions, `record` is
 * the alias of the table.
 */
interface RowKind {
  table: "run" | "log_event";
  /** SQL expression for the bytes of a row. */
  bytes: string;
  /** SQL condition for rows that can be deleted. */
  isDeletable: string;
  /** SQL condition for rows that visitors of pages have caused. */
  isOfVisitor: string;
  /** SQL condition for rows that were written after the position $1, which `newest` has returned before. */
  isNewer: string;
  /** SQL expression for the position of the newest row. */
  newest: string;
}

const ROW_KINDS: readonly RowKind[] = [
  {
    table: "run",
    bytes: `${2 * INTAKE_ROW_BYTES} + coalesce(pg_column_size(payload), 0)
      + coalesce(CASE WHEN log_id IS NULL THEN (SELECT pg_column_size(data) FROM execution_log WHERE run_id = record.id LIMIT 1)
                      ELSE (SELECT pg_column_size(data) FROM execution_log WHERE execution_log.id = record.log_id) END, 0)
      + coalesce((SELECT pg_column_size(words) FROM run_search WHERE run_id = record.id), 0)
      + coalesce((SELECT sum(pg_column_size(text)) FROM console_line WHERE run_id = record.id), 0)`,
    isDeletable: "finished_at IS NOT NULL",
    isOfVisitor: "EXISTS (SELECT FROM credential c WHERE c.id = record.credential_id AND c.kind IN ('live', 'viewer'))",
    isNewer: "finished_at > $1::timestamptz",
    newest: "SELECT coalesce(max(finished_at), '-infinity')::text AS at FROM run",
  },
  {
    table: "log_event",
    bytes: `${INTAKE_ROW_BYTES} + pg_column_size(data)`,
    isDeletable: "NOT EXISTS (SELECT FROM run WHERE event_id = record.id)",
    isOfVisitor: "(record.type LIKE 'app.analytics.%' OR record.type = 'app.view')",
    isNewer: "id > $1::bigint",
    newest: "SELECT coalesce(max(id), 0)::text AS at FROM log_event",
  },
];

const writtenBytes = ({ table, bytes, isNewer }: RowKind) => `
  SELECT app_id AS "appId", sum(${bytes})::float8 AS bytes FROM ${table} AS record WHERE ${isNewer} GROUP BY app_id`;

/**
 * Returns SQL that selects the highest ID to delete. It adds the sizes of rows, from the newest row backwards, until
 * their sum exceeds the limit. $1 is the app's ID, $2 the limit in bytes.
 */
const trimSql = ({ table, bytes }: RowKind, partition: string) => `
  SELECT max(id) AS id FROM (
    SELECT id, sum(${bytes}) OVER (ORDER BY id DESC) AS total FROM ${table} AS record WHERE app_id = $1 AND ${partition}) AS summed
   WHERE total > $2`;

/** Tables whose rows name a run in the column `run_id`. */
const REFERRING_TABLES = ["execution_log", "console_line", "run_search"];

/**
 * Returns SQL that deletes a batch of rows up to an ID, and the rows of other tables that refer to these rows. $1 is
 * the app's ID, $2 the highest ID to delete.
 */
const deleteSql = ({ table, isDeletable }: RowKind, partition: string) => `
  WITH batch AS (
    SELECT id FROM ${table} AS record WHERE app_id = $1 AND id <= $2 AND ${partition} AND ${isDeletable}
     ORDER BY id LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED)
  ${table === "run" ? REFERRING_TABLES.map((other) => `, of_${other} AS (DELETE FROM ${other} USING batch WHERE run_id = batch.id)`).join("") : ""}
  DELETE FROM ${table} USING batch WHERE ${table}.id = batch.id RETURNING ${table}.id`;

/**
 * Returns SQL that selects the bytes of a table with its indexes and all partitions. This is an upper bound for the
 * rows of one app.
 */
const tableSizeSql = (table: string) => `
  SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8 AS bytes FROM pg_partition_tree('${table}')`;
/** Tables that contain the rows of each kind. */
const TABLES_OF_KIND: Record<RowKind["table"], readonly string[]> = {
  run: ["run", "execution_log", "console_line", "run_search"],
  log_event: ["log_event"],
};

export interface LogTrimming {
  /**
   * Deletes the oldest rows of apps that exceed their limit. Returns the time of the next call as Unix time in
   * milliseconds.
   */
  trim(): Promise<number>;
  /** Stops a running deletion after the batch that it is deleting now. */
  stop(): void;
}

/**
 * Creates the job that limits the disk space of runs and log events.
 * @param maxBytes maximum bytes of one app's runs, and also maximum bytes of its log events; 0 means unlimited
 */
export function createLogTrimming(options: { db: DataSource; maxBytes: number; now?: () => number }): LogTrimming {
  const { db, maxBytes, now = Date.now } = options;
  let isStopped = false;
  let measuredAt = Number.NEGATIVE_INFINITY;
  const watchedKinds = ROW_KINDS.map((kind) => ({
    kind,
    countedUntil: null as string | null,
    writtenBy: new Map<number, number>(),
  }));

  async function trimPart(kind: RowKind, appId: number, partition: string, bytes: number): Promise<void> {
    const [cutRow] = await rows<{ id: number | null }>(db, trimSql(kind, partition), [appId, bytes]);
    if (cutRow!.id === null) return;
    let droppedRows = BATCH_SIZE;
    while (droppedRows === BATCH_SIZE && !isStopped)
      droppedRows = (await rows(db, deleteSql(kind, partition), [appId, cutRow!.id])).length;
  }

  /** Returns the IDs of all apps. Returns none if the whole tables are so small that no app can exceed its limit. */
  async function allApps({ table }: RowKind): Promise<number[]> {
    let bytes = 0;
    for (const tableName of TABLES_OF_KIND[table])
      bytes += (await rows<{ bytes: number }>(db, tableSizeSql(tableName)))[0]!.bytes;
    if (bytes < maxBytes / 2) return [];
    return (await rows<{ id: number }>(db, "SELECT id FROM app ORDER BY id")).map(({ id }) => id);
  }

  /**
   * Returns the IDs of apps that have written so much since their last measurement that they must be measured again.
   */
  async function appsToMeasure(watchedKind: (typeof watchedKinds)[number]): Promise<number[]> {
    const { kind, countedUntil, writtenBy } = watchedKind;
    const [newest] = await rows<{ at: string }>(db, kind.newest);
    // The first call only stores the position from which later calls count rows, so that the start of the service does
    // not read the whole table.
    const writtenRows =
      countedUntil === null ? [] : await rows<{ appId: number; bytes: number }>(db, writtenBytes(kind), [countedUntil]);
    for (const { appId, bytes } of writtenRows) writtenBy.set(appId, (writtenBy.get(appId) ?? 0) + bytes);
    watchedKind.countedUntil = newest!.at;
    return [...writtenBy].filter(([, bytes]) => bytes >= maxBytes * REMEASURE_SHARE).map(([appId]) => appId);
  }

  return {
    async trim() {
      const measuresAll = now() - measuredAt >= MEASURE_ALL_INTERVAL_MS;
      for (const watchedKind of maxBytes > 0 ? watchedKinds : []) {
        const appsOverLimit = isStopped ? [] : await appsToMeasure(watchedKind);
        const all = measuresAll && !isStopped ? await allApps(watchedKind.kind) : [];
        for (const appId of new Set([...appsOverLimit, ...all])) {
          if (isStopped) break;
          watchedKind.writtenBy.delete(appId);
          await trimPart(watchedKind.kind, appId, watchedKind.kind.isOfVisitor, maxBytes / 2);
          await trimPart(watchedKind.kind, appId, `NOT ${watchedKind.kind.isOfVisitor}`, maxBytes);
        }
      }
      if (measuresAll && !isStopped) measuredAt = now();
      return Date.now() + TRIM_INTERVAL_MS;
    },
    stop() {
      isStopped = true;
    },
  };
}
