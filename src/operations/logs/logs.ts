/** Execution log entries: composes their specified shape, lists them, finds the one that a notice names. */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { preparedRows, rows } from "../../data/database.js";
import type { ExecutionLogType } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { page } from "../../rules/page.js";

/** Channel of the notice `appId:logId:runId`, sent as an entry is written. */
export const LOG_CHANNEL = "svc_log";

/** An execution log entry (specification, Execution log entry). */
export interface LogEntry {
  id: number;
  type: ExecutionLogType;
  createdAt: string;
  data: Record<string, unknown>;
}

export interface LogOptions {
  id?: number;
  where?: { type?: LogEntry["type"]; data?: { taskId?: number } };
  limit?: number;
  offset?: number;
}

export interface ScriptError {
  name: string;
  message: string;
  stack: string;
}

/** What an entry says of a run; texts are JSON. `durationMs` is wall time. `payload` null stands for the run's own. */
export interface EntryFacts {
  trigger: TriggerType;
  runOn: "server" | "client";
  taskId: number;
  payload: string | null;
  durationMs: number;
  /** The run whose payload was run again. */
  replayOf?: number | null;
  outcome: { ok: true; data: string | undefined } | { ok: false; error: ScriptError };
}

/** An entry's `data` as it is stored. */
export interface EntryData {
  /** JSON. */
  text: string;
  /** Where in it `null` stands for the run's payload, counted from 1; null: it has its own. */
  payloadAt: number | null;
}

const PAYLOAD_KEY = '"payload":';

/**
 * The entry's `data` (specification, Execution log entry): `result` stays away on successful scheduled runs;
 * on failure it repeats the error in the failure's shape.
 */
export function entryData(facts: EntryFacts): EntryData {
  const { trigger, runOn, taskId, payload, durationMs, replayOf, outcome } = facts;
  const scheduled = trigger === "schedule";
  const parts = [
    `"mode":"${scheduled ? "scheduled" : "on-demand"}"`,
    `"runOn":"${runOn}"`,
    `"taskId":${taskId}`,
    `${PAYLOAD_KEY}${payload}`,
    `"duration":${Math.max(0, Math.round(durationMs))}`,
    `"actionVersion":"v3"`,
  ];
  if (replayOf) parts.push(`"replayOf":${replayOf}`);
  if (!outcome.ok) {
    const error = JSON.stringify(outcome.error);
    parts.push(`"error":${error}`, `"result":{"error":${error},"success":false,"errorObject":{}}`);
  } else if (!scheduled) {
    parts.push(`"result":{${outcome.data === undefined ? "" : `"data":${outcome.data},`}"success":true}`);
  }
  const text = `{${parts.join(",")}}`;
  // Nothing that a caller gave stands before it.
  return { text, payloadAt: payload === null ? text.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length + 1 : null };
}

interface EntryRow {
  id: number;
  type: LogEntry["type"];
  createdAt: Date;
  /** JSON text. */
  data: string;
}

const ENTRY = `id, type, created_at AS "createdAt", svc_entry_data(data, payload_at, run_id) AS data`;
const toEntry = (row: EntryRow): LogEntry => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  data: JSON.parse(row.data),
});

const record = (value: unknown, name: string): Record<string, unknown> => {
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ActionError("REQUEST_INVALID", `${name} must be an object`);
};

function taskIds(options: Record<string, unknown>, data: Record<string, unknown>): number[] {
  const ids = [
    ["id", options["id"]],
    ["where.data.taskId", data["taskId"]],
  ] as const;
  return ids.flatMap(([name, value]) => {
    if (value === undefined || value === null) return [];
    if (Number.isSafeInteger(value)) return [value as number];
    throw new ActionError("REQUEST_INVALID", `${name} must be a number`);
  });
}

const TYPES: unknown[] = ["app.task.completed", "app.task.failed"];

/** @throws REQUEST_INVALID unless nothing or a type of execution log entries came */
export function checkLogType(type: unknown, field: string): void {
  if (type === undefined || type === null || TYPES.includes(type)) return;
  throw new ActionError("REQUEST_INVALID", `${field} must be app.task.completed or app.task.failed`);
}

export type Logs = ReturnType<typeof createLogs>;

export function createLogs(db: DataSource) {
  return {
    /**
     * The app's entries, most recent first (specification, getLogs); `count` is how many match in all.
     * @throws REQUEST_INVALID
     */
    async list(appId: number, input: unknown): Promise<{ count: number; logs: LogEntry[] }> {
      const options = record(input, "the body");
      const where = record(options["where"], "where");
      const data = record(where["data"], "where.data");
      const { limit, offset } = page(options);
      const type = where["type"] ?? null;
      checkLogType(type, "where.type");
      const ids = taskIds(options, data);
      const ofTasks = ids.map((_, index) => `AND task_id = $${index + 3}`).join(" ");
      const matching = `app_id = $1 AND ($2::text IS NULL OR type = $2) ${ofTasks}`;
      const parameters = [appId, type, ...ids];
      const [total] = await rows<{ count: number }>(
        db,
        `SELECT count(*) FROM execution_log WHERE ${matching}`,
        parameters,
      );
      const found = await rows<EntryRow>(
        db,
        `SELECT ${ENTRY} FROM execution_log WHERE ${matching} ORDER BY id DESC
          LIMIT $${ids.length + 3} OFFSET $${ids.length + 4}`,
        [...parameters, limit, offset],
      );
      return { count: total!.count, logs: found.map(toEntry) };
    },

    /** The entries of those ids in that order, each with its app; without those that are gone. */
    async findAll(ids: readonly number[]): Promise<{ appId: number; entry: LogEntry }[]> {
      const sql = `SELECT app_id AS "appId", ${ENTRY} FROM execution_log WHERE id = ANY ($1::bigint[])`;
      const found = await preparedRows<EntryRow & { appId: number }>(db, "log-entries", sql, [ids]);
      const byId = new Map(found.map(({ appId, ...row }) => [row.id, { appId, entry: toEntry(row) }]));
      return ids.flatMap((id) => byId.get(id) ?? []);
    },

    /** What a follower missed: the app's entries after the one of `id` and not before `since`, oldest first, the newest 1000. */
    async missed(appId: number, id: number, since: Date): Promise<LogEntry[]> {
      const found = await rows<EntryRow>(
        db,
        `SELECT ${ENTRY} FROM execution_log WHERE app_id = $1 AND id > $2 AND created_at >= $3 ORDER BY id DESC LIMIT 1000`,
        [appId, id, since],
      );
      return found.reverse().map(toEntry);
    },

    async ofRun(runId: number): Promise<LogEntry | null> {
      const [row] = await rows<EntryRow>(db, `SELECT ${ENTRY} FROM execution_log WHERE run_id = $1`, [runId]);
      return row ? toEntry(row) : null;
    },
  };
}
