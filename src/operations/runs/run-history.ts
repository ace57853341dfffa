/** The ledger as its readers see it: an app's runs and skipped ticks, found by filters, one whole, and those that have not ended. */
import type { DataSource } from "typeorm";
import type { Copy, RunWait, TriggerType } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import type { RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPerson } from "../../rules/access.js";
import { memberText } from "../../rules/json-scan.js";
import type { ScriptError } from "../records/execution-logs.js";
import type { RunWords } from "../records/run-words.js";
import type { RequestRecord } from "../requests/run-requests.js";
import { createReplay } from "./replay.js";
import { type RunConditions, type RunFilter, runConditions } from "./run-filter.js";
import { newestRuns } from "./run-source.js";
import type { Runs } from "./runs.js";

/** A run, or a tick that became none. Times are ISO 8601. */
export interface RunSummary {
  id: number;
  actionId: number;
  /** null of an action that is gone. */
  actionName: string | null;
  /** The draft of that action. */
  masterId: number | null;
  copy: Copy;
  trigger: TriggerType;
  state: RunState;
  /** The scheduled moment; null for other triggers. */
  tick: string | null;
  /** How many ticks, from `tick` on, this entry stands for: more than one only after a long pause. */
  tickCount: number;
  /** Why it was skipped. */
  reason: string | null;
  /** What a queued one waits for, beside a place. */
  waitsFor: RunWait | null;
  /** What it failed with: the error's name and the beginning of its message. */
  failure: string | null;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  logId: number | null;
  eventId: number | null;
  causeRunId: number | null;
  chainId: number | null;
  depth: number;
  replayOf: number | null;
  /** The version that it ran instead of its copy's code. */
  versionId: number | null;
  personId: number | null;
  /** The person who started it; only people see it. */
  person: { firstName: string; lastName: string } | null;
  /** `host:port` of each host that it contacted. */
  hosts: string[];
  /** Where its code was evaluated on the server: `isolate`, `network-isolate` or `document`; null if it was not, or before this was stored. */
  sandbox: string | null;
}

/** What follows a page: `total` is exact up to TOTAL_MAX. */
export interface RunPagination {
  total: number;
  /** Whether no more match than `total` says. */
  totalIsExact: boolean;
  hasMore: boolean;
  /** The page that follows has the runs before this id; null: nothing follows. */
  nextBefore: number | null;
}

type Dated = "tick" | "queuedAt" | "startedAt" | "finishedAt";
type SummaryRow = Omit<RunSummary, Dated | "failure" | "person"> &
  Record<Dated, Date | null> & { firstName: string | null; lastName: string | null; failed: string | null };

/** As many runs as one request looks at, beyond what an index finds: the page that follows goes on from there. */
const LOOKED_AT = 10_000;
/** As many that hold the words of a search, the newest. */
const HOLDING = 1_000;
/** Counted no further. */
const TOTAL_MAX = 10_000;
const FAILURE_CHARACTERS = 200;
/** Of runs that have not ended, the newest. */
const UNFINISHED_LISTED = 100;
const CAUSED_LISTED = 100;

/* Runs of before entries were named in their rows are found by them. */
const LOG_ID = `
  coalesce(run.log_id, CASE WHEN run.finished_at IS NOT NULL THEN (SELECT id FROM execution_log WHERE run_id = run.id LIMIT 1) END)`;

const SUMMARY = `
  run.id, run.action_id AS "actionId", action.name AS "actionName",
  coalesce(action.master_id, action.id) AS "masterId", run.copy, run.trigger, run.state, run.tick, run.tick_count AS "tickCount", run.reason,
  CASE WHEN run.state = 'queued' THEN run.waits_for END AS "waitsFor",
  run.queued_at AS "queuedAt", run.started_at AS "startedAt", run.finished_at AS "finishedAt",
  entry.id AS "logId", run.event_id AS "eventId", run.cause_run_id AS "causeRunId", run.chain_id AS "chainId", run.depth,
  run.replay_of AS "replayOf", run.version_id AS "versionId", run.person_id AS "personId", run.hosts, run.sandbox,
  person.first_name AS "firstName", person.last_name AS "lastName",
  CASE WHEN run.state = 'failed' AND entry.bytes <= 8192 THEN entry.data::text END AS failed`;
const JOINED = `LEFT JOIN action ON action.id = run.action_id LEFT JOIN execution_log entry ON entry.id = ${LOG_ID}
  LEFT JOIN person ON person.id = run.person_id`;

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** The error's own words in an entry's text. */
function failureIn(entry: string): string | null {
  const error = memberText(entry, "error");
  if (error === undefined) return null;
  const { name, message } = JSON.parse(error) as ScriptError;
  const text = `${name}: ${message}`;
  return text.length > FAILURE_CHARACTERS ? `${text.slice(0, FAILURE_CHARACTERS).toWellFormed()}…` : text;
}

function toSummary({ failed, firstName, lastName, ...row }: SummaryRow, isNamed: boolean): RunSummary {
  return {
    ...row,
    tick: iso(row.tick),
    queuedAt: iso(row.queuedAt)!,
    startedAt: iso(row.startedAt),
    finishedAt: iso(row.finishedAt),
    failure: failed === null ? null : failureIn(failed),
    person: isNamed && firstName !== null && lastName !== null ? { firstName, lastName } : null,
  };
}

export type RunHistory = ReturnType<typeof createRunHistory>;

