/** Builds and reads entries of the execution log. Each ended run has one entry. */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { countUpTo } from "../../data/count.js";
import { preparedRows, rows, statementName } from "../../data/database.js";
import type { ExecutionLogType } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { describeValue } from "../../rules/described.js";
import { readMemberText } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import {
  createCursor,
  parseCursor,
  parsePageLimits,
  type ReserveBytes,
  type SizedRow,
  selectIdsThatFit,
} from "../../rules/page.js";
import { flatShape, refuseUnknownFields, type Shape } from "../../rules/unknown-fields.js";

/** Notification channel. A message `appId:logId:runId` is sent when an entry has been written. */
export const LOG_CHANNEL = "svc_log";

/** An execution log entry as it is returned to callers. */
export interface LogEntry {
  id: number;
  type: ExecutionLogType;
  createdAt: string;
  /**
   * Data of the entry as the stored JSON text. It is never parsed, because it can contain a result of several
   * megabytes.
   */
  data: JsonText;
}

export interface LogOptions {
  id?: number;
  where?: { type?: LogEntry["type"]; data?: { taskId?: number } };
  limit?: number;
  offset?: number;
  /** `nextCursor` of the previous page. Unlike `offset`, a cursor does not make later pages slower. */
  cursor?: string;
}

/** A page of execution log entries. */
export interface LogPage {
  /** Number of all matching entries. */
  count: number;
  /** False if there are more than COUNT_EXACT_MAX entries. `count` is an estimate then. */
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
 * Outcome of a run. An error of the action's code is a value here, not an exception. `data` is the result of `execute`
 * as JSON: a text, or UTF-8 bytes if it is long. It is undefined if `execute` returned undefined. `isResponse` is true
 * if the result was made with `Svc.App.V3.Actions.response()`.
 */
export type RunOutcome =
  | { ok: true; data: string | Buffer | undefined; isResponse?: true }
  | { ok: false; error: ScriptError; timedOut?: true };

/**
 * Facts about a run from which its log entry is built. `durationMs` is wall time. `payload` is JSON; if it is null, the
 * entry refers to the payload that is stored with the run.
 */
export interface EntryFacts {
  trigger: TriggerType;
  runOn: "server" | "client";
  taskId: number;
  payload: string | null;
  durationMs: number;
  /** ID of the run that this run repeats with the same payload. */
  replayOf?: number | null;
  outcome: RunOutcome;
}

/** The data of an entry in the form in which it is stored. */
export interface EntryData {
  /** JSON: a text, or UTF-8 bytes if the run's result is long. */
  text: string | Buffer;
  /** Position (from 1) of the `null` in `text` that stands for the run's payload; null if the entry contains its own payload. */
  payloadAt: number | null;
}

const PAYLOAD_KEY = '"payload":';
const RESULT_START = '"result":{"data":';
const RESULT_END = ',"success":true}}';

/** Completes the JSON of an entry's data with the result or the error. @param head beginning of the JSON */
function appendResult(head: string, outcome: RunOutcome, isScheduled: boolean): string | Buffer {
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
 * Builds the data of a log entry. A successful scheduled run has no `result`. A failed run has the error twice: as
 * `error` and in `result`.
 */
export function entryData(facts: EntryFacts): EntryData {
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
  // The first occurrence is the key of the entry, because no text from a caller precedes it.
  const payloadAt = payload === null ? head.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length + 1 : null;
  return { text: appendResult(head, outcome, isScheduled), payloadAt };
}

/**
 * Returns the JSON text of the result in the data of a completed run's entry; undefined if there is no result. If the
 * entry refers to the run's payload, `text` may be only the beginning of the data. The returned result is then
 * incomplete.
 */
export function resultInEntry(text: string): string | undefined {
  if (text.startsWith("null", text.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length)) {
    // The first occurrence is the right one, because no value of a caller precedes it.
    const at = text.indexOf(RESULT_START);
    if (at < 0) return undefined;
    return text.slice(at + RESULT_START.length, text.endsWith(RESULT_END) ? -RESULT_END.length : undefined);
  }
  const result = readMemberText(text, "result");
  return result && readMemberText(result, "data");
}

interface EntryRow {
  id: number;
  type: LogEntry["type"];
  createdAt: Date;
  data: string;
}

const ENTRY_COLUMNS = `id, type, created_at AS "createdAt", svc_entry_data(data, payload_at, run_id) AS data`;
/**
 * SQL of the size of an entry, including its payload, which is stored with the run or with the log event that started
 * it.
 */
const ENTRY_BYTES = `bytes + CASE WHEN payload_at IS NULL THEN 0 ELSE coalesce(
  (SELECT coalesce(run.payload_bytes, (SELECT 3 * octet_length(event.data::text) + 600 FROM log_event event
                                        WHERE event.id = run.event_id))
     FROM run WHERE run.id = execution_log.run_id), 2) END AS bytes`;
const toEntry = ({ id, type, createdAt, data }: EntryRow): LogEntry => ({
  id,
  type,
  createdAt: createdAt.toISOString(),
  data: new JsonText(data),
});

/** A log entry, and the fields that determine which subscribers receive it. */
export interface FollowedEntry {
  appId: number;
  taskId: number;
  entry: LogEntry;
}

const requireRecord = (value: unknown, name: string): Record<string, unknown> => {
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ActionError("REQUEST_INVALID", `${name} must be an object (got ${describeValue(value)})`);
};

function taskIds(options: Record<string, unknown>, data: Record<string, unknown>): number[] {
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

/** Allowed fields of the options of `getLogs`. */
const OPTIONS_SHAPE: Shape = {
  fields: {
    ...flatShape(["id", "limit", "offset", "cursor"]).fields,
    where: { fields: { type: null, data: flatShape(["taskId"]) } },
  },
};

const LOG_TYPES: unknown[] = ["app.task.completed", "app.task.failed"];

/** Accepts the types of execution log entries, and no type. @throws REQUEST_INVALID */
export function checkLogType(type: unknown, field: string): void {
  if (type === undefined || type === null || LOG_TYPES.includes(type)) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `"${field}" must be "app.task.completed" or "app.task.failed" (got ${describeValue(type)})`,
  );
}

/** Builds the SQL conditions from the filters in the options of `getLogs`. @throws ActionError REQUEST_INVALID */
function matchingOf(appId: number, options: Record<string, unknown>): { conditions: string[]; parameters: unknown[] } {
  const where = requireRecord(options["where"], "where");
  const data = requireRecord(where["data"], "where.data");
  const type = where["type"] ?? null;
  checkLogType(type, "where.type");
  const ids = taskIds(options, data);
  const conditions = ["app_id = $1", ...ids.map((_, index) => `task_id = $${index + 2}`)];
  // The type is a literal instead of a parameter, so that the planner can use the index that contains only failed runs.
  if (type !== null) conditions.push(`type = '${type}'`);
  return { conditions, parameters: [appId, ...ids] };
}

export type ExecutionLogs = ReturnType<typeof createLogs>;

export function createLogs(db: DataSource) {
  async function findAll(ids: readonly number[]): Promise<FollowedEntry[]> {
    if (ids.length === 0) return [];
    // With the lower and the upper bound, PostgreSQL reads only the partitions that contain the IDs.
    const sql = `SELECT app_id AS "appId", task_id AS "taskId", ${ENTRY_COLUMNS} FROM execution_log
      WHERE id = ANY ($1::bigint[]) AND id BETWEEN $2 AND $3`;
    const values = [ids, Math.min(...ids), Math.max(...ids)];
    const logRows = await preparedRows<EntryRow & Omit<FollowedEntry, "entry">>(db, "log-entries", sql, values);
    const byId = new Map(logRows.map((row) => [row.id, { appId: row.appId, taskId: row.taskId, entry: toEntry(row) }]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /**
   * Returns the ID of a run's log entry; null if the run has not ended. Rows of older runs do not contain the ID, so it
   * is looked up by the run.
   */
  async function idOfRun(runId: number): Promise<number | null> {
    const sql = "SELECT log_id AS id, finished_at IS NOT NULL AS ended FROM run WHERE id = $1";
    const [run] = await preparedRows<{ id: number | null; ended: boolean }>(db, "entry-of-run", sql, [runId]);
    if (run && (run.id !== null || !run.ended)) return run.id;
    const byEntry = "SELECT id FROM execution_log WHERE run_id = $1 LIMIT 1";
    return (await preparedRows<{ id: number }>(db, "entry-by-run", byEntry, [runId]))[0]?.id ?? null;
  }

  /**
   * Reads the rows of a page, and one more row to find out whether another page follows. The few different statements
   * are prepared, so that each is planned only once.
   */
  async function pageRows<Row>(sql: string, parameters: unknown[], limit: number, offset: number): Promise<Row[]> {
    const text = `${sql} LIMIT $${parameters.length + 1} OFFSET $${parameters.length + 2}`;
    return preparedRows<Row>(db, statementName(text), text, [...parameters, limit + 1, offset]);
  }

  return {
    /**
     * Lists the app's entries, the most recent first. A page has fewer than `limit` entries if `limit` entries would
     * exceed PAGE_MAX_BYTES. The next page then starts at `nextCursor`, or at `offset` plus the number of returned
     * entries.
     * @throws ActionError REQUEST_INVALID, and errors of `reserve`
     */
    async list(appId: number, input: unknown, reserve?: ReserveBytes): Promise<LogPage> {
      const options = requireRecord(input, "the body");
      const { limit, offset } = parsePageLimits(options);
      const cursorId = parseCursor(options["cursor"]);
      const { conditions, parameters } = matchingOf(appId, options);
      refuseUnknownFields(options, OPTIONS_SHAPE);
      const { count, exact } = await countUpTo(db, `execution_log WHERE ${conditions.join(" AND ")}`, parameters);
      // With a cursor, PostgreSQL does not read the partitions with newer entries.
      const pageConditions = cursorId === null ? conditions : [...conditions, `id < $${parameters.length + 1}`];
      const sql = `SELECT id, ${ENTRY_BYTES} FROM execution_log WHERE ${pageConditions.join(" AND ")} ORDER BY id DESC`;
      const pageParameters = cursorId === null ? parameters : [...parameters, cursorId];
      const entrySizes = await pageRows<SizedRow>(sql, pageParameters, limit, offset);
      const pageIds = await selectIdsThatFit(entrySizes.slice(0, limit), reserve);
      const logs = (await findAll(pageIds)).map(({ entry }) => entry);
      const hasMore = pageIds.length > 0 && pageIds.length < entrySizes.length;
      return {
        count,
        ...(!exact && { countIsExact: false }),
        logs,
        ...(hasMore && { nextCursor: createCursor(pageIds.at(-1)!) }),
      };
    },

    /**
     * Returns the entries of the first IDs, up to PAGE_MAX_BYTES in total, in the order of the IDs. IDs without an
     * entry are skipped. `left` contains the IDs that did not fit.
     */
    async findFitting(ids: readonly number[]): Promise<{ entries: FollowedEntry[]; left: readonly number[] }> {
      const entrySizes = await preparedRows<SizedRow>(
        db,
        "log-entry-sizes",
        `SELECT id, ${ENTRY_BYTES} FROM unnest($1::bigint[]) WITH ORDINALITY AS requested (id, place) JOIN execution_log USING (id)
          ORDER BY place`,
        [ids],
      );
      const pageIds = await selectIdsThatFit(entrySizes);
      const left = entrySizes.slice(pageIds.length).map(({ id }) => id);
      return { entries: await findAll(pageIds), left };
    },

    /** Returns the ID of the newest entry of all apps; 0 if there are no entries. */
    async newestId(): Promise<number> {
      const sql = "SELECT id FROM execution_log ORDER BY id DESC LIMIT 1";
      return (await preparedRows<{ id: number }>(db, "newest-log-id", sql, []))[0]?.id ?? 0;
    },

    /** Returns a batch of the entry IDs above `id`, of all apps, in ascending order. */
    async idsAfter(id: number): Promise<{ id: number; appId: number; createdAt: Date }[]> {
      const sql = `SELECT id, app_id AS "appId", created_at AS "createdAt" FROM execution_log WHERE id > $1 ORDER BY id LIMIT 1000`;
      return preparedRows(db, "log-ids-after", sql, [id]);
    },

    /** Returns a batch of the app's entry IDs above `cursorId` up to `upTo`, in ascending order. */
    async idsOfApp(appId: number, cursorId: number, upTo: number): Promise<number[]> {
      const sql = "SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT 500";
      return (await rows<{ id: number }>(db, sql, [appId, cursorId, upTo])).map((row) => row.id);
    },

    /**
     * Returns the ID of the app's entry that precedes the newest `count` entries up to `upTo`. Returns `cursorId` if
     * there are no more than `count` entries above it.
     */
    async beforeNewestOfApp(appId: number, count: number, cursorId: number, upTo: number): Promise<number> {
      const sql = `SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3
        ORDER BY id DESC OFFSET $4 LIMIT 1`;
      return (await rows<{ id: number }>(db, sql, [appId, cursorId, upTo, count]))[0]?.id ?? cursorId;
    },

    /**
     * Returns the open transactions that have written log entries, or may still do so. Each of them holds a lock on the
     * table, which it acquired before its entry got an ID.
     */
    async openWriters(): Promise<string[]> {
      const sql = `SELECT virtualtransaction AS id FROM pg_locks
        WHERE relation = 'execution_log'::regclass AND mode = 'RowExclusiveLock' AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return (await preparedRows<{ id: string }>(db, "log-writers", sql, [])).map(({ id }) => id);
    },

    /** Returns the log entry of a run; null if the run has not ended. @throws errors of `reserve` */
    async entryOfRun(runId: number, reserve?: ReserveBytes): Promise<LogEntry | null> {
      const id = await idOfRun(runId);
      if (id === null) return null;
      if (reserve) {
        const sql = `SELECT id, ${ENTRY_BYTES} FROM execution_log WHERE id = $1`;
        await selectIdsThatFit(await preparedRows<SizedRow>(db, "log-entry-size", sql, [id]), reserve);
      }
      return (await findAll([id]))[0]?.entry ?? null;
    },
  };
}
