/** Builds, stores and reads the entries of the execution log. A run that has ended has at most one entry. */
import type { TriggerType } from "../../data/action-types.js";
import { countRows } from "../../data/count.js";
import { createPreparedStatementName, type Db, queryPreparedRows, rows } from "../../data/database.js";
import type { ExecutionLogType } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/describe-value.js";
import { readJsonFieldText } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import {
  createRowCursor,
  parseLimitAndOffset,
  parseRowCursor,
  type ReserveResponseBytes,
  type SizedRow,
  selectIdsThatFitOnPage,
} from "../../rules/page.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "../../rules/unknown-fields.js";

/** PostgreSQL channel. A message `appId:logId:runId` reports a new entry of the execution log. */
export const LOG_CHANNEL = "svc_log";

export interface LogEntry {
  id: number;
  type: ExecutionLogType;
  createdAt: string;
  /** JSON text of the entry, as stored. It is not parsed, because it can contain a result of several megabytes. */
  data: JsonText;
}

export interface LogPage {
  /** Number of matching entries on all pages. */
  count: number;
  /** False if `count` is an estimate, because more than EXACT_COUNT_MAX_ROWS entries match; absent otherwise. */
  countIsExact?: false;
  logs: LogEntry[];
  /** Cursor of the next page; absent on the last page. */
  nextCursor?: string;
}

export interface ScriptError {
  name: string;
  message: string;
  stack: string;
}

/**
 * Outcome of a run. `data` is the return value of the action's function `execute` as JSON (a long value as UTF-8 bytes); undefined if there
 * is none. `isResponse` is true if the function returned the value of `Svc.App.V3.Actions.response()`. `cause` is absent if the code
 * failed; "aborted" if this process stopped or lost the run.
 */
export type RunOutcome =
  | { ok: true; data: string | Buffer | undefined; isResponse?: true }
  | { ok: false; error: ScriptError; cause?: "timeout" | "cancelled" | "aborted" | undefined };

/**
 * Data for the log entry of a run. `durationMs` is elapsed time, not CPU time. `payload` is JSON; if it is null, the entry refers to the
 * stored payload.
 */
export interface LogEntryFacts {
  trigger: TriggerType;
  runOn: "server" | "client";
  taskId: number;
  payload: string | null;
  durationMs: number;
  /** ID of the earlier run whose payload this run uses again; null for other runs. */
  replayOf?: number | null;
  outcome: RunOutcome;
}

export interface LogEntryData {
  /** JSON of the entry, as UTF-8 bytes if the run's result is long. */
  text: string | Buffer;
  /** Position (from 1) of the `null` in `text` that stands for the stored payload; null if `text` contains the payload itself. */
  payloadAt: number | null;
}

const PAYLOAD_KEY = '"payload":';
const RESULT_START = '"result":{"data":';
const RESULT_END = ',"success":true}}';

/** Appends the run's result or error to `head` (the beginning of the log entry's JSON), and closes the JSON object. */
function appendRunResult(head: string, outcome: RunOutcome, isScheduled: boolean): string | Buffer {
  if (!outcome.ok) {
    const error = JSON.stringify(outcome.error);
    return `${head},"error":${error},"result":{"error":${error},"success":false,"errorObject":{}}}`;
  }
  const { data } = outcome;
  if (isScheduled) return `${head}}`;
  if (data === undefined) return `${head},"result":{"success":true}}`;
  const start = `${head},${RESULT_START}`;
  if (typeof data === "string") return `${start}${data}${RESULT_END}`;
  return Buffer.concat([Buffer.from(start), data, Buffer.from(RESULT_END)]);
}

/**
 * Returns the stored form of a log entry. Only successful scheduled runs have no `result`. A failed run has its error in `error` and again
 * in `result.error`.
 */
