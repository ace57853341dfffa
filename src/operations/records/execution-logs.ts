/** Builds entries of the execution log in their specified shape, lists them, and reads the entry of a notification. */
import type { DataSource } from "typeorm";
import type { TriggerType } from "../../data/action-types.js";
import { countUpTo } from "../../data/count.js";
import { preparedRows, rows, statementName } from "../../data/database.js";
import type { ExecutionLogType } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { memberText } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import { createPage, cursorOf, idOfCursor, pageOf, type ReserveBytes, type SizedRow } from "../../rules/page.js";
import { flatShape, refuseUnknownFields, type Shape } from "../../rules/unknown-fields.js";

/** Notification channel with `appId:logId:runId`, sent when an entry is written. */
export const LOG_CHANNEL = "svc_log";

/** An execution log entry (specification, Execution log entry). */
export interface LogEntry {
  id: number;
  type: ExecutionLogType;
  createdAt: string;
  /** Data of the entry as stored JSON text, so that a result of megabytes is never parsed. */
  data: JsonText;
}

export interface LogOptions {
  id?: number;
  where?: { type?: LogEntry["type"]; data?: { taskId?: number } };
  limit?: number;
  offset?: number;
  /** `nextCursor` of the previous page. The next page has the same cost at any depth. */
  cursor?: string;
}

/** A page of entries. */
export interface LogPage {
  /** Number of matching entries. */
  count: number;
  /** False if there are more than COUNT_EXACT_MAX entries. `count` is an estimate then. */
  countIsExact?: false;
  logs: LogEntry[];
  /** Absent on the last page. */
  nextCursor?: string;
}

export interface ScriptError {
  name: string;
  message: string;
  stack: string;
}

/**
 * Outcome of a run. A failure of the script is a value, not an exception. `data` is the JSON text of the result of `execute`, undefined for
 * undefined, or its UTF-8 bytes if it is long. `isResponse` is true if the data are options of `Svc.App.V3.Actions.response()`.
 */
export type RunOutcome =
  | { ok: true; data: string | Buffer | undefined; isResponse?: true }
  | { ok: false; error: ScriptError; timedOut?: true };

/**
 * Data of a run from which its log entry is built. Texts are JSON. `durationMs` is wall time. If `payload` is null, the
 * entry refers to the payload of the run.
 */
export interface EntryFacts {
  trigger: TriggerType;
  runOn: "server" | "client";
  taskId: number;
  payload: string | null;
  durationMs: number;
  /** ID of the run whose payload was run again. */
  replayOf?: number | null;
  outcome: RunOutcome;
}

/** `data` of an entry as stored. */
export interface EntryData {
  /** JSON as text, or as UTF-8 bytes if the result is long. */
  text: string | Buffer;
  /** Position (from 1) of the `null` in `text` that stands for the run's payload; null if the entry contains its own payload. */
  payloadAt: number | null;
}

const PAYLOAD_KEY = '"payload":';
const RESULT_START = '"result":{"data":';
const RESULT_END = ',"success":true}}';

/** Adds the result or the error to the beginning of an entry's `data`. */
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
 * Builds the entry's `data` (specification, Execution log entry). `result` is absent for successful scheduled runs. On failure, it repeats
 * the error in the failure's shape.
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
  // The first occurrence is the right one, because no value of a caller precedes it.
  const payloadAt = payload === null ? head.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length + 1 : null;
  return { text: appendResult(head, outcome, isScheduled), payloadAt };
}

/**
 * Returns the JSON text of the result in the `data` of a completed run's entry, or undefined. If the entry refers to the run's payload,
 * `text` may be only the beginning of `data`, so that the result is cut too.
 */
export function resultInEntry(text: string): string | undefined {
  if (text.startsWith("null", text.indexOf(PAYLOAD_KEY) + PAYLOAD_KEY.length)) {
    // The first occurrence is the right one, because no value of a caller precedes it.
    const at = text.indexOf(RESULT_START);
    if (at < 0) return undefined;
    return text.slice(at + RESULT_START.length, text.endsWith(RESULT_END) ? -RESULT_END.length : undefined);
  }
  const result = memberText(text, "result");
  return result && memberText(result, "data");
}

interface EntryRow {
  id: number;
  type: LogEntry["type"];
  createdAt: Date;
  data: string;
}

