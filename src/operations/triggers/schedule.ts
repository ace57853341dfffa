/**
 * Stores a run for each due tick (scheduled time) of a schedule: a queued run, or a skipped run with its reason. After a long outage, many
 * missed ticks share one skipped run.
 */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { NEW_RUN_STATE_SQL } from "../../data/run.js";
import { checkFrequency, checkTimezone, computeNextTicks } from "../../rules/schedule.js";
import { describeFrequency } from "../../rules/schedule-text.js";
import {
  COUNTED_MISSED_TICKS_MAX,
  computeDueTicks,
  computeNextTick,
  type DueTicks,
  TICK_MAX_LATENESS_MS,
} from "../../rules/ticks.js";
import { formatLocalTime } from "../../rules/zone-clock.js";
import { QUEUED_RUN_CHANNEL } from "../records/queue-limits.js";
import type { ServiceMetrics, TickResultLabel } from "../watch/measures.js";

const BATCH_SIZE = 100;
const MINUTE_MS = 60_000;
/** Delay before the next claim if a due schedule is left: another scheduler has locked it, or the database's clock is behind. */
const CLAIM_RETRY_DELAY_MS = 50;

const SKIP_REASONS = {
  running: "still running",
  down: "down at that time",
  late: `late by more than ${TICK_MAX_LATENESS_MS / 1000} s`,
  unpublished: "app unpublished",
  paused: "schedules paused",
} as const;

/** Returns the label of a tick in the metrics. An unknown reason gets the label `down`. */
const toMetricLabel = (reason: string | null): TickResultLabel => {
  if (reason === null) return "queued";
  const [label] = Object.entries(SKIP_REASONS).find(([, text]) => reason.startsWith(text)) ?? ["down"];
  return label as TickResultLabel;
};

/** $1 is this process's estimate of the database's time. A schedule must be due at `now()` too, because runs get `now()` as `queued_at`. */
const SELECT_DUE_SCHEDULES = `
  SELECT action_id AS "actionId", app_id AS "appId", frequency, timezone, next_tick AS "dueAt", coalesce(offset_ms, 0) AS "offsetMs"
    FROM schedule WHERE next_tick <= least($1, now()) ORDER BY next_tick LIMIT ${BATCH_SIZE} FOR UPDATE SKIP LOCKED`;

/** Selects the data that decides if a due tick starts a run. Read it after locking the schedules, to include runs of other schedulers. */
const SELECT_CIRCUMSTANCES = `
  SELECT (SELECT json_agg(action_id) FROM run
           WHERE action_id = ANY ($1) AND trigger = 'schedule' AND finished_at IS NULL) AS busy,
         (SELECT json_agg(id) FROM app WHERE id = ANY ($2) AND published_at IS NOT NULL) AS published,
         (SELECT json_agg(id) FROM app WHERE id = ANY ($2) AND schedules_paused_at IS NOT NULL) AS paused,
         (SELECT min(started_at) FROM instance WHERE 'scheduler' = ANY (roles) AND lease_until >= now()) AS "schedulerUpSince"`;

const WRITE_TICKS = `
  WITH written AS (
    INSERT INTO run (app_id, action_id, copy, trigger, payload, tick, tick_count, reason, state, finished_at,
                     waits_for)
    SELECT app_id, action_id, 'production', 'schedule', '{}', tick, tick_count, reason,
           ${NEW_RUN_STATE_SQL}, CASE WHEN reason IS NOT NULL THEN now() END,
           CASE WHEN EXISTS (SELECT FROM action WHERE action.id = t.action_id AND concurrency IS NOT NULL) THEN 'concurrency' END
      FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::int[], $5::text[])
           AS t (app_id, action_id, tick, tick_count, reason)
     -- No other process can insert the same tick now, because this transaction has locked the schedule.
     WHERE NOT EXISTS (SELECT FROM run WHERE run.action_id = t.action_id AND run.tick = t.tick)
    RETURNING app_id, state, waits_for)
  SELECT count(pg_notify('${QUEUED_RUN_CHANNEL}', app_id::text)) FROM written WHERE state = 'queued' AND waits_for IS NULL`;

