/**
 * Limits the disk space of each app's runs and log events by deleting the oldest rows. Rows that visitors of pages caused have a separate
 * limit, half as high. So visits do not displace other records.
 */
import type { Logger } from "pino";
import { deleteInBatches } from "../../data/batches.js";
import { type Db, rows } from "../../data/database.js";
import { INTAKE_ROW_OVERHEAD_BYTES } from "../../limits.js";
import { createFailureSkipper } from "./skipped-failures.js";

const TRIM_INTERVAL_MS = 60_000;
const BATCH_SIZE = 1_000;
/** An app is measured again after it has written this share of its limit. So apps that write little cause little work. */
const REMEASURE_SHARE = 1 / 8;
/** Interval at which all apps are measured. The first measurement is at the start, because the limit may have been lowered. */
const MEASURE_ALL_INTERVAL_MS = 3_600_000;

/** Rows whose total size per app is limited, described by SQL expressions in which `record` is the alias of the table. */
interface RowKind {
  table: "run" | "log_event";
  /** SQL expression for the bytes of a row. */
  bytesSql: string;
  /** SQL condition for rows that can be deleted. */
  isDeletableSql: string;
  /** SQL condition for rows that visitors of pages have caused. */
  isOfVisitorSql: string;
  /** SQL condition for rows that were written after the position $1, which is an earlier value of `newestSql`. */
  isNewerSql: string;
  /** SQL expression for the position of the newest row. */
  newestSql: string;
}

const ROW_KINDS: readonly RowKind[] = [
  {
    table: "run",
    bytesSql: `${2 * INTAKE_ROW_OVERHEAD_BYTES} + coalesce(pg_column_size(payload), 0)
      + coalesce(CASE WHEN log_id IS NULL THEN (SELECT pg_column_size(data) FROM execution_log WHERE run_id = record.id LIMIT 1)
                      ELSE (SELECT pg_column_size(data) FROM execution_log WHERE execution_log.id = record.log_id) END, 0)
      + coalesce((SELECT pg_column_size(words) FROM run_search WHERE run_id = record.id), 0)
      + coalesce((SELECT sum(pg_column_size(text)) FROM console_line WHERE run_id = record.id), 0)`,
    isDeletableSql: "finished_at IS NOT NULL",
    isOfVisitorSql:
      "EXISTS (SELECT FROM credential c WHERE c.id = record.credential_id AND c.kind IN ('live', 'viewer'))",
    isNewerSql: "finished_at > $1::timestamptz",
    newestSql: "SELECT coalesce(max(finished_at), '-infinity')::text AS at FROM run",
  },
  {
    table: "log_event",
    bytesSql: `${INTAKE_ROW_OVERHEAD_BYTES} + pg_column_size(data)`,
    isDeletableSql: "NOT EXISTS (SELECT FROM run WHERE event_id = record.id)",
    isOfVisitorSql: "(record.type LIKE 'app.analytics.%' OR record.type = 'app.view')",
    isNewerSql: "id > $1::bigint",
    newestSql: "SELECT coalesce(max(id), 0)::text AS at FROM log_event",
  },
];

/** Returns SQL for the bytes that each app has written after the position $1. */
const createWrittenBytesSql = ({ table, bytesSql, isNewerSql }: RowKind) => `
  SELECT app_id AS "appId", sum(${bytesSql})::float8 AS bytes FROM ${table} AS record WHERE ${isNewerSql} GROUP BY app_id`;

/** Maximum number of rows that one statement measures. */
const MEASURED_ROWS_MAX = 10_000;

/**
 * Measures a page of rows with IDs below $2, separately for rows of visitors and other rows. $3 (visitors) and $4 (others) are the bytes
 * that may stay. `visitorCutOff` and `otherCutOff` are the highest IDs to delete; null if all rows may stay.
 */
