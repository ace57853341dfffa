/**
 * Counts an app's runs and computes their durations per hour or day, within limits on the time range and on the number
 * of runs.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { checkTimezone } from "../../rules/schedule.js";
import { type NewestRuns, newestRuns, optionalChoice, optionalMoment, runConditions } from "./run-filter.js";

export interface StatisticsOptions {
  /** ID of the draft or of its live version. Both select the same runs. */
  actionId?: unknown;
  from?: unknown;
  to?: unknown;
  by?: unknown;
  timezone?: unknown;
}

/** Statistics of one hour or day. Durations are in milliseconds and include only runs that completed or failed. */
export interface Period {
  start: string;
  runs: number;
  failed: number;
  cancelled: number;
  /** Number of skipped runs, and of schedule times that started no run. */
  skipped: number;
  p50: number | null;
  p95: number | null;
}

export interface Statistics {
  by: PeriodLength;
  from: string;
  to: string;
  /**
   * Start of the part of the range whose runs were counted, if the range has more runs than are counted; otherwise
   * null.
   */
  countedFrom: string | null;
  /** Hours or days that have runs, the oldest first. */
  periods: Period[];
}

const PERIOD_LENGTHS = ["hour", "day"] as const;
export type PeriodLength = (typeof PERIOD_LENGTHS)[number];

const DAY_MS = 24 * 60 * 60 * 1000;
/** Maximum and default length of the time range in days. */
const DAYS_BY_PERIOD: Record<PeriodLength, { maxDays: number; defaultDays: number }> = {
  hour: { maxDays: 14, defaultDays: 2 },
  day: { maxDays: 100, defaultDays: 30 },
};
/** Maximum number of runs that are counted; these are the newest ones. Counting them takes a tenth of a second. */
const COUNTED_RUNS_MAX = 100_000;

/**
 * SQL of the statistics. `period` and `zone` are SQL parameters such as `$1`: hour or day, and the time zone in which
 * hours and days start.
 */
const selectPeriods = (newest: NewestRuns, period: string, zone: string) => `
  WITH counted AS MATERIALIZED (
    SELECT state, queued_at, tick_count, CASE WHEN state IN ('completed', 'failed')
           THEN extract(epoch FROM finished_at - started_at)::float8 * 1000 END AS ms
      FROM (${newest("run.*", COUNTED_RUNS_MAX)}) AS run)
  SELECT date_trunc(${period}, queued_at, ${zone}) AS start,
         count(*) FILTER (WHERE state <> 'skipped') AS runs,
         count(*) FILTER (WHERE state = 'failed') AS failed,
         count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
         coalesce(sum(tick_count) FILTER (WHERE state = 'skipped'), 0) AS skipped,
         percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS p50,
         percentile_disc(0.95) WITHIN GROUP (ORDER BY ms) AS p95,
         (SELECT CASE WHEN count(*) = ${COUNTED_RUNS_MAX} THEN min(queued_at) END FROM counted) AS "countedFrom"
    FROM counted GROUP BY 1 ORDER BY 1`;

type PeriodRow = Omit<Period, "start"> & { start: Date; countedFrom: Date | null };

/** Returns the time range of the request and the length of its periods. @throws REQUEST_INVALID */
function parseTimeRange(options: StatisticsOptions, now: number): { by: PeriodLength; from: Date; to: Date } {
  const by = optionalChoice(options.by, "by", PERIOD_LENGTHS) ?? "hour";
  const to = optionalMoment(options.to, "to") ?? new Date(now);
  const from = optionalMoment(options.from, "from") ?? new Date(to.getTime() - DAYS_BY_PERIOD[by].defaultDays * DAY_MS);
  if (from >= to) throw new ActionError("REQUEST_INVALID", '"from" must be before "to"');
  const { maxDays } = DAYS_BY_PERIOD[by];
  if (to.getTime() - from.getTime() > maxDays * DAY_MS) {
    throw new ActionError("REQUEST_INVALID", `from and to must be at most ${maxDays} days apart if by is "${by}"`);
  }
  return { by, from, to };
}

export type RunStatistics = ReturnType<typeof createRunStatistics>;

export function createRunStatistics({ db }: { db: DataSource }) {
  /** Returns the statistics of an app's runs. @throws REQUEST_INVALID, TIMEZONE_INVALID */
  return async (appId: number, options: StatisticsOptions): Promise<Statistics> => {
    const { by, from, to } = parseTimeRange(options, Date.now());
    const timezone = options.timezone ?? "UTC";
    checkTimezone(timezone);
    const { actionId } = options;
    const conditions = runConditions(appId, { actionId, from, to });
    const newest = await newestRuns(db, appId, conditions);
    const values = [...conditions.parameters, by, timezone];
    const sql = selectPeriods(newest, `$${values.length - 1}::text`, `$${values.length}::text`);
    const periodRows = await rows<PeriodRow>(db, sql, values);
    return {
      by,
      from: from.toISOString(),
      to: to.toISOString(),
      countedFrom: periodRows[0]?.countedFrom?.toISOString() ?? null,
      periods: periodRows.map(({ countedFrom: _, start, p50, p95, ...counts }) => ({
        ...counts,
        start: start.toISOString(),
        p50: p50 === null ? null : Math.round(p50),
        p95: p95 === null ? null : Math.round(p95),
      })),
    };
  };
}