const ENTRY = `id, type, created_at AS "createdAt", svc_entry_data(data, payload_at, run_id) AS data`;
/** SQL of an entry's size including its payload, which is stored with the run or its event. */
const SIZE = `bytes + CASE WHEN payload_at IS NULL THEN 0 ELSE coalesce(
  (SELECT coalesce(run.payload_bytes, (SELECT 3 * octet_length(event.data::text) + 600 FROM log_event event
                                        WHERE event.id = run.event_id))
     FROM run WHERE run.id = execution_log.run_id), 2) END AS bytes`;
const toEntry = ({ id, type, createdAt, data }: EntryRow): LogEntry => ({
  id,
  type,
  createdAt: createdAt.toISOString(),
  data: new JsonText(data),
});

/** A log entry with the fields that decide which subscribers receive it. */
export interface FollowedEntry {
  appId: number;
  taskId: number;
  entry: LogEntry;
}

const requireRecord = (value: unknown, name: string): Record<string, unknown> => {
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

/** Options of `getLogs`. */
const OPTIONS_SHAPE: Shape = {
  fields: {
    ...flatShape(["id", "limit", "offset", "cursor"]).fields,
    where: { fields: { type: null, data: flatShape(["taskId"]) } },
  },
};

const TYPES: unknown[] = ["app.task.completed", "app.task.failed"];

/** @throws REQUEST_INVALID unless the type is absent or one of execution log entries */
export function checkLogType(type: unknown, field: string): void {
  if (type === undefined || type === null || TYPES.includes(type)) return;
  throw new ActionError("REQUEST_INVALID", `${field} must be app.task.completed or app.task.failed`);
}

/** Builds the SQL condition of a list from its filters. @throws ActionError REQUEST_INVALID */
function matchingOf(appId: number, options: Record<string, unknown>): { conditions: string[]; parameters: unknown[] } {
  const where = requireRecord(options["where"], "where");
  const data = requireRecord(where["data"], "where.data");
  const type = where["type"] ?? null;
  checkLogType(type, "where.type");
  const ids = taskIds(options, data);
  const conditions = ["app_id = $1", ...ids.map((_, index) => `task_id = $${index + 2}`)];
  // The type is a literal, so that the planner knows it: failures have their own index.
  if (type !== null) conditions.push(`type = '${type}'`);
  return { conditions, parameters: [appId, ...ids] };
}

export type ExecutionLogs = ReturnType<typeof createLogs>;

export function createLogs(db: DataSource) {
  async function findAll(ids: readonly number[]): Promise<FollowedEntry[]> {
    if (ids.length === 0) return [];
    // Both bounds are needed to select the partitions.
    const sql = `SELECT app_id AS "appId", task_id AS "taskId", ${ENTRY} FROM execution_log
      WHERE id = ANY ($1::bigint[]) AND id BETWEEN $2 AND $3`;
    const values = [ids, Math.min(...ids), Math.max(...ids)];
    const logRows = await preparedRows<EntryRow & Omit<FollowedEntry, "entry">>(db, "log-entries", sql, values);
    const byId = new Map(logRows.map((row) => [row.id, { appId: row.appId, taskId: row.taskId, entry: toEntry(row) }]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /**
   * Returns the ID of the entry in which a run ended; null if there is none. Older runs, whose row does not contain it, are found by the
   * entry.
   */
  async function idOfRun(runId: number): Promise<number | null> {
    const sql = "SELECT log_id AS id, finished_at IS NOT NULL AS ended FROM run WHERE id = $1";
    const [run] = await preparedRows<{ id: number | null; ended: boolean }>(db, "entry-of-run", sql, [runId]);
    if (run && (run.id !== null || !run.ended)) return run.id;
    const byEntry = "SELECT id FROM execution_log WHERE run_id = $1 LIMIT 1";
    return (await preparedRows<{ id: number }>(db, "entry-by-run", byEntry, [runId]))[0]?.id ?? null;
  }

  /**
   * Reads a page of a list and one more row, which shows whether there is a next page. There are few distinct
   * statements; they are prepared, so that each is planned once.
   */
  async function pageRows<Row>(sql: string, parameters: unknown[], limit: number, offset: number): Promise<Row[]> {
    const text = `${sql} LIMIT $${parameters.length + 1} OFFSET $${parameters.length + 2}`;
    return preparedRows<Row>(db, statementName(text), text, [...parameters, limit + 1, offset]);
  }

  return {
    /**
     * Lists the app's entries, the most recent first (specification, getLogs). A page has fewer than `limit` entries if they would together
     * be larger than PAGE_MAX_BYTES: the next page begins at `offset` + their number, or at `nextCursor`.
     * @throws ActionError REQUEST_INVALID, and errors of `reserve`
     */
    async list(appId: number, input: unknown, reserve?: ReserveBytes): Promise<LogPage> {
      const options = requireRecord(input, "the body");
      const { limit, offset } = createPage(options);
      const cursorId = idOfCursor(options["cursor"]);
      const { conditions, parameters } = matchingOf(appId, options);
      refuseUnknownFields(options, OPTIONS_SHAPE);
      const { count, exact } = await countUpTo(db, `execution_log WHERE ${conditions.join(" AND ")}`, parameters);
      // A page behind a cursor leaves out the partitions above it.
      const pageConditions = cursorId === null ? conditions : [...conditions, `id < $${parameters.length + 1}`];
      const sql = `SELECT id, ${SIZE} FROM execution_log WHERE ${pageConditions.join(" AND ")} ORDER BY id DESC`;
      const pageParameters = cursorId === null ? parameters : [...parameters, cursorId];
      const entrySizes = await pageRows<SizedRow>(sql, pageParameters, limit, offset);
      const pageIds = await pageOf(entrySizes.slice(0, limit), reserve);
      const logs = (await findAll(pageIds)).map(({ entry }) => entry);
      const hasMore = pageIds.length > 0 && pageIds.length < entrySizes.length;
      return {
        count,
        ...(!exact && { countIsExact: false }),
        logs,
        ...(hasMore && { nextCursor: cursorOf(pageIds.at(-1)!) }),
      };
    },

    /** Returns the entries of the first IDs that are at most PAGE_MAX_BYTES together, in order. Missing entries are left out. */
    async findSome(ids: readonly number[]): Promise<{ entries: FollowedEntry[]; left: readonly number[] }> {
      const entrySizes = await preparedRows<SizedRow>(
        db,
        "log-entry-sizes",
        `SELECT id, ${SIZE} FROM unnest($1::bigint[]) WITH ORDINALITY AS requested (id, place) JOIN execution_log USING (id)
          ORDER BY place`,
        [ids],
      );
      const pageIds = await pageOf(entrySizes);
      const left = entrySizes.slice(pageIds.length).map(({ id }) => id);
      return { entries: await findAll(pageIds), left };
    },

    /** Returns the newest ID; 0 if there are none. */
    async newestId(): Promise<number> {
      const sql = "SELECT id FROM execution_log ORDER BY id DESC LIMIT 1";
      return (await preparedRows<{ id: number }>(db, "newest-log-id", sql, []))[0]?.id ?? 0;
    },

    /** Returns a batch of IDs after that one, of all apps, in order. */
    async idsAfter(id: number): Promise<{ id: number; appId: number; createdAt: Date }[]> {
      const sql = `SELECT id, app_id AS "appId", created_at AS "createdAt" FROM execution_log WHERE id > $1 ORDER BY id LIMIT 1000`;
      return preparedRows(db, "log-ids-after", sql, [id]);
    },

    /** Returns a batch of the app's IDs after the first and up to the last, in order. */
    async idsOfApp(appId: number, cursorId: number, upTo: number): Promise<number[]> {
      const sql = "SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT 500";
      return (await rows<{ id: number }>(db, sql, [appId, cursorId, upTo])).map((row) => row.id);
    },

    /** Returns the ID before the newest `count` entries of the app up to `upTo`; `after` if there are fewer. */
    async beforeNewestOfApp(appId: number, count: number, cursorId: number, upTo: number): Promise<number> {
      const sql = `SELECT id FROM execution_log WHERE app_id = $1 AND id > $2 AND id <= $3
        ORDER BY id DESC OFFSET $4 LIMIT 1`;
      return (await rows<{ id: number }>(db, sql, [appId, cursorId, upTo, count]))[0]?.id ?? cursorId;
    },

    /** Returns the open transactions that have written log entries or may write some: each holds this lock before it gets an ID. */
    async writers(): Promise<string[]> {
      const sql = `SELECT virtualtransaction AS id FROM pg_locks
        WHERE relation = 'execution_log'::regclass AND mode = 'RowExclusiveLock' AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return (await preparedRows<{ id: string }>(db, "log-writers", sql, [])).map(({ id }) => id);
    },

    /** Returns the entry in which a run ended; null if there is none. @throws errors of `reserve` */
    async ofRun(runId: number, reserve?: ReserveBytes): Promise<LogEntry | null> {
      const id = await idOfRun(runId);
      if (id === null) return null;
      if (reserve) {
        const sql = `SELECT id, ${SIZE} FROM execution_log WHERE id = $1`;
        await pageOf(await preparedRows<SizedRow>(db, "log-entry-size", sql, [id]), reserve);
      }
      return (await findAll([id]))[0]?.entry ?? null;
    },
  };
}
