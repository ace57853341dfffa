/** Finds the past log events that a log trigger's filter would have matched. */
import type { DataSource } from "typeorm";
import type { LogWhere } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BACKTEST_EVENTS } from "../../limits.js";
import { parseLogWhere, WHERE_SHAPE } from "../../rules/trigger-input.js";
import { matchesLog } from "../../rules/trigger-match.js";
import { refuseUnknownFields } from "../../rules/unknown-fields.js";

/** An event that a filter would have matched. */
export interface MatchedEvent {
  id: number;
  type: string;
  dataSourceId: number | null;
  dataSourceEntryId: number | null;
  userId: number | null;
  createdAt: string;
}

export interface BacktestResult {
  /** Number of events that were compared: at most the app's last 1,000. */
  examined: number;
  matched: number;
  /** Most recent first. */
  events: MatchedEvent[];
}

const SELECT_RECENT_EVENTS = `
  SELECT id, type, data_source_id AS "dataSourceId", data_source_entry_id AS "dataSourceEntryId",
         user_id AS "userId", created_at AS "createdAt"
    FROM log_event WHERE app_id = $1 ORDER BY id DESC LIMIT ${BACKTEST_EVENTS}`;

function checkWhere(where: unknown): LogWhere {
  const parsedWhere = parseLogWhere(where);
  if ("fault" in parsedWhere) throw new ActionError("TRIGGERS_INVALID", parsedWhere.fault);
  refuseUnknownFields(where, WHERE_SHAPE, "where");
  return parsedWhere.where;
}

/** Checks the `where` of a log trigger against the app's last 1,000 events. @throws TRIGGERS_INVALID, REQUEST_INVALID */
export type RunBacktest = (appId: number, where: unknown) => Promise<BacktestResult>;

export const createBacktest =
  (db: DataSource): RunBacktest =>
  async (appId, where) => {
    const filter = checkWhere(where);
    const recentEvents = await rows<Omit<MatchedEvent, "createdAt"> & { createdAt: Date }>(db, SELECT_RECENT_EVENTS, [
      appId,
    ]);
    const matchingEvents = recentEvents.filter((event) => matchesLog(filter, event));
    const events = matchingEvents.map((event) => ({ ...event, createdAt: event.createdAt.toISOString() }));
    return { examined: recentEvents.length, matched: events.length, events };
  };