const createMeasurePageSql = ({ table, bytesSql, isOfVisitorSql }: RowKind) => `
  SELECT count(*)::int AS rows, min(id) AS last,
         coalesce(sum(bytes) FILTER (WHERE by_visitor), 0)::float8 AS "visitorBytes",
         coalesce(sum(bytes) FILTER (WHERE NOT by_visitor), 0)::float8 AS "otherBytes",
         max(id) FILTER (WHERE by_visitor AND total > $3::float8) AS "visitorCutOff",
         max(id) FILTER (WHERE NOT by_visitor AND total > $4::float8) AS "otherCutOff"
    FROM (SELECT id, bytes, by_visitor, sum(bytes) OVER (PARTITION BY by_visitor ORDER BY id DESC) AS total
            FROM (SELECT id, ${bytesSql} AS bytes, ${isOfVisitorSql} AS by_visitor
                    FROM (SELECT * FROM ${table} WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT ${MEASURED_ROWS_MAX}) AS record) AS measured) AS summed`;

interface MeasuredPage {
  rows: number;
  last: number;
  visitorBytes: number;
  otherBytes: number;
  visitorCutOff: number | null;
  otherCutOff: number | null;
}

/** Tables whose column `run_id` contains the ID of a run. Their rows are deleted together with the run. */
const REFERRING_TABLES = ["execution_log", "console_line", "run_search"];

/**
 * Returns SQL that deletes a batch of rows of the app $1. Deletes IDs above $3 (the last ID of the previous batch) and up to $2. $4 is the
 * maximum number of rows. `originCondition` selects either rows of visitors or all other rows.
 */
const createDeleteSql = ({ table, isDeletableSql }: RowKind, originCondition: string) => `
  WITH batch AS (
    SELECT id FROM ${table} AS record WHERE app_id = $1 AND id <= $2 AND id > $3 AND ${originCondition} AND ${isDeletableSql}
     ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED)
  ${table === "run" ? REFERRING_TABLES.map((other) => `, of_${other} AS (DELETE FROM ${other} USING batch WHERE run_id = batch.id)`).join("") : ""}
  DELETE FROM ${table} USING batch WHERE ${table}.id = batch.id RETURNING ${table}.id`;

/** Returns SQL for the bytes of a table with its indexes and partitions. */
const createTableSizeSql = (table: string) => `
  SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8 AS bytes FROM pg_partition_tree('${table}')`;
const TABLES_OF_KIND: Record<RowKind["table"], readonly string[]> = {
  run: ["run", "execution_log", "console_line", "run_search"],
  log_event: ["log_event"],
};

export interface LogTrimming {
  /** Deletes the oldest rows of apps that exceed their limit. Returns the time of the next call as Unix time in milliseconds. */
  trim(): Promise<number>;
  /** Makes `trim` stop after the batch that it is deleting now. */
  stop(): void;
}

/**
 * Creates the periodic deletion.
 * @param maxBytes maximum bytes of one app's runs, and also of its log events; 0 for no maximum. Rows of visitors do not count: they have
 *   half this maximum for themselves
 */
