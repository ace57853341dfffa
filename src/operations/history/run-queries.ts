/** Lists runs by filters, and reads single runs, runs that another run has started, and unfinished runs. */
import type { DraftOrLive, RunWaitReason, TriggerType } from "../../data/action-types.js";
import { type Db, rows } from "../../data/database.js";
import type { RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { readJsonFieldText } from "../../rules/json-scan.js";
import { readResultFromLogEntry, type ScriptError } from "../records/execution-logs.js";
import type { RunSearch } from "../records/run-words.js";
import type { OutgoingRequestRecord } from "../requests/run-requests.js";
import { createNewestRunsSqlBuilder, type RunListOptions, searchRuns, toRunSqlConditions } from "./run-filter.js";

/** A run or a skipped schedule time, as lists return it. Times are ISO 8601 text. */
export interface RunSummary {
  id: number;
  actionId: number;
  /** Null if the action was deleted. */
  actionName: string | null;
  /** Null if the action was deleted. */
  masterId: number | null;
  copy: DraftOrLive;
  trigger: TriggerType;
  state: RunState;
  /** Scheduled time for which the run was started; null for runs of other triggers. */
  tick: string | null;
  /** Number of scheduled times (from `tick` on), or of skipped runs after log events, that this row represents. */
  tickCount: number;
  reason: string | null;
  /** Condition, other than a free slot, for which a queued run waits; null if there is no such condition. */
  waitsFor: RunWaitReason | null;
  /**
   * Name of the error and the beginning of its message. Null if the run did not fail, or if its log entry is too long to read for a list.
   */
  failure: string | null;
  /** Beginning of the result as JSON; null if there is no result, or if the log entry is too long to read for a list. */
  resultPreview: string | null;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  logId: number | null;
  eventId: number | null;
  causeRunId: number | null;
  chainId: number | null;
  depth: number;
  replayOf: number | null;
  /** ID of the older version whose code ran; null if the draft or live version ran. */
  versionId: number | null;
  personId: number | null;
  /** The person who started the run; null if no person has started it, or if the caller is not a person. */
  person: { firstName: string; lastName: string } | null;
  /** `host:port` of each host that the run contacted. */
  hosts: string[];
  /** Mode in which the code ran on the server: `isolate`, `network-isolate` or `document`; null if no code ran or no mode was stored. */
  sandbox: string | null;
}

/** Pagination of a list of runs. `total` is at most TOTAL_MAX. */
export interface RunPagination {
  total: number;
  /** False if more runs may match the filters than `total` says. */
  totalIsExact: boolean;
  hasMore: boolean;
  /** Value of the parameter `before` for the next page; null on the last page. */
  nextBefore: number | null;
}

type DateField = "tick" | "queuedAt" | "startedAt" | "finishedAt";
type SummaryRow = Omit<RunSummary, DateField | "failure" | "resultPreview" | "person"> &
  Record<DateField, Date | null> & { firstName: string | null; lastName: string | null; entry: string | null };

/** Maximum number of runs that one request checks row by row. The next page continues with the following runs. */
const CHECKED_RUNS_MAX = 10_000;
const TOTAL_MAX = 10_000;
const EXCERPT_MAX_CHARACTERS = 200;
/** Maximum bytes of a log entry that a list reads completely. Applies to failed runs, and to entries that contain the payload. */
const WHOLE_LOG_ENTRY_MAX_BYTES = 8 * 1024;
/**
 * Maximum bytes of a completed run's log entry without the payload. A list reads only the beginning of this entry, and skips larger
 * entries.
 */
const CUT_LOG_ENTRY_MAX_BYTES = 64 * 1024;
/** Number of characters that a list reads of a completed run's log entry. They include enough of the result for an excerpt. */
const CUT_LOG_ENTRY_CHARACTERS = 600;
const UNFINISHED_RUNS_MAX = 100;
const CAUSED_RUNS_MAX = 100;

/** SQL expression for the ID of a run's log entry. Rows that older releases wrote do not contain this ID. */
const LOG_ID_SQL = `
  coalesce(run.log_id, CASE WHEN run.finished_at IS NOT NULL THEN (SELECT id FROM execution_log WHERE run_id = run.id LIMIT 1) END)`;

const SUMMARY_COLUMNS = `
  run.id, run.action_id AS "actionId", coalesce(action.name, draft.name) AS "actionName",
  coalesce(action.master_id, action.id, draft.id) AS "masterId", run.copy, run.trigger, run.state, run.tick, run.tick_count AS "tickCount", run.reason,
  CASE WHEN run.state = 'queued' THEN run.waits_for END AS "waitsFor",
  run.queued_at AS "queuedAt", run.started_at AS "startedAt", run.finished_at AS "finishedAt",
  entry.id AS "logId", run.event_id AS "eventId", run.cause_run_id AS "causeRunId", run.chain_id AS "chainId", run.depth,
  run.replay_of AS "replayOf", run.version_id AS "versionId", run.person_id AS "personId", run.hosts, run.sandbox,
  person.first_name AS "firstName", person.last_name AS "lastName",
  CASE WHEN run.state = 'completed' AND entry.payload_at IS NOT NULL AND entry.bytes <= ${CUT_LOG_ENTRY_MAX_BYTES} THEN left(entry.data::text, ${CUT_LOG_ENTRY_CHARACTERS})
       WHEN run.state IN ('completed', 'failed') AND entry.bytes <= ${WHOLE_LOG_ENTRY_MAX_BYTES} THEN entry.data::text END AS entry`;
/** The alias `draft` stands for the draft of a run's action, if this action is not published any more. */
const SUMMARY_JOINS = `LEFT JOIN action ON action.id = run.action_id
  LEFT JOIN action draft ON draft.live_id = run.action_id AND action.id IS NULL LEFT JOIN execution_log entry ON entry.id = ${LOG_ID_SQL}
  LEFT JOIN person ON person.id = run.person_id`;

const toIsoText = (date: Date | null): string | null => date?.toISOString() ?? null;

function readErrorText(entry: string): string | null {
  const error = readJsonFieldText(entry, "error");
  if (error === undefined) return null;
  const { name, message } = JSON.parse(error) as ScriptError;
  return createExcerpt(`${name}: ${message}`);
}

const createExcerpt = (text: string): string =>
  text.length > EXCERPT_MAX_CHARACTERS ? `${text.slice(0, EXCERPT_MAX_CHARACTERS).toWellFormed()}…` : text;

function readResultPreview(entry: string): string | null {
  const result = readResultFromLogEntry(entry);
  return result === undefined ? null : createExcerpt(result);
}

function toSummary({ entry, firstName, lastName, ...row }: SummaryRow, includesPerson: boolean): RunSummary {
  return {
    ...row,
    tick: toIsoText(row.tick),
    queuedAt: toIsoText(row.queuedAt)!,
    startedAt: toIsoText(row.startedAt),
    finishedAt: toIsoText(row.finishedAt),
    failure: entry !== null && row.state === "failed" ? readErrorText(entry) : null,
    resultPreview: entry !== null && row.state === "completed" ? readResultPreview(entry) : null,
    person: includesPerson && firstName !== null && lastName !== null ? { firstName, lastName } : null,
  };
}

export class RunQueries {
  constructor(
    private readonly db: Db,
    private readonly runSearch: RunSearch,
  ) {}

  private async readSummaries(caller: Caller, from: string, parameters: unknown[]): Promise<RunSummary[]> {
    const summaryRows = await rows<SummaryRow>(this.db, `SELECT ${SUMMARY_COLUMNS} FROM ${from}`, parameters);
    return summaryRows.map((row) => toSummary(row, isPersonCaller(caller)));
  }

  /**
   * Lists the app's runs and skipped schedule times, the newest first. One request checks at most 10,000 runs, or 1,000 results of a
   * search. So a page can be short or empty although the list continues at `nextBefore`.
   * @throws REQUEST_INVALID
   */
  async list(
    caller: Caller,
    appId: number,
    options: RunListOptions,
  ): Promise<{ runs: RunSummary[]; pagination: RunPagination }> {
    const { conditions, lowestFoundId } = await searchRuns(
      { db: this.db, runSearch: this.runSearch },
      appId,
      toRunSqlConditions(appId, options),
    );
    const { unindexedSql, parameters, limit, offset } = conditions;
    const createNewestRunsSql = await createNewestRunsSqlBuilder(this.db, appId, conditions);
    const createMatchingRunsSql = (max: number) =>
      unindexedSql === null
        ? createNewestRunsSql("run.id", max)
        : `SELECT run.id FROM (${createNewestRunsSql("run.*", CHECKED_RUNS_MAX)}) AS run
            WHERE ${unindexedSql} ORDER BY run.id DESC LIMIT ${max}`;
    const [bounds] = await rows<{ total: number; last: number | null }>(
      this.db,
      `SELECT (SELECT count(*) FROM (${createMatchingRunsSql(TOTAL_MAX + 1)}) AS counted) AS total,
                ${unindexedSql === null ? "NULL::bigint" : `(SELECT id FROM (${createNewestRunsSql("run.id", CHECKED_RUNS_MAX)}) AS run ORDER BY id DESC LIMIT 1 OFFSET ${CHECKED_RUNS_MAX - 1})`} AS last`,
      parameters,
    );
    const { total } = bounds!;
    const last = bounds!.last ?? lowestFoundId;
    const chosenRunsSql = `(${createMatchingRunsSql(offset + limit + 1)}) AS chosen JOIN run USING (id) ${SUMMARY_JOINS}
                       ORDER BY run.id DESC LIMIT ${limit + 1} OFFSET ${offset}`;
    const listedRuns = await this.readSummaries(caller, chosenRunsSql, parameters);
    const isFull = listedRuns.length > limit;
    const page = listedRuns.slice(0, limit);
    return {
      runs: page,
      pagination: {
        total: Math.min(total, TOTAL_MAX),
        totalIsExact: total <= TOTAL_MAX && last === null,
        hasMore: isFull || last !== null,
        nextBefore: isFull ? (page.at(-1)?.id ?? null) : last,
      },
    };
  }

  async get(caller: Caller, appId: number, runId: number): Promise<RunSummary> {
    const isStorableId = Number.isSafeInteger(runId) && runId > 0;
    const [run] = isStorableId
      ? await this.readSummaries(caller, `run ${SUMMARY_JOINS} WHERE run.app_id = $1 AND run.id = $2`, [appId, runId])
      : [];
    if (!run) throw new ActionError("RUN_NOT_FOUND");
    return run;
  }

  async readRequests(runId: number): Promise<OutgoingRequestRecord[]> {
    const runs = await rows<{ requests: OutgoingRequestRecord[] | null }>(
      this.db,
      "SELECT requests FROM run WHERE id = $1",
      [runId],
    );
    return runs[0]?.requests ?? [];
  }

  /** Returns the first 100 runs that this run has started directly, the oldest first. */
  async listCausedRuns(caller: Caller, { id, chainId }: Pick<RunSummary, "id" | "chainId">): Promise<RunSummary[]> {
    const where = "run.chain_id = $1 AND run.cause_run_id = $2";
    const from = `run ${SUMMARY_JOINS} WHERE ${where} ORDER BY run.queued_at, run.id LIMIT ${CAUSED_RUNS_MAX}`;
    return this.readSummaries(caller, from, [chainId ?? id, id]);
  }

  /**
   * Returns up to 100 unfinished runs of the app: first the running runs, then the queued runs, each from the newest. Also returns the
   * numbers of queued and of running runs, each counted up to 10,000.
   */
  async listUnfinished(
    caller: Caller,
    appId: number,
  ): Promise<{ runs: RunSummary[]; queued: number; running: number }> {
    const count = (state: "queued" | "running") =>
      `(SELECT count(*) FROM (SELECT FROM run WHERE app_id = $1 AND state = '${state}' AND finished_at IS NULL
                                 LIMIT ${TOTAL_MAX}) AS counted) AS ${state}`;
    const [counts] = await rows<{ queued: number; running: number }>(
      this.db,
      `SELECT ${count("queued")}, ${count("running")}`,
      [appId],
    );
    const from = `run ${SUMMARY_JOINS} WHERE run.app_id = $1 AND run.finished_at IS NULL AND run.state IN ('queued', 'running')
                     ORDER BY run.state DESC, run.id DESC LIMIT ${UNFINISHED_RUNS_MAX}`;
    return { runs: await this.readSummaries(caller, from, [appId]), ...counts! };
  }
}
