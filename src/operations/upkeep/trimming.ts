/**
 * Limits the disk space of each app's runs and events by deleting the oldest. Rows that visitors have caused get half
 * of the limit, so that visits cannot displace an app's own records. Sizes are compressed bytes on the disk.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { INTAKE_ROW_BYTES } from "../../limits.js";

const EVERY_MS = 60_000;
const BATCH = 1_000;
/**
 * Share of its limit that an app must have written before its rows are measured again, so that measuring costs in
 * proportion to writing.
 */
const WRITTEN_PART = 1 / 8;
/**
 * Interval at which the rows of every app are measured, also at the start: rows may be older than the process, and the
 * limit may have been lowered.
 */
const MEASURE_ALL_MS = 3_600_000;

/**
 * A kind of rows that is limited: SQL of their size, of the finished ones, and of those that visitors have caused.
 * `record` is the alias of the table.
 */
interface Kind {
  table: "run" | "log_event";
  bytes: string;
  droppable: string;
  visitors: string;
  /** SQL of rows that were written after $1, which is a value that `newest` has returned. */
  news: string;
  newest: string;
}

const KINDS: readonly Kind[] = [
  {
    table: "run",
    bytes: `${2 * INTAKE_ROW_BYTES} + coalesce(pg_column_size(payload), 0)
      + coalesce(CASE WHEN log_id IS NULL THEN (SELECT pg_column_size(data) FROM execution_log WHERE run_id = record.id LIMIT 1)
                      ELSE (SELECT pg_column_size(data) FROM execution_log WHERE execution_log.id = record.log_id) END, 0)
      + coalesce((SELECT pg_column_size(words) FROM run_search WHERE run_id = record.id), 0)
      + coalesce((SELECT sum(pg_column_size(text)) FROM console_line WHERE run_id = record.id), 0)`,
    droppable: "finished_at IS NOT NULL",
    visitors: "EXISTS (SELECT FROM credential c WHERE c.id = record.credential_id AND c.kind IN ('live', 'viewer'))",
    news: "finished_at > $1::timestamptz",
    newest: "SELECT coalesce(max(finished_at), '-infinity')::text AS at FROM run",
  },
  {
    table: "log_event",
    bytes: `${INTAKE_ROW_BYTES} + pg_column_size(data)`,
    droppable: "NOT EXISTS (SELECT FROM run WHERE event_id = record.id)",
    visitors: "(record.type LIKE 'app.analytics.%' OR record.type = 'app.view')",
    news: "id > $1::bigint",
    newest: "SELECT coalesce(max(id), 0)::text AS at FROM log_event",
  },
];

const writtenBytes = ({ table, bytes, news }: Kind) => `
  SELECT app_id AS "appId", sum(${bytes})::float8 AS bytes FROM ${table} AS record WHERE ${news} GROUP BY app_id`;

/** SQL that selects the newest row beyond the limit, counted from the newest row back. $1 is the app, $2 the limit in bytes. */
const trimStatement = ({ table, bytes }: Kind, partition: string) => `
  SELECT max(id) AS id FROM (
    SELECT id, sum(${bytes}) OVER (ORDER BY id DESC) AS total FROM ${table} AS record WHERE app_id = $1 AND ${partition}) AS summed
   WHERE total > $2`;

/** Tables that refer to a run by its id. */
const REFERRING_TABLES = ["execution_log", "console_line", "run_search"];

/** SQL that deletes rows up to an ID, with the rows that refer to them. $1 is the app, $2 the highest ID to delete. */
const dropStatement = ({ table, droppable }: Kind, partition: string) => `
  WITH batch AS (
    SELECT id FROM ${table} AS record WHERE app_id = $1 AND id <= $2 AND ${partition} AND ${droppable}
     ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
  ${table === "run" ? REFERRING_TABLES.map((other) => `, of_${other} AS (DELETE FROM ${other} USING batch WHERE run_id = batch.id)`).join("") : ""}
  DELETE FROM ${table} USING batch WHERE ${table}.id = batch.id RETURNING ${table}.id`;

/** SQL of the size of a table with its indexes, over all partitions. The part of one app cannot be larger. */
const sizeOf = (table: string) => `
  SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8 AS bytes FROM pg_partition_tree('${table}')`;
const TABLES: Record<Kind["table"], readonly string[]> = {
  run: ["run", "execution_log", "console_line", "run_search"],
  log_event: ["log_event"],
};

export interface LogTrimming {
  /** Deletes rows beyond the limit. Returns the Unix time in milliseconds of the next call. */
  trim(): Promise<number>;
  /** Stops a running trim after its current batch. */
  stop(): void;
}

/** @param maxBytes limit for the runs of one app, and the same limit again for its events; 0 is unlimited */
export function createTrimming(options: { db: DataSource; maxBytes: number; now?: () => number }): LogTrimming {
  const { db, maxBytes, now = Date.now } = options;
  let isStopped = false;
  let measuredAt = Number.NEGATIVE_INFINITY;
  const watchedKinds = KINDS.map((kind) => ({
    kind,
    countedUntil: null as string | null,
    writtenBy: new Map<number, number>(),
  }));

  async function trimPart(kind: Kind, appId: number, partition: string, bytes: number): Promise<void> {
    const [cutRow] = await rows<{ id: number | null }>(db, trimStatement(kind, partition), [appId, bytes]);
    if (cutRow!.id === null) return;
    let droppedRows = BATCH;
    while (droppedRows === BATCH && !isStopped)
      droppedRows = (await rows(db, dropStatement(kind, partition), [appId, cutRow!.id])).length;
  }

  /** Returns every app, or none if the tables are too small for any app to exceed its limit. */
  async function allApps({ table }: Kind): Promise<number[]> {
    let bytes = 0;
    for (const tableName of TABLES[table]) bytes += (await rows<{ bytes: number }>(db, sizeOf(tableName)))[0]!.bytes;
    if (bytes < maxBytes / 2) return [];
    return (await rows<{ id: number }>(db, "SELECT id FROM app ORDER BY id")).map(({ id }) => id);
  }

  /** Returns the apps that have written enough since their last measurement to be measured again. */
  async function appsToMeasure(watchedKind: (typeof watchedKinds)[number]): Promise<number[]> {
    const { kind, countedUntil, writtenBy } = watchedKind;
    const [newest] = await rows<{ at: string }>(db, kind.newest);
    // The first call only sets the start of counting, so that a start reads no whole tables.
    const writtenRows =
      countedUntil === null ? [] : await rows<{ appId: number; bytes: number }>(db, writtenBytes(kind), [countedUntil]);
    for (const { appId, bytes } of writtenRows) writtenBy.set(appId, (writtenBy.get(appId) ?? 0) + bytes);
    watchedKind.countedUntil = newest!.at;
    return [...writtenBy].filter(([, bytes]) => bytes >= maxBytes * WRITTEN_PART).map(([appId]) => appId);
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
          await trimPart(watchedKind.kind, appId, watchedKind.kind.visitors, maxBytes / 2);
          await trimPart(watchedKind.kind, appId, `NOT ${watchedKind.kind.visitors}`, maxBytes);
        }
      }
      if (measuresAll && !isStopped) measuredAt = now();
      return Date.now() + EVERY_MS;
    },
    stop() {
      isStopped = true;
    },
  };
}
