/**
 * Limits the disk space of each app's runs and log events by deleting the oldest rows. Rows that visitors have caused
 * have a limit of their own, half as large, so that visits do not displace other records of the app. Sizes are
 * compressed bytes on the disk.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { INTAKE_ROW_BYTES } from "../../limits.js";

/** Interval between checks. */
const TRIM_EVERY_MS = 60_000;
/** Maximum number of rows that one statement deletes. */
const BATCH = 1_000;
/**
 * The rows of an app are measured again when it has written this share of its limit. So the cost of measuring is
 * proportional to the amount of written data.
 */
const WRITTEN_SHARE = 1 / 8;
/**
 * Interval at which the rows of all apps are measured. This also happens at the start, because old rows may exceed a
 * limit that was lowered.
 */
const MEASURE_ALL_MS = 3_600_000;

/** A kind of rows whose size is limited, described by SQL expressions. In them, `record` is the alias of the table. */
interface RowKind {
  table: "run" | "log_event";
  /** SQL of the size of a row. */
  bytes: string;
  /** SQL condition for rows that can be deleted. */
  isDeletable: string;
  /** SQL condition for rows that visitors have caused. */
  isOfVisitor: string;
  /** SQL condition for rows that were written after $1, an earlier result of `newest`. */
  isNewer: string;
  /** SQL of the position of the newest row. */
  newest: string;
}

const KINDS: readonly RowKind[] = [
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
 * Returns SQL that selects the highest ID to delete: the sizes are added from the newest row backwards until the sum
 * exceeds the limit. $1 is the app, $2 the limit in bytes.
 */
const trimStatement = ({ table, bytes }: RowKind, partition: string) => `
  SELECT max(id) AS id FROM (
    SELECT id, sum(${bytes}) OVER (ORDER BY id DESC) AS total FROM ${table} AS record WHERE app_id = $1 AND ${partition}) AS summed
   WHERE total > $2`;

/** Tables whose rows refer to a run by the column `run_id`. */
const REFERRING_TABLES = ["execution_log", "console_line", "run_search"];

/**
 * Returns SQL that deletes a batch of rows up to an ID, and the rows that refer to them. $1 is the app, $2 the highest
 * ID to delete.
 */
const deleteStatement = ({ table, isDeletable }: RowKind, partition: string) => `
  WITH batch AS (
    SELECT id FROM ${table} AS record WHERE app_id = $1 AND id <= $2 AND ${partition} AND ${isDeletable}
     ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
  ${table === "run" ? REFERRING_TABLES.map((other) => `, of_${other} AS (DELETE FROM ${other} USING batch WHERE run_id = batch.id)`).join("") : ""}
  DELETE FROM ${table} USING batch WHERE ${table}.id = batch.id RETURNING ${table}.id`;

/** Returns SQL of the size of a table with its indexes and all partitions. The rows of one app cannot be larger. */
const tableSizeSql = (table: string) => `
  SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8 AS bytes FROM pg_partition_tree('${table}')`;
/** Tables that contain the rows of a kind. */
const TABLES_OF_KIND: Record<RowKind["table"], readonly string[]> = {
  run: ["run", "execution_log", "console_line", "run_search"],
  log_event: ["log_event"],
};

export interface LogTrimming {
  /** Deletes rows beyond the limit. Returns the time of the next call, in Unix milliseconds. */
  trim(): Promise<number>;
  /** Stops a running trim after its current batch. */
  stop(): void;
}

/**
 * Creates the job that limits the size of runs and log events. @param maxBytes limit for the runs of one app; the same
 * limit also applies to its log events. 0 means unlimited
 */
export function createTrimming(options: { db: DataSource; maxBytes: number; now?: () => number }): LogTrimming {
  const { db, maxBytes, now = Date.now } = options;
  let isStopped = false;
  let measuredAt = Number.NEGATIVE_INFINITY;
  const watchedKinds = KINDS.map((kind) => ({
    kind,
    countedUntil: null as string | null,
    writtenBy: new Map<number, number>(),
  }));

  async function trimPart(kind: RowKind, appId: number, partition: string, bytes: number): Promise<void> {
    const [cutRow] = await rows<{ id: number | null }>(db, trimStatement(kind, partition), [appId, bytes]);
    if (cutRow!.id === null) return;
    let droppedRows = BATCH;
    while (droppedRows === BATCH && !isStopped)
      droppedRows = (await rows(db, deleteStatement(kind, partition), [appId, cutRow!.id])).length;
  }

  /** Returns the IDs of all apps. Returns none if the tables are so small that no app can exceed its limit. */
  async function allApps({ table }: RowKind): Promise<number[]> {
    let bytes = 0;
    for (const tableName of TABLES_OF_KIND[table])
      bytes += (await rows<{ bytes: number }>(db, tableSizeSql(tableName)))[0]!.bytes;
    if (bytes < maxBytes / 2) return [];
    return (await rows<{ id: number }>(db, "SELECT id FROM app ORDER BY id")).map(({ id }) => id);
  }

  /** Returns the IDs of apps that have written enough since their last measurement to be measured again. */
  async function appsToMeasure(watchedKind: (typeof watchedKinds)[number]): Promise<number[]> {
    const { kind, countedUntil, writtenBy } = watchedKind;
    const [newest] = await rows<{ at: string }>(db, kind.newest);
    // The first call only sets the position from which rows are counted, so that the whole table is not read at the
    // start.
    const writtenRows =
      countedUntil === null ? [] : await rows<{ appId: number; bytes: number }>(db, writtenBytes(kind), [countedUntil]);
    for (const { appId, bytes } of writtenRows) writtenBy.set(appId, (writtenBy.get(appId) ?? 0) + bytes);
    watchedKind.countedUntil = newest!.at;
    return [...writtenBy].filter(([, bytes]) => bytes >= maxBytes * WRITTEN_SHARE).map(([appId]) => appId);
  }

  return {
    async trim() {
      const measuresAll = now() - measuredAt >= MEASURE_ALL_MS;
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
      return Date.now() + TRIM_EVERY_MS;
    },
    stop() {
      isStopped = true;
    },
  };
}
