/** Counts the runs of an app that match filters, and computes their durations, per hour or day. */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { checkTimezone } from "../../rules/schedule.js";
import type { RunSearch } from "../records/run-words.js";
import {
  createNewestRunsSqlBuilder,
  type NewestRunsSqlBuilder,
  parseOptionalChoice,
  parseOptionalTime,
  type RunFilter,
  searchRuns,
  toRunSqlConditions,
} from "./run-filter.js";

export interface RunStatisticsOptions extends RunFilter {
  by?: unknown;
  timezone?: unknown;
}

/** Statistics of one hour or day. Durations are in milliseconds and include only runs that completed or failed. */
export interface StatisticsPeriod {
  start: string;
  runs: number;
  failed: number;
  cancelled: number;
  /** Number of skipped runs, and of schedule times that started no run. */
  skipped: number;
  p50: number | null;
  p95: number | null;
}

export interface RunStatisticsResult {
  by: PeriodLength;
  from: string;
  to: string;
  /** Queue time of the oldest run that was checked, if the time range has too many runs to check all; otherwise null. */
  countedFrom: string | null;
  /** Hours or days that have runs, the oldest first. */
  periods: StatisticsPeriod[];
}

const PERIOD_LENGTHS = ["hour", "day"] as const;
export type PeriodLength = (typeof PERIOD_LENGTHS)[number];

const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS_BY_PERIOD: Record<PeriodLength, { maxDays: number; defaultDays: number }> = {
  hour: { maxDays: 14, defaultDays: 2 },
  day: { maxDays: 100, defaultDays: 30 },
};
/** Maximum number of runs that one request reads, from the newest. Reading this many takes a tenth of a second. */
const CHECKED_RUNS_MAX = 100_000;

/**
 * Returns SQL that selects the statistics of each hour or day. Each row contains `countedFrom`. If no run matches, the result is one row
 * without a period. `period` and `zone` are SQL parameters.
 */
const createSelectPeriodsSql = (
  createNewestRunsSql: NewestRunsSqlBuilder,
  unindexedSql: string | null,
  period: string,
  zone: string,
) => `
  WITH checked AS MATERIALIZED (
    SELECT state, queued_at, tick_count, ${unindexedSql ?? "true"} AS matches, CASE WHEN state IN ('completed', 'failed')
           THEN extract(epoch FROM finished_at - started_at)::float8 * 1000 END AS ms
      FROM (${createNewestRunsSql("run.*", CHECKED_RUNS_MAX)}) AS run),
  bounds AS (
    SELECT CASE WHEN count(*) = ${CHECKED_RUNS_MAX} THEN min(queued_at) END AS "countedFrom" FROM checked),
  period AS (
  SELECT date_trunc(${period}, queued_at, ${zone}) AS start,
         count(*) FILTER (WHERE state <> 'skipped') AS runs,
         count(*) FILTER (WHERE state = 'failed') AS failed,
         count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
         coalesce(sum(tick_count) FILTER (WHERE state = 'skipped'), 0) AS skipped,
         percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS p50,
         percentile_disc(0.95) WITHIN GROUP (ORDER BY ms) AS p95
    FROM checked WHERE matches GROUP BY 1)
  SELECT period.*, bounds."countedFrom" FROM bounds LEFT JOIN period ON true ORDER BY period.start`;

type PeriodRow = Omit<StatisticsPeriod, "start"> & { start: Date | null; countedFrom: Date | null };

const toPeriod = (start: Date, { p50, p95, ...counts }: Omit<StatisticsPeriod, "start">): StatisticsPeriod => ({
  ...counts,
  start: start.toISOString(),
  p50: p50 === null ? null : Math.round(p50),
  p95: p95 === null ? null : Math.round(p95),
});

function parseTimeRange(options: RunStatisticsOptions, now: number): { by: PeriodLength; from: Date; to: Date } {
  const by = parseOptionalChoice(options.by, "by", PERIOD_LENGTHS) ?? "hour";
  const to = parseOptionalTime(options.to, "to") ?? new Date(now);
  const from =
    parseOptionalTime(options.from, "from") ?? new Date(to.getTime() - DAYS_BY_PERIOD[by].defaultDays * DAY_MS);
  if (from >= to) throw new ActionError("REQUEST_INVALID", '"from" must be before "to"');
  const { maxDays } = DAYS_BY_PERIOD[by];
  if (to.getTime() - from.getTime() > maxDays * DAY_MS) {
    throw new ActionError(
      "REQUEST_INVALID",
      `"from" and "to" must be at most ${maxDays} days apart if "by" is "${by}"`,
    );
  }
  return { by, from, to };
}

/** Returns the statistics of the app's runs that match the filters. @throws REQUEST_INVALID, TIMEZONE_INVALID */
export type ReadRunStatistics = (appId: number, options: RunStatisticsOptions) => Promise<RunStatisticsResult>;

export function createRunStatisticsReader(services: { db: Db; runSearch: RunSearch }): ReadRunStatistics {
  const { db } = services;

  async function readQueueTime(appId: number, runId: number, from: Date): Promise<Date | null> {
    const sql = "SELECT queued_at AS time FROM run WHERE app_id = $1 AND id = $2 AND queued_at >= $3";
    const [run] = await rows<{ time: Date }>(db, sql, [appId, runId, from]);
    return run?.time ?? null;
  }

  return async (appId, options) => {
    const { by, from, to } = parseTimeRange(options, Date.now());
    const timezone = options.timezone ?? "UTC";
    checkTimezone(timezone);
    const { conditions, lowestFoundId } = await searchRuns(
      services,
      appId,
      toRunSqlConditions(appId, { ...options, from, to }),
    );
    const createNewestRunsSql = await createNewestRunsSqlBuilder(db, appId, conditions);
    const values = [...conditions.parameters, by, timezone];
    const [period, zone] = [`$${values.length - 1}::text`, `$${values.length}::text`];
    const periodRows = await rows<PeriodRow>(
      db,
      createSelectPeriodsSql(createNewestRunsSql, conditions.unindexedSql, period, zone),
      values,
    );
    const countedFrom =
      lowestFoundId === null ? periodRows[0]!.countedFrom : await readQueueTime(appId, lowestFoundId, from);
    return {
      by,
      from: from.toISOString(),
      to: to.toISOString(),
      countedFrom: countedFrom?.toISOString() ?? null,
      periods: periodRows.flatMap(({ countedFrom: _, start, ...counts }) =>
        start === null ? [] : [toPeriod(start, counts)],
      ),
    };
  };
}
