/** Finds past log events that would have started an action with a certain log trigger, by comparing them with the trigger's filter. */
import type { LogWhere } from "../../data/action-types.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BACKTEST_EVENTS_MAX } from "../../limits.js";
import { parseLogWhere, TRIGGER_WHERE_SHAPE } from "../../rules/trigger-input.js";
import { matchesLogTrigger } from "../../rules/trigger-match.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";

export interface MatchedEvent {
  id: number;
  type: string;
  dataSourceId: number | null;
  dataSourceEntryId: number | null;
  userId: number | null;
  createdAt: string;
}

export interface BacktestResult {
  /** Number of past events with which the filter was compared: at most BACKTEST_EVENTS_MAX. */
  examined: number;
  matched: number;
  /** The most recent event comes first. */
  events: MatchedEvent[];
}

const SELECT_RECENT_EVENTS = `
  SELECT id, type, data_source_id AS "dataSourceId", data_source_entry_id AS "dataSourceEntryId",
         user_id AS "userId", created_at AS "createdAt"
    FROM log_event WHERE app_id = $1 ORDER BY id DESC LIMIT ${BACKTEST_EVENTS_MAX}`;

function validateLogFilter(where: unknown): LogWhere {
  const parsedWhere = parseLogWhere(where);
  if ("fault" in parsedWhere) throw new ActionError("TRIGGERS_INVALID", parsedWhere.fault);
  refuseUnknownFields(where, TRIGGER_WHERE_SHAPE, "where");
  return parsedWhere.where;
}

/** Compares the filter of a log trigger with the app's most recent log events. @throws TRIGGERS_INVALID, REQUEST_INVALID */
export type RunBacktest = (appId: number, where: unknown) => Promise<BacktestResult>;

export const createBacktestRunner =
  (db: Db): RunBacktest =>
  async (appId, where) => {
    const filter = validateLogFilter(where);
    const recentEvents = await rows<Omit<MatchedEvent, "createdAt"> & { createdAt: Date }>(db, SELECT_RECENT_EVENTS, [
      appId,
    ]);
    const matchingEvents = recentEvents.filter((event) => matchesLogTrigger(filter, event));
    const events = matchingEvents.map((event) => ({ ...event, createdAt: event.createdAt.toISOString() }));
    return { examined: recentEvents.length, matched: events.length, events };
  };