const ADVANCE_SCHEDULES = `
  UPDATE schedule SET next_tick = t.next_tick
    FROM unnest($1::bigint[], $2::timestamptz[]) AS t (action_id, next_tick) WHERE schedule.action_id = t.action_id`;

/**
 * Counts the schedules of published apps whose next run starts at $1 or earlier, except paused ones. Each schedule counts once, even if
 * several of its ticks are due.
 */
const COUNT_DUE_TICKS = `
  SELECT count(*)::int AS ticks FROM schedule JOIN app ON app.id = schedule.app_id
   WHERE next_tick <= $1 AND published_at IS NOT NULL AND schedules_paused_at IS NULL`;

interface DueRow {
  actionId: number;
  appId: number;
  frequency: string;
  timezone: string | null;
  /** Time at which the run of the next tick must start: the tick plus the offset of the schedule. */
  dueAt: Date;
  /** Delay in milliseconds between a tick (scheduled time) and the start of its run. */
  offsetMs: number;
}

/**
 * Returns the tick (scheduled time) of a due schedule, without the offset. A process of the previous release may have stored `dueAt`
 * without the offset.
 */
function computeTick({ frequency, dueAt, offsetMs }: DueRow, timezone: string): Date {
  const tick = new Date(dueAt.getTime() - offsetMs);
  const justBefore = new Date(tick.getTime() - 1);
  return offsetMs > 0 && computeNextTick(frequency, timezone, justBefore).getTime() === tick.getTime() ? tick : dueAt;
}

interface ActionCircumstances {
  /** IDs of actions with a scheduled run that has not ended. */
  busyActionIds: ReadonlySet<number>;
  publishedAppIds: ReadonlySet<number>;
  pausedAppIds: ReadonlySet<number>;
  /** Start time of the live scheduler process that started first; null if there is none. */
  schedulerUpSince: Date | null;
}

/** Run to store for a tick: a queued run if `reason` is null, otherwise a skipped run. */
interface TickResult {
  appId: number;
  actionId: number;
  tick: Date;
  count: number;
  reason: string | null;
}

/**
 * Returns the runs to store for the due ticks of a schedule: at most one queued run, and skipped runs for all other ticks. Queues a run
 * only if the app is published, its schedules are not paused, and all earlier scheduled runs of the action have ended.
 */
function decideTickResults(
  due: DueRow,
  dueTicks: DueTicks,
  { busyActionIds, publishedAppIds, pausedAppIds, schedulerUpSince }: ActionCircumstances,
): TickResult[] {
  const { appId, actionId } = due;
  const offReason = !publishedAppIds.has(appId)
    ? SKIP_REASONS.unpublished
    : pausedAppIds.has(appId)
      ? SKIP_REASONS.paused
      : null;
  let isRunning = busyActionIds.has(actionId);
  const missedResults = dueTicks.missed.map(({ tick, count, isMinimum }) => {
    const missedReason = schedulerUpSince !== null && tick >= schedulerUpSince ? SKIP_REASONS.late : SKIP_REASONS.down;
    const reason = isMinimum
      ? `${missedReason}; more than ${COUNTED_MISSED_TICKS_MAX} ticks, not counted further`
      : missedReason;
    return { appId, actionId, tick, count, reason: offReason ?? reason };
  });
  const currentResults = dueTicks.current.map((tick) => {
    const reason = offReason ?? (isRunning ? SKIP_REASONS.running : null);
    isRunning = true;
    return { appId, actionId, tick, count: 1, reason };
  });
  return [...missedResults, ...currentResults];
}

export interface SchedulePreview {
  description: string;
  timezone: string;
  ticks: { utc: string; local: string }[];
}

interface SchedulerOptions {
  db: Db;
  now: () => number;
  defaultTimezone: string;
  measures: Pick<ServiceMetrics, "countTicks">;
}

async function readCircumstances(manager: EntityManager, due: DueRow[]): Promise<ActionCircumstances> {
  const ids = [due.map(({ actionId }) => actionId), [...new Set(due.map(({ appId }) => appId))]];
  const [circumstanceRow] = await rows<
    Record<"busy" | "published" | "paused", number[] | null> & { schedulerUpSince: Date | null }
  >(manager, SELECT_CIRCUMSTANCES, ids);
  const { busy, published, paused, schedulerUpSince } = circumstanceRow!;
  return {
    busyActionIds: new Set(busy),
    publishedAppIds: new Set(published),
    pausedAppIds: new Set(paused),
    schedulerUpSince,
  };
}