export function createRunHistory({ db, runs, runWords }: { db: DataSource; runs: Runs; runWords: RunWords }) {
  async function summaries(caller: Caller, from: string, parameters: unknown[]): Promise<RunSummary[]> {
    const found = await rows<SummaryRow>(db, `SELECT ${SUMMARY} FROM ${from}`, parameters);
    return found.map((row) => toSummary(row, isPerson(caller)));
  }

  /** The words of a search become the runs that hold them. `further`: before that run there may be more of these. */
  async function withWords(
    appId: number,
    conditions: RunConditions,
  ): Promise<{ conditions: RunConditions; further: number | null }> {
    const { search, before, found, parameters } = conditions;
    if (search === null) return { conditions, further: null };
    // What has just ended is to be found.
    await runWords.catchUp();
    const ids = await runWords.find(appId, search, { before, most: HOLDING });
    const held = `run.id = ANY ($${parameters.length + 1}::bigint[])`;
    return {
      conditions: { ...conditions, found: `${found} AND ${held}`, parameters: [...parameters, ids] },
      further: ids.length === HOLDING ? ids.at(-1)! : null,
    };
  }

  return {
    /**
     * The app's runs and skipped ticks, most recent first. One request looks at the newest 10,000 that an index finds, of a search at
     * 1,000; where more are left to look at, the page may be short, even empty, and `nextBefore` goes on.
     * @throws REQUEST_INVALID
     */
    async list(
      caller: Caller,
      appId: number,
      filter: RunFilter,
    ): Promise<{ runs: RunSummary[]; pagination: RunPagination }> {
      const { conditions, further } = await withWords(appId, runConditions(appId, filter));
      const { looked, parameters, limit, offset } = conditions;
      const newest = await newestRuns(db, appId, conditions);
      const matching = (most: number) =>
        looked === null
          ? newest("run.id", most)
          : `SELECT run.id FROM (${newest("run.*", LOOKED_AT)}) AS run WHERE ${looked} ORDER BY run.id DESC LIMIT ${most}`;
      const [bounds] = await rows<{ total: number; last: number | null }>(
        db,
        `SELECT (SELECT count(*) FROM (${matching(TOTAL_MAX + 1)}) AS counted) AS total,
                ${looked === null ? "NULL::bigint" : `(SELECT id FROM (${newest("run.id", LOOKED_AT)}) AS run ORDER BY id DESC LIMIT 1 OFFSET ${LOOKED_AT - 1})`} AS last`,
        parameters,
      );
      const { total } = bounds!;
      const last = bounds!.last ?? further;
      const chosen = `(${matching(offset + limit + 1)}) AS chosen JOIN run USING (id) ${JOINED}
                       ORDER BY run.id DESC LIMIT ${limit + 1} OFFSET ${offset}`;
      const listed = await summaries(caller, chosen, parameters);
      const isFull = listed.length > limit;
      const page = listed.slice(0, limit);
      return {
        runs: page,
        pagination: {
          total: Math.min(total, TOTAL_MAX),
          totalIsExact: total <= TOTAL_MAX && last === null,
          hasMore: isFull || last !== null,
          nextBefore: isFull ? (page.at(-1)?.id ?? null) : last,
        },
      };
    },

    /** One run, or skipped tick. @throws RUN_NOT_FOUND */
    async get(caller: Caller, appId: number, runId: number): Promise<RunSummary> {
      const storable = Number.isSafeInteger(runId) && runId > 0;
      const [found] = storable
        ? await summaries(caller, `run ${JOINED} WHERE run.app_id = $1 AND run.id = $2`, [appId, runId])
        : [];
      if (!found) throw new ActionError("RUN_NOT_FOUND");
      return found;
    },

    /** Requests of a run to other services. */
    async requestsOf(runId: number): Promise<RequestRecord[]> {
      const found = await rows<{ requests: RequestRecord[] | null }>(db, "SELECT requests FROM run WHERE id = $1", [
        runId,
      ]);
      return found[0]?.requests ?? [];
    },

    /** The runs that a run caused itself, oldest first, the first 100. */
    async causedBy(caller: Caller, { id, chainId }: Pick<RunSummary, "id" | "chainId">): Promise<RunSummary[]> {
      const where = "run.chain_id = $1 AND run.cause_run_id = $2";
      const from = `run ${JOINED} WHERE ${where} ORDER BY run.queued_at, run.id LIMIT ${CAUSED_LISTED}`;
      return summaries(caller, from, [chainId ?? id, id]);
    },

    /** The runs of the app that wait or run, newest first, and how many there are of each; counted up to 10,000. */
    async unfinished(caller: Caller, appId: number): Promise<{ runs: RunSummary[]; queued: number; running: number }> {
      const count = (state: "queued" | "running") =>
        `(SELECT count(*) FROM (SELECT FROM run WHERE app_id = $1 AND state = '${state}' AND finished_at IS NULL
                                 LIMIT ${TOTAL_MAX}) AS counted) AS ${state}`;
      const [counts] = await rows<{ queued: number; running: number }>(
        db,
        `SELECT ${count("queued")}, ${count("running")}`,
        [appId],
      );
      const from = `run ${JOINED} WHERE run.app_id = $1 AND run.finished_at IS NULL AND run.state IN ('queued', 'running')
                     ORDER BY run.state DESC, run.id DESC LIMIT ${UNFINISHED_LISTED}`;
      return { runs: await summaries(caller, from, [appId]), ...counts! };
    },

    replay: createReplay({ db, runs }),
  };
}
