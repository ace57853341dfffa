/**
 * Maintains the tables `schedule` and `log_trigger`. They list the live actions that start without a caller. The transaction that changes a
 * live version also changes these tables.
 */
import type { ActionRow } from "../../data/action.js";
import type { RunWaitReason } from "../../data/action-types.js";
import { rows, type SqlClient } from "../../data/database.js";
import { computeJitterDelayMs, computeNextTick } from "../../rules/ticks.js";

/** PostgreSQL channel. A message means that schedules have changed. */
export const SCHEDULE_CHANNEL = "svc_schedule";

/**
 * Inserts or updates a schedule. Keeps the stored `next_tick` if its tick (scheduled time) has passed, but its run was not stored yet. With
 * jitter, a run starts up to five minutes after its tick.
 */
const UPSERT_SCHEDULE = `
  INSERT INTO schedule AS stored (action_id, app_id, frequency, timezone, next_tick, offset_ms) VALUES ($1, $2, $3, $4, $5, $7)
  ON CONFLICT (action_id) DO UPDATE
     SET frequency = excluded.frequency, timezone = excluded.timezone, offset_ms = excluded.offset_ms,
         next_tick = CASE WHEN stored.next_tick - coalesce(stored.offset_ms, 0) * interval '1 millisecond' <= $6
                          THEN stored.next_tick ELSE excluded.next_tick END`;

const INSERT_LOG_TRIGGERS = `
  INSERT INTO log_trigger (app_id, type, data_source_id, action_id, waits_for)
  SELECT $1, type, data_source_id, $2, $5 FROM unnest($3::text[], $4::bigint[]) AS wanted (type, data_source_id)
  ON CONFLICT DO NOTHING`;

type IndexedAction = Pick<
  ActionRow,
  | "id"
  | "appId"
  | "masterId"
  | "active"
  | "environment"
  | "actionVersion"
  | "triggers"
  | "frequency"
  | "timezone"
  | "concurrency"
  | "debounce"
  | "jitterSeconds"
>;

const startsWithoutCaller = ({ masterId, active, environment, actionVersion }: IndexedAction): boolean =>
  masterId !== null && active && environment !== "client" && actionVersion === "v3";

const selectWaitReason = ({ concurrency, debounce }: IndexedAction): RunWaitReason | null => {
  if (debounce) return "debounce";
  return concurrency ? "concurrency" : null;
};

async function applyLogTriggers(executor: SqlClient, action: IndexedAction): Promise<void> {
  const { id, appId, triggers } = action;
  await rows(executor, "DELETE FROM log_trigger WHERE action_id = $1", [id]);
  if (!startsWithoutCaller(action)) return;
  const logConditions = triggers.filter((trigger) => trigger.trigger === "log").map(({ where }) => where);
  if (logConditions.length === 0) return;
  const types = logConditions.map(({ type }) => type);
  const dataSourceIds = logConditions.map(({ dataSourceId }) => dataSourceId ?? 0);
  await rows(executor, INSERT_LOG_TRIGGERS, [appId, id, types, dataSourceIds, selectWaitReason(action)]);
}

export class TriggerIndex {
  constructor(private readonly options: { now: () => number; defaultTimezone: string }) {}

  private async applySchedule(executor: SqlClient, action: IndexedAction): Promise<void> {
    const { now, defaultTimezone } = this.options;
    const { id, appId, frequency, timezone, triggers, jitterSeconds } = action;
    if (!startsWithoutCaller(action) || frequency === null || !triggers.some(({ trigger }) => trigger === "schedule")) {
      await rows(executor, "DELETE FROM schedule WHERE action_id = $1", [id]);
      return;
    }
    const indexedAt = new Date(now());
    const nextTick = computeNextTick(frequency, timezone ?? defaultTimezone, indexedAt);
    const jitterMs = computeJitterDelayMs(id, jitterSeconds);
    const dueAt = new Date(nextTick.getTime() + jitterMs);
    await rows(executor, UPSERT_SCHEDULE, [id, appId, frequency, timezone, dueAt, indexedAt, jitterMs || null]);
    await rows(executor, `SELECT pg_notify('${SCHEDULE_CHANNEL}', '')`);
  }

  /**
   * Writes the rows of a live version. Call this method in the transaction that changes the live version. The database deletes the rows of
   * a deleted action.
   */
  async apply(executor: SqlClient, action: IndexedAction): Promise<void> {
    await this.applySchedule(executor, action);
    await applyLogTriggers(executor, action);
  }
}