export class Scheduler {
  constructor(private readonly options: SchedulerOptions) {}

  /** Claims up to BATCH_SIZE due schedules and stores runs for their ticks. Returns the number of claimed schedules. */
  private async claimBatch(moment: Date): Promise<number> {
    const { db, defaultTimezone, measures } = this.options;
    const tickResults: TickResult[] = [];
    const claimedSchedules = await db.transaction(async (manager) => {
      const dueRows = await rows<DueRow>(manager, SELECT_DUE_SCHEDULES, [moment]);
      if (dueRows.length === 0) return 0;
      const circumstances = await readCircumstances(manager, dueRows);
      const nextStartTimes: string[] = [];
      for (const row of dueRows) {
        const timezone = row.timezone ?? defaultTimezone;
        const tick = computeTick(row, timezone);
        const shiftedNow = new Date(moment.getTime() - (row.dueAt.getTime() - tick.getTime()));
        const dueTicks = computeDueTicks(row.frequency, timezone, tick, shiftedNow);
        tickResults.push(...decideTickResults(row, dueTicks, circumstances));
        nextStartTimes.push(new Date(dueTicks.next.getTime() + row.offsetMs).toISOString());
        // After a long pause, a schedule has thousands of missed ticks. Computing all of them at once would block the event loop.
        if (dueTicks.missed.length > 1) await yieldToEventLoop();
      }
      await rows(manager, WRITE_TICKS, [
        tickResults.map(({ appId }) => appId),
        tickResults.map(({ actionId }) => actionId),
        tickResults.map(({ tick }) => tick.toISOString()),
        tickResults.map(({ count }) => count),
        tickResults.map(({ reason }) => reason),
      ]);
      await rows(manager, ADVANCE_SCHEDULES, [dueRows.map(({ actionId }) => actionId), nextStartTimes]);
      return dueRows.length;
    });
    for (const { reason, count } of tickResults) measures.countTicks(toMetricLabel(reason), count);
    return claimedSchedules;
  }

  private async readFirstTick(): Promise<Date | null> {
    const [row] = await rows<{ next: Date | null }>(this.options.db, "SELECT min(next_tick) AS next FROM schedule");
    return row!.next;
  }

  /** Stores the runs of all due ticks. Returns the time of the next tick as Unix time in milliseconds; null if there is no next tick. */
  async claimDueSchedules(): Promise<number | null> {
    const { now } = this.options;
    const moment = new Date(now());
    while ((await this.claimBatch(moment)) === BATCH_SIZE);
    const first = await this.readFirstTick();
    return first && Math.max(first.getTime(), first <= moment ? now() + CLAIM_RETRY_DELAY_MS : 0);
  }

  /** Returns for how many milliseconds the oldest due tick has waited; 0 if no tick is due. */
  async readLagMs(): Promise<number> {
    const first = await this.readFirstTick();
    return first ? Math.max(0, this.options.now() - first.getTime()) : 0;
  }

  /**
   * Returns the number of schedules with a tick that is due, or will be due within the next minute. Does not count schedules of unpublished
   * or paused apps.
   */
  async countDueTicks(): Promise<number> {
    const { db, now } = this.options;
    const [row] = await rows<{ ticks: number }>(db, COUNT_DUE_TICKS, [new Date(now() + MINUTE_MS)]);
    return row!.ticks;
  }

  /** Returns the next `count` ticks of a schedule. @throws FREQUENCY_INVALID, FREQUENCY_TOO_FREQUENT, TIMEZONE_INVALID */
  preview(frequency: unknown, zone: unknown, count: number): SchedulePreview {
    const { now, defaultTimezone } = this.options;
    checkFrequency(frequency);
    const timezone = zone ?? defaultTimezone;
    checkTimezone(timezone);
    const ticks = computeNextTicks(frequency, timezone, new Date(now()), count);
    return {
      description: describeFrequency(frequency),
      timezone,
      ticks: ticks.map((tick) => ({ utc: tick.toISOString(), local: formatLocalTime(tick, timezone) })),
    };
  }
}
