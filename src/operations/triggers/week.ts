/** Reads the scheduled times (ticks) of an app in the next seven days, and the skipped and failed ticks of the last seven days. */
import { availableParallelism } from "node:os";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { type Db, rows } from "../../data/database.js";
import { ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE } from "../../limits.js";
import { computeNextTicks } from "../../rules/schedule.js";
import { describeFrequency } from "../../rules/schedule-text.js";

/** Scheduled times of one action. Times are ISO 8601 text. */
export interface ScheduledAction {
  /** ID of the live version of the action. */
  actionId: number;
  masterId: number;
  name: string;
  frequency: string;
  timezone: string;
  /** Frequency of the schedule as a sentence. */
  description: string;
  /** The first scheduled times in the next seven days, without jitter (the random delay of the runs). */
  ticks: string[];
  /** True if the schedule has more scheduled times in the next seven days than `ticks` contains. */
  hasMore: boolean;
}

/** Ticks of one action on one day that were all skipped for the same reason, or whose runs all failed. */
export interface SkippedOrFailedTicks {
  actionId: number;
  name: string | null;
  state: "skipped" | "failed";
  /** Reason why the ticks were skipped; null for failed runs. */
  reason: string | null;
  /** IANA name of the action's time zone; the default time zone for a deleted action. */
  timezone: string;
  /** Times of the first and the last tick in the group. */
  from: string;
  to: string;
  count: number;
  /** ID of the last run in the group. */
  runId: number;
}

/** A time at which too many scheduled runs of all apps start, so that some of them start late. */
export interface CrowdedTick {
  tick: string;
  /** Number of scheduled actions of all apps that start at this time. */
  count: number;
}

export interface ScheduleWeek {
  from: string;
  to: string;
  /** Crowded times at which actions of the app start, the earliest first. */
  crowded: CrowdedTick[];
  /** Scheduled actions of the app, sorted by their next tick. */
  scheduled: ScheduledAction[];
  /** True if the app has more scheduled actions than `scheduled` contains. */
  hasMore: boolean;
  /** Ticks of the last seven days that were skipped or whose run failed, the most recent first. */
  missed: SkippedOrFailedTicks[];
}

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;
const LISTED_ACTIONS_MAX = 200;
/** Maximum number of ticks (scheduled times) of all actions, because the computation of each tick takes time. */
const TICKS_MAX = 4_000;
const TICKS_PER_ACTION = { min: 8, max: 170 };
const LISTED_MISSED_TICKS_MAX = 200;
const LISTED_CROWDED_TICKS_MAX = 10;
/** Maximum number of skipped and failed runs that are read and grouped. If there are more, only the newest are read. */
const MISSED_RUNS_READ_MAX = 5_000;

const SELECT_SCHEDULED_ACTIONS = `
  SELECT action.id AS "actionId", action.master_id AS "masterId", action.name, schedule.frequency, schedule.timezone
    FROM schedule JOIN action ON action.id = schedule.action_id
   WHERE schedule.app_id = $1 ORDER BY schedule.next_tick, action.id LIMIT ${LISTED_ACTIONS_MAX + 1}`;

/**
 * Selects those next start times of the app's schedules at which more than $2 schedules of all apps start. A schedule with jitter (a random
 * delay) counts at its delayed time.
 */
const SELECT_CROWDED_MINUTES = `
  SELECT next_tick AS tick, count(*)::int AS count FROM schedule
   WHERE next_tick IN (SELECT DISTINCT next_tick FROM schedule WHERE app_id = $1)
   GROUP BY next_tick HAVING count(*) > $2 ORDER BY next_tick LIMIT ${LISTED_CROWDED_TICKS_MAX}`;

/**
 * Selects the skipped and failed ticks of the app $1 since $2. Groups them by action, state, reason and day in the default time zone ($3).
 */
const SELECT_SKIPPED_AND_FAILED_TICKS = `
  WITH missed AS (
    SELECT id, action_id, state, reason, tick, tick_count FROM run
     WHERE app_id = $1 AND state IN ('failed', 'skipped', 'cancelled') AND state <> 'cancelled' AND trigger = 'schedule'
       AND queued_at >= $2
     ORDER BY id DESC LIMIT ${MISSED_RUNS_READ_MAX})
  SELECT missed.action_id AS "actionId", action.name, missed.state, missed.reason, coalesce(action.timezone, $3) AS timezone,
         min(tick) AS from, max(tick) AS to, sum(tick_count) AS count, max(missed.id) AS "runId"
    FROM missed LEFT JOIN action ON action.id = missed.action_id
   GROUP BY missed.action_id, action.name, action.timezone, missed.state, missed.reason, date_trunc('day', tick, $3)
   ORDER BY max(tick) DESC, max(missed.id) DESC LIMIT ${LISTED_MISSED_TICKS_MAX}`;

type ScheduledRow = Pick<ScheduledAction, "actionId" | "masterId" | "name" | "frequency"> & { timezone: string | null };
type SkippedOrFailedRow = Omit<SkippedOrFailedTicks, "from" | "to"> & { from: Date; to: Date };

export type ReadScheduleWeek = (appId: number) => Promise<ScheduleWeek>;

interface ScheduleWeekOptions {
  db: Db;
  now: () => number;
  defaultTimezone: string;
}

export function createScheduleWeekReader({ db, now, defaultTimezone }: ScheduleWeekOptions): ReadScheduleWeek {
  function toScheduledAction({ timezone, ...row }: ScheduledRow, from: Date, to: Date, max: number): ScheduledAction {
    const zone = timezone ?? defaultTimezone;
    const comingTicks = computeNextTicks(row.frequency, zone, from, max + 1).filter((tick) => tick < to);
    return {
      ...row,
      timezone: zone,
      description: describeFrequency(row.frequency),
      ticks: comingTicks.slice(0, max).map((tick) => tick.toISOString()),
      hasMore: comingTicks.length > max,
    };
  }

  return async (appId) => {
    const weekStart = new Date(now());
    const to = new Date(weekStart.getTime() + WEEK_MS);
    const scheduledRows = await rows<ScheduledRow>(db, SELECT_SCHEDULED_ACTIONS, [appId]);
    const listedRows = scheduledRows.slice(0, LISTED_ACTIONS_MAX);
    const { min, max } = TICKS_PER_ACTION;
    const ticksPerAction = Math.max(min, Math.min(max, Math.floor(TICKS_MAX / Math.max(1, listedRows.length))));
    const scheduled: ScheduledAction[] = [];
    for (const row of listedRows) {
      scheduled.push(toScheduledAction(row, weekStart, to, ticksPerAction));
      await yieldToEventLoop();
    }
    const since = new Date(weekStart.getTime() - WEEK_MS);
    const maxRunsPerMinute = ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE * availableParallelism();
    const crowdedMinutes = await rows<{ tick: Date; count: number }>(db, SELECT_CROWDED_MINUTES, [
      appId,
      maxRunsPerMinute,
    ]);
    const missedRows = await rows<SkippedOrFailedRow>(db, SELECT_SKIPPED_AND_FAILED_TICKS, [
      appId,
      since,
      defaultTimezone,
    ]);
    return {
      from: weekStart.toISOString(),
      to: to.toISOString(),
      scheduled,
      hasMore: scheduledRows.length > listedRows.length,
      crowded: crowdedMinutes.map(({ tick, count }) => ({ tick: tick.toISOString(), count })),
      missed: missedRows.map((row) => ({ ...row, from: row.from.toISOString(), to: row.to.toISOString() })),
    };
  };
}