export function buildLogEntryData(facts: LogEntryFacts): LogEntryData {
  const { trigger, runOn, taskId, payload, durationMs, replayOf, outcome } = facts;
  const isScheduled = trigger === "schedule";
  const entryParts = [
    `"mode":"${isScheduled ? "scheduled" : "on-demand"}"`,
    `"runOn":"${runOn}"`,
    `"taskId":${taskId}`,
    `${PAYLOAD_KEY}${payload}`,
    `"duration":${Math.max(0, Math.round(durationMs))}`,
    `"actionVersion":"v3"`,
  ];
  if (replayOf) entryParts.push(`"replayOf":${replayOf}`);
  if (outcome.ok && outcome.isResponse) entryParts.push('"httpResponse":true');
  const head = `{${entryParts.join(",")}`;
  // The first occurrence is the key itself, because no text of a caller precedes it in the JSON.
  const payloadAt = payload === null ? head.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length + 1 : null;
  return { text: appendRunResult(head, outcome, isScheduled), payloadAt };
}

/**
 * Returns the JSON of a successful run's result; undefined if there is none. If `text` is cut off, the returned JSON can be cut off too.
 */
export function readResultFromLogEntry(text: string): string | undefined {
  if (text.startsWith("null", text.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length)) {
    // The first occurrence is the beginning of the result, because no text of a caller precedes it in the JSON.
    const at = text.indexOf(RESULT_START);
    if (at < 0) return undefined;
    return text.slice(at + RESULT_START.length, text.endsWith(RESULT_END) ? -RESULT_END.length : undefined);
  }
  const result = readJsonFieldText(text, "result");
  return result && readJsonFieldText(result, "data");
}

interface LogEntryRow {
  id: number;
  type: LogEntry["type"];
  createdAt: Date;
  data: string;
}

const ENTRY_COLUMNS = `id, type, created_at AS "createdAt", svc_entry_data(data, payload_at, run_id) AS data`;
/** SQL for the bytes of a log entry with its payload. The payload can be stored with the run, or with the event that started the run. */
const ENTRY_BYTES_SQL = `bytes + CASE WHEN payload_at IS NULL THEN 0 ELSE coalesce(
  (SELECT coalesce(run.payload_bytes, (SELECT 3 * octet_length(event.data::text) + 600 FROM log_event event
                                        WHERE event.id = run.event_id))
     FROM run WHERE run.id = execution_log.run_id), 2) END AS bytes`;
const toLogEntry = ({ id, type, createdAt, data }: LogEntryRow): LogEntry => ({
  id,
  type,
  createdAt: createdAt.toISOString(),
  data: new JsonText(data),
});

/** A log entry with the IDs of its app and action. Subscribers filter by these IDs. */
export interface LogEntryEvent {
  appId: number;
  taskId: number;
  entry: LogEntry;
}

const requireObject = (value: unknown, name: string): Record<string, unknown> => {
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ActionError("REQUEST_INVALID", `${name} must be an object (got ${describeValue(value)})`);
};

function parseTaskIds(options: Record<string, unknown>, data: Record<string, unknown>): number[] {
  const ids = [
    ["id", options["id"]],
    ["where.data.taskId", data["taskId"]],
  ] as const;
  return ids.flatMap(([name, value]) => {
    if (value === undefined || value === null) return [];
    if (Number.isSafeInteger(value)) return [value as number];
    throw new ActionError("REQUEST_INVALID", `"${name}" must be an integer (got ${describeValue(value)})`);
  });
}

const LOG_OPTIONS_SHAPE: Shape = {
  fields: {
    ...createFlatShape(["id", "limit", "offset", "cursor"]).fields,
    where: { fields: { type: null, data: createFlatShape(["taskId"]) } },
  },
};

const LOG_ENTRY_TYPES: unknown[] = ["app.task.completed", "app.task.failed"];

/** Checks that a type of log entries is known or missing. @throws REQUEST_INVALID for an unknown type */
export function checkLogEntryType(type: unknown, field: string): void {
  if (type === undefined || type === null || LOG_ENTRY_TYPES.includes(type)) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `"${field}" must be "app.task.completed" or "app.task.failed" (got ${describeValue(type)})`,
  );
}