export function createLogTrimming(options: {
  db: Db;
  maxBytes: number;
  log: Pick<Logger, "warn">;
  now?: () => number;
}): LogTrimming {
  const { db, maxBytes, log, now = Date.now } = options;
  let isStopped = false;
  let measuredAt = Number.NEGATIVE_INFINITY;
  const watchedKinds = ROW_KINDS.map((kind) => ({
    kind,
    countedUntil: null as string | null,
    writtenBytesByApp: new Map<number, number>(),
  }));

  async function deleteRowsUpTo(
    kind: RowKind,
    appId: number,
    originCondition: string,
    cutOff: number | null,
  ): Promise<void> {
    if (cutOff === null) return;
    let last = 0;
    await deleteInBatches(
      BATCH_SIZE,
      () => isStopped,
      async (limit) => {
        const deletedRows = await rows<{ id: number }>(db, createDeleteSql(kind, originCondition), [
          appId,
          cutOff,
          last,
          limit,
        ]);
        for (const { id } of deletedRows) last = Math.max(last, id);
        return deletedRows.length;
      },
    );
  }

  async function trimApp(kind: RowKind, appId: number): Promise<void> {
    const remainingBytes = { visitor: maxBytes / 2, other: maxBytes };
    const cutOffs: { visitor: number | null; other: number | null } = { visitor: null, other: null };
    let page: Pick<MeasuredPage, "rows" | "last"> = { rows: MEASURED_ROWS_MAX, last: Number.MAX_SAFE_INTEGER };
    while (page.rows === MEASURED_ROWS_MAX && !isStopped && (cutOffs.visitor === null || cutOffs.other === null)) {
      const values = [appId, page.last, remainingBytes.visitor, remainingBytes.other];
      const measuredPage: MeasuredPage = (await rows<MeasuredPage>(db, createMeasurePageSql(kind), values))[0]!;
      cutOffs.visitor ??= measuredPage.visitorCutOff;
      cutOffs.other ??= measuredPage.otherCutOff;
      remainingBytes.visitor -= measuredPage.visitorBytes;
      remainingBytes.other -= measuredPage.otherBytes;
      page = measuredPage;
    }
    await deleteRowsUpTo(kind, appId, kind.isOfVisitorSql, cutOffs.visitor);
    await deleteRowsUpTo(kind, appId, `NOT ${kind.isOfVisitorSql}`, cutOffs.other);
  }

  /** Returns the IDs of all apps; none if the whole tables are so small that no app can exceed its limit. */
  async function listAllApps({ table }: RowKind): Promise<number[]> {
    let bytes = 0;
    for (const tableName of TABLES_OF_KIND[table])
      bytes += (await rows<{ bytes: number }>(db, createTableSizeSql(tableName)))[0]!.bytes;
    if (bytes < maxBytes / 2) return [];
    return (await rows<{ id: number }>(db, "SELECT id FROM app ORDER BY id")).map(({ id }) => id);
  }

  /** Returns the IDs of apps that have written so much since their last measurement that they must be measured again. */
  async function listAppsToMeasure(watchedKind: (typeof watchedKinds)[number]): Promise<number[]> {
    const { kind, countedUntil, writtenBytesByApp } = watchedKind;
    const [newest] = await rows<{ at: string }>(db, kind.newestSql);
    // Moves the position before the count, so that the next count does not read the same rows again after a failure. The hourly measurement
    // finds the rows that were missed.
    watchedKind.countedUntil = newest!.at;
    // The first call only stores a position for later calls, so that the start does not read the whole table.
    const writtenRows =
      countedUntil === null
        ? []
        : await rows<{ appId: number; bytes: number }>(db, createWrittenBytesSql(kind), [countedUntil]);
    for (const { appId, bytes } of writtenRows)
      writtenBytesByApp.set(appId, (writtenBytesByApp.get(appId) ?? 0) + bytes);
    return [...writtenBytesByApp].filter(([, bytes]) => bytes >= maxBytes * REMEASURE_SHARE).map(([appId]) => appId);
  }

  return {
    async trim() {
      const measuresAll = now() - measuredAt >= MEASURE_ALL_INTERVAL_MS;
      for (const watchedKind of maxBytes > 0 ? watchedKinds : []) {
        const { kind } = watchedKind;
        const skipFailure = createFailureSkipper(log, { table: kind.table });
        const grownApps = isStopped ? [] : ((await skipFailure(listAppsToMeasure(watchedKind))) ?? []);
        const allApps = measuresAll && !isStopped ? ((await skipFailure(listAllApps(kind))) ?? []) : [];
        for (const appId of new Set([...grownApps, ...allApps])) {
          if (isStopped) break;
          const isTrimmed = await skipFailure(trimApp(kind, appId).then(() => true));
          // After a failure, the next pass measures the app again, however little the app has written.
          if (isTrimmed) watchedKind.writtenBytesByApp.delete(appId);
          else watchedKind.writtenBytesByApp.set(appId, maxBytes);
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
