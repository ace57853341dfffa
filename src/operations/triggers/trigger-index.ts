/**
 * The two tables by which a tick or an event finds what it starts: schedules and log triggers of active production copies.
 * Kept in the transaction in which a copy is published. Starts nothing.
 */
import type { ActionRow } from "../../data/action.js";
import type { RunWait } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import { jitterOffset, nextTick } from "../../rules/ticks.js";

/** Channel of the notice that schedules have changed. */
export const SCHEDULE_CHANNEL = "svc_schedule";

/* A tick that is already due stays: its claimer records it, and continues with the new frequency. */
const KEEP_SCHEDULE = `
  INSERT INTO schedule AS kept (action_id, app_id, frequency, timezone, next_tick, offset_ms) VALUES ($1, $2, $3, $4, $5, $7)
  ON CONFLICT (action_id) DO UPDATE
     SET frequency = excluded.frequency, timezone = excluded.timezone, offset_ms = excluded.offset_ms,
         next_tick = CASE WHEN kept.next_tick <= $6 THEN kept.next_tick ELSE excluded.next_tick END`;

const KEEP_LOG_TRIGGERS = `
  INSERT INTO log_trigger (app_id, type, data_source_id, action_id, waits_for)
  SELECT $1, type, data_source_id, $2, $5 FROM unnest($3::text[], $4::bigint[]) AS wanted (type, data_source_id)
  ON CONFLICT DO NOTHING`;

export type TriggerIndex = ReturnType<typeof createTriggerIndex>;

type Copy = Pick<
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

/** Only production copies start by themselves, on the server (specification, "Which version runs"). */
const startsByItself = ({ masterId, active, environment, actionVersion }: Copy): boolean =>
  masterId !== null && active && environment !== "client" && actionVersion === "v3";

/** What the runs that events start wait for before they wait for a place. */
const waitOf = ({ concurrency, debounce }: Copy): RunWait | null => {
  if (debounce) return "debounce";
  return concurrency ? "concurrency" : null;
};

export function createTriggerIndex(options: { now: () => number; defaultTimezone: string }) {
  const { now, defaultTimezone } = options;

  async function applySchedule(executor: Executor, copy: Copy): Promise<void> {
    const { id, appId, frequency, timezone, triggers, jitterSeconds } = copy;
    if (!startsByItself(copy) || frequency === null || !triggers.some(({ trigger }) => trigger === "schedule")) {
      await rows(executor, "DELETE FROM schedule WHERE action_id = $1", [id]);
      return;
    }
    const moment = new Date(now());
    const next = nextTick(frequency, timezone ?? defaultTimezone, moment);
    const offset = jitterOffset(id, jitterSeconds);
    const dueAt = new Date(next.getTime() + offset);
    await rows(executor, KEEP_SCHEDULE, [id, appId, frequency, timezone, dueAt, moment, offset || null]);
    await rows(executor, `SELECT pg_notify('${SCHEDULE_CHANNEL}', '')`);
  }

  async function applyLogTriggers(executor: Executor, copy: Copy): Promise<void> {
    const { id, appId, triggers } = copy;
    await rows(executor, "DELETE FROM log_trigger WHERE action_id = $1", [id]);
    if (!startsByItself(copy)) return;
    const wheres = triggers.filter((one) => one.trigger === "log").map(({ where }) => where);
    if (wheres.length === 0) return;
    const types = wheres.map(({ type }) => type);
    const sources = wheres.map(({ dataSourceId }) => dataSourceId ?? 0);
    await rows(executor, KEEP_LOG_TRIGGERS, [appId, id, types, sources, waitOf(copy)]);
  }

  return {
    /**
     * To be called with a production copy as it now is, in the transaction that changed it. One that is deleted takes its rows along.
     */
    async apply(executor: Executor, copy: Copy): Promise<void> {
      await applySchedule(executor, copy);
      await applyLogTriggers(executor, copy);
    },
  };
}