/** Builds the SQL conditions for the filters in `options`, and their parameters. @throws ActionError REQUEST_INVALID */
function buildConditions(
  appId: number,
  options: Record<string, unknown>,
): { conditions: string[]; parameters: unknown[] } {
  const where = requireObject(options["where"], "where");
  const data = requireObject(where["data"], "where.data");
  const type = where["type"] ?? null;
  checkLogEntryType(type, "where.type");
  const ids = parseTaskIds(options, data);
  const conditions = ["app_id = $1", ...ids.map((_, index) => `task_id = $${index + 2}`)];
  // The type is part of the SQL text, so that PostgreSQL can use the index of failed runs.
  if (type !== null) conditions.push(`type = '${type}'`);
  return { conditions, parameters: [appId, ...ids] };
}

/** Reads the entries of the execution log. */
export class ExecutionLogs {
  constructor(private readonly db: Db) {}

  private async findByIds(ids: readonly number[]): Promise<LogEntryEvent[]> {
    if (ids.length === 0) return [];
    // With both bounds, PostgreSQL reads only the partitions that contain the IDs.
    const sql = `SELECT app_id AS "appId", task_id AS "taskId", ${ENTRY_COLUMNS} FROM execution_log
      WHERE id = ANY ($1::bigint[]) AND id BETWEEN $2 AND $3`;
    const values = [ids, Math.min(...ids), Math.max(...ids)];
    const logRows = await queryPreparedRows<LogEntryRow & Omit<LogEntryEvent, "entry">>(
      this.db,
      "log-entries",
      sql,
      values,
    );
    const byId = new Map(
      logRows.map((row) => [row.id, { appId: row.appId, taskId: row.taskId, entry: toLogEntry(row) }]),
    );
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /** Returns the ID of a run's log entry; null if it has none. Rows of old runs do not contain this ID, so this searches the entries. */
  private async findIdOfRun(runId: number): Promise<number | null> {
    const sql = "SELECT log_id AS id, finished_at IS NOT NULL AS ended FROM run WHERE id = $1";
    const [run] = await queryPreparedRows<{ id: number | null; ended: boolean }>(this.db, "entry-of-run", sql, [runId]);
    if (run && (run.id !== null || !run.ended)) return run.id;
    const selectEntryIdSql = "SELECT id FROM execution_log WHERE run_id = $1 LIMIT 1";
    return (await queryPreparedRows<{ id: number }>(this.db, "entry-by-run", selectEntryIdSql, [runId]))[0]?.id ?? null;
  }

  /** Reads the rows of a page, and one more row that shows if another page follows. */
  private async readPageRows<Row>(sql: string, parameters: unknown[], limit: number, offset: number): Promise<Row[]> {
    const text = `${sql} LIMIT $${parameters.length + 1} OFFSET $${parameters.length + 2}`;
    return queryPreparedRows<Row>(this.db, createPreparedStatementName(text), text, [...parameters, limit + 1, offset]);
  }

  /**
   * Lists the app's log entries, the newest first. A page has fewer than `limit` entries if it would exceed LIST_PAGE_MAX_BYTES. `reserve`
   * reserves memory for the page.
   * @throws ActionError REQUEST_INVALID, and errors of `reserve`
   */
  async list(appId: number, input: unknown, reserve?: ReserveResponseBytes): Promise<LogPage> {
    const options = requireObject(input, "the body");
    const { limit, offset } = parseLimitAndOffset(options);
    const cursorId = parseRowCursor(options["cursor"]);
    const { conditions, parameters } = buildConditions(appId, options);
    refuseUnknownFields(options, LOG_OPTIONS_SHAPE);
    const { count, exact } = await countRows(this.db, `execution_log WHERE ${conditions.join(" AND ")}`, parameters);
    // With a cursor, PostgreSQL skips the partitions that contain only newer entries.
    const pageConditions = cursorId === null ? conditions : [...conditions, `id < $${parameters.length + 1}`];
    const sql = `SELECT id, ${ENTRY_BYTES_SQL} FROM execution_log WHERE ${pageConditions.join(" AND ")} ORDER BY id DESC`;
    const pageParameters = cursorId === null ? parameters : [...parameters, cursorId];
    const entrySizes = await this.readPageRows<SizedRow>(sql, pageParameters, limit, offset);
    const pageIds = await selectIdsThatFitOnPage(entrySizes.slice(0, limit), reserve);
    const logs = (await this.findByIds(pageIds)).map(({ entry }) => entry);
    const hasMore = pageIds.length > 0 && pageIds.length < entrySizes.length;
    return {
      count,
      ...(!exact && { countIsExact: false }),
      logs,
      ...(hasMore && { nextCursor: createRowCursor(pageIds.at(-1)!) }),
    };
  }

  /**
   * Returns the entries with these IDs, in this order, up to LIST_PAGE_MAX_BYTES. Skips IDs without an entry. `remainingIds` are the IDs of
   * the entries that exceed this size.
   */
  async findFitting(ids: readonly number[]): Promise<{ entries: LogEntryEvent[]; remainingIds: readonly number[] }> {
    const entrySizes = await queryPreparedRows<SizedRow>(
      this.db,
      "log-entry-sizes",
      `SELECT id, ${ENTRY_BYTES_SQL} FROM unnest($1::bigint[]) WITH ORDINALITY AS requested (id, place) JOIN execution_log USING (id)
          ORDER BY place`,
      [ids],
    );
    const pageIds = await selectIdsThatFitOnPage(entrySizes);
    const remainingIds = entrySizes.slice(pageIds.length).map(({ id }) => id);
    return { entries: await this.findByIds(pageIds), remainingIds };
  }

  /** Returns the ID of the newest entry of all apps; 0 if there are no entries. */
  async readNewestId(): Promise<number> {
    const sql = "SELECT id FROM execution_log ORDER BY id DESC LIMIT 1";
    return (await queryPreparedRows<{ id: number }>(this.db, "newest-log-id", sql, []))[0]?.id ?? 0;
  }

  /** Returns up to 1,000 IDs of log entries above `id`, of all apps, in ascending order. */
  async listIdsAfter(id: number): Promise<{ id: number; appId: number; createdAt: Date }[]> {
    const sql = `SELECT id, app_id AS "appId", created_at AS "createdAt" FROM execution_log WHERE id > $1 ORDER BY id LIMIT 1000`;
    return queryPreparedRows(this.db, "log-ids-after", sql, [id]);
  }

  /** Returns up to 500 IDs of the app's log entries above `cursorId` and up to `upTo`, in ascending order. */
  async listIdsOfApp(appId: number, cursorId: number, upTo: number): Promise<number[]> {
    const sql = "SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT 500";
    return (await rows<{ id: number }>(this.db, sql, [appId, cursorId, upTo])).map((row) => row.id);
  }

  /**
   * Returns an ID: the entries after it and up to `upTo` are the newest `count` entries of the app. Returns `cursorId` if at most `count`
   * entries follow `cursorId`.
   */
  async findCursorBeforeNewest(appId: number, count: number, cursorId: number, upTo: number): Promise<number> {
    const sql = `SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3
        ORDER BY id DESC OFFSET $4 LIMIT 1`;
    return (await rows<{ id: number }>(this.db, sql, [appId, cursorId, upTo, count]))[0]?.id ?? cursorId;
  }

  /**
   * Returns the IDs of open transactions that write log entries. The list is complete for all entries that already have an ID, because a
   * transaction locks the log table before its entry gets an ID.
   */
  async listOpenWriters(): Promise<string[]> {
    const sql = `SELECT virtualtransaction AS id FROM pg_locks
        WHERE relation = 'execution_log'::regclass AND mode = 'RowExclusiveLock' AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    return (await queryPreparedRows<{ id: string }>(this.db, "log-writers", sql, [])).map(({ id }) => id);
  }

  /** Returns the log entry of a run; null if the run has none. `reserve` reserves memory for the entry. @throws errors of `reserve` */
  async readEntryOfRun(runId: number, reserve?: ReserveResponseBytes): Promise<LogEntry | null> {
    const id = await this.findIdOfRun(runId);
    if (id === null) return null;
    if (reserve) {
      const sql = `SELECT id, ${ENTRY_BYTES_SQL} FROM execution_log WHERE id = $1`;
      await selectIdsThatFitOnPage(await queryPreparedRows<SizedRow>(this.db, "log-entry-size", sql, [id]), reserve);
    }
    return (await this.findByIds([id]))[0]?.entry ?? null;
  }
}
