/** Validates the filters of lists and statistics of runs, and converts them to SQL. */
import type { DraftOrLive, TriggerType } from "../../data/action-types.js";
import { rows, type SqlClient } from "../../data/database.js";
import { RUN_STATES, type RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { parseOptionalId, refuseField } from "../../rules/fields.js";
import { parseIsoTime } from "../../rules/iso-time.js";
import { parseLimitAndOffset } from "../../rules/page.js";
import { TRIGGER_TYPES } from "../../rules/trigger-input.js";
import type { RunSearch } from "../records/run-words.js";

/** Filters of a request, not yet validated. They select runs that were queued at `from` or later, but before `to`. */
export interface RunFilter {
  /** ID of the draft or of its live version. Both select the same runs. */
  actionId?: unknown;
  state?: unknown;
  trigger?: unknown;
  copy?: unknown;
  /** ID of the older version whose code ran. */
  versionId?: unknown;
  personId?: unknown;
  from?: unknown;
  to?: unknown;
  /** Searched words: each must be the beginning of a word in the payload, result, error, console lines or contacted hosts of a run. */
  search?: unknown;
}

/** Filters and page of a request for a list of runs, not yet validated. */
export interface RunListOptions extends RunFilter {
  /** Lists only runs with an ID below this one. */
  before?: unknown;
  limit?: unknown;
  offset?: unknown;
}

const COPY_BY_NAME = { draft: "master", live: "production", master: "master", production: "production" } as const;
const SEARCH_MIN_CHARACTERS = 2;
const SEARCH_MAX_CHARACTERS = 200;
const SEARCH_WORDS_MAX = 5;
/** Maximum number of runs that a search by words returns. If more runs match, the newest are returned. */
const SEARCH_RESULTS_MAX = 1_000;
/** Runs that were queued within this interval may have IDs in another order than their queue times, because their transactions overlap. */
const OUT_OF_ORDER_INTERVAL = "interval '1 minute'";
/** Rare run states. A partial index contains only runs in these states. */
const INDEXED_STATES: readonly RunState[] = ["failed", "skipped", "cancelled"];

export function parseOptionalChoice<T extends string>(value: unknown, name: string, allowed: readonly T[]): T | null {
  if (value === undefined || value === null) return null;
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  refuseField(name, `one of ${allowed.join(", ")}`, value);
}

/** Parses "draft" or "master" (the draft) and "live" or "production" (the live version); null if missing. @throws REQUEST_INVALID */
export function parseOptionalDraftOrLive(value: unknown): DraftOrLive | null {
  const name = parseOptionalChoice(value, "copy", Object.keys(COPY_BY_NAME) as (keyof typeof COPY_BY_NAME)[]);
  return name === null ? null : COPY_BY_NAME[name];
}

export function parseOptionalTime(value: unknown, name: string): Date | null {
  if (value === undefined || value === null) return null;
  const moment = value instanceof Date ? value : new Date(parseIsoTime(value));
  if (!Number.isNaN(moment.getTime())) return moment;
  const example = "2026-11-21T12:00:00Z";
  refuseField(name, `a time such as ${example}`, value);
}

function parseSearch(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value.trim() : "";
  const isValid =
    text.length >= SEARCH_MIN_CHARACTERS &&
    text.length <= SEARCH_MAX_CHARACTERS &&
    text.split(/\s+/).length <= SEARCH_WORDS_MAX;
  if (isValid && !text.includes("\0") && text.isWellFormed()) return text;
  const expected = `a text of ${SEARCH_MIN_CHARACTERS} to ${SEARCH_MAX_CHARACTERS} characters with at most ${SEARCH_WORDS_MAX} words`;
  refuseField("search", expected, value);
}

/** SQL conditions on the table `run` and their parameters. The first parameter is the app's ID. */
export interface RunSqlConditions {
  actionId: number | null;
  search: string | null;
  before: number | null;
  to: Date | null;
  /** SQL conditions for which PostgreSQL can use an index. */
  indexedSql: string;
  /** SQL conditions that PostgreSQL checks for each row; null if there are none. */
  unindexedSql: string | null;
  parameters: unknown[];
  limit: number;
  offset: number;
}

export function toRunSqlConditions(appId: number, filter: RunListOptions): RunSqlConditions {
  const parameters: unknown[] = [appId];
  const bind = (value: unknown) => `$${parameters.push(value)}`;
  const indexedConditions = ["run.app_id = $1"];
  const unindexedConditions: string[] = [];

  const actionId = parseOptionalId(filter.actionId, "actionId");
  const before = parseOptionalId(filter.before, "before");
  if (before !== null) indexedConditions.push(`run.id < ${bind(before)}`);
  const [from, to] = [parseOptionalTime(filter.from, "from"), parseOptionalTime(filter.to, "to")];
  addTimeConditions(from, to, indexedConditions, bind);

  const state = parseOptionalChoice(filter.state, "state", RUN_STATES);
  // Writes the state into the SQL instead of a parameter, so that PostgreSQL can use the partial index of this state.
  if (state !== null)
    (INDEXED_STATES.includes(state) ? indexedConditions : unindexedConditions).push(`run.state = '${state}'`);
  if (state !== null && INDEXED_STATES.includes(state)) {
    indexedConditions.push("run.state IN ('failed', 'skipped', 'cancelled')");
  }
  const addEqualCondition = (column: string, value: unknown) =>
    value !== null && unindexedConditions.push(`run.${column} = ${bind(value)}`);
  addEqualCondition(
    "trigger",
    parseOptionalChoice(filter.trigger, "trigger", TRIGGER_TYPES satisfies readonly TriggerType[]),
  );
  addEqualCondition("copy", parseOptionalDraftOrLive(filter.copy));
  addEqualCondition("version_id", parseOptionalId(filter.versionId, "versionId"));
  addEqualCondition("person_id", parseOptionalId(filter.personId, "personId"));
  return {
    actionId,
    search: parseSearch(filter.search),
    before,
    to,
    indexedSql: indexedConditions.join(" AND "),
    unindexedSql: unindexedConditions.length > 0 ? unindexedConditions.join(" AND ") : null,
    parameters,
    ...parseLimitAndOffset(filter),
  };
}

/**
 * Adds conditions for the queue time. Also limits the run IDs, because lists of runs are sorted by ID.
 * @throws REQUEST_INVALID if `from` is not before `to`
 */
function addTimeConditions(
  from: Date | null,
  to: Date | null,
  indexedConditions: string[],
  bind: (value: unknown) => string,
): void {
  if (from && to && from >= to) throw new ActionError("REQUEST_INVALID", '"from" must be before "to"');
  const createIdAtSql = (moment: string) =>
    `(SELECT at.id FROM run at WHERE at.app_id = $1 AND at.queued_at >= ${moment} ORDER BY at.queued_at LIMIT 1)`;
  if (from) {
    const start = `${bind(from)}::timestamptz`;
    indexedConditions.push(
      `run.queued_at >= ${start}`,
      `run.id >= ${createIdAtSql(`${start} - ${OUT_OF_ORDER_INTERVAL}`)}`,
    );
  }
  if (to) {
    const rangeEndSql = `${bind(to)}::timestamptz`;
    indexedConditions.push(`run.queued_at < ${rangeEndSql}`);
    indexedConditions.push(
      `run.id <= coalesce(${createIdAtSql(`${rangeEndSql} + ${OUT_OF_ORDER_INTERVAL}`)}, ${Number.MAX_SAFE_INTEGER})`,
    );
  }
}

/** Returns a number above the IDs of all runs that were queued before `to`; null if no run was queued a minute or more after `to`. */
async function findUpperIdBound(executor: SqlClient, appId: number, to: Date): Promise<number | null> {
  const [run] = await rows<{ id: number }>(
    executor,
    `SELECT id + 1 AS id FROM run WHERE app_id = $1 AND queued_at >= $2::timestamptz + ${OUT_OF_ORDER_INTERVAL}
      ORDER BY queued_at LIMIT 1`,
    [appId, to],
  );
  return run?.id ?? null;
}

export interface RunSearchResult {
  conditions: RunSqlConditions;
  /** The lowest ID of the runs that the search found, if older runs may also contain the searched words; otherwise null. */
  lowestFoundId: number | null;
}

/**
 * Replaces the searched words by the IDs of the newest runs that contain them. @throws REQUEST_INVALID if there is no word, or if the
 * search takes too long
 */
export async function searchRuns(
  { db, runSearch }: { db: SqlClient; runSearch: RunSearch },
  appId: number,
  conditions: RunSqlConditions,
): Promise<RunSearchResult> {
  const { search, before, to, indexedSql, parameters } = conditions;
  if (search === null) return { conditions, lowestFoundId: null };
  // Indexes the words of runs that have just ended, so that the search finds these runs too.
  await runSearch.catchUp();
  const bounds = [before, to && (await findUpperIdBound(db, appId, to))].filter((id) => id !== null);
  const position = { before: bounds.length === 0 ? null : Math.min(...bounds), limit: SEARCH_RESULTS_MAX };
  const ids = await runSearch.find(appId, search, position);
  const hasWordsSql = `run.id = ANY ($${parameters.length + 1}::bigint[])`;
  return {
    conditions: { ...conditions, indexedSql: `${indexedSql} AND ${hasWordsSql}`, parameters: [...parameters, ids] },
    lowestFoundId: ids.length === SEARCH_RESULTS_MAX ? ids.at(-1)! : null,
  };
}

/**
 * Returns SQL for the IDs of an action's draft and live version, also of a live version that was removed.
 * @param app SQL parameter for the app's ID, such as `$1` @param action SQL parameter for the ID of the draft or live version
 */
export const createSelectDraftAndLiveIdsSql = (app: string, action: string) => `
  SELECT version.id FROM action draft, unnest(ARRAY[draft.id, draft.live_id]) AS version (id)
   WHERE draft.app_id = ${app} AND (draft.id = ${action} OR draft.live_id = ${action}) AND draft.master_id IS NULL AND version.id IS NOT NULL`;

const SELECT_VERSIONS = createSelectDraftAndLiveIdsSql("$1", "$2");

/** Builds SQL that selects `columns` of the newest runs, at most `limit`, by descending ID. */
export type NewestRunsSqlBuilder = (columns: string, limit: number) => string;

/**
 * Returns a builder for the runs that match the conditions. If the conditions name an action, the SQL selects the runs of its draft and of
 * its live version separately, because no index covers both.
 */
export async function createNewestRunsSqlBuilder(
  executor: SqlClient,
  appId: number,
  { actionId, indexedSql }: Pick<RunSqlConditions, "actionId" | "indexedSql">,
): Promise<NewestRunsSqlBuilder> {
  const createSelectSql = (columns: string, condition: string, limit: number) =>
    `SELECT ${columns} FROM run WHERE ${indexedSql}${condition} ORDER BY run.id DESC LIMIT ${limit}`;
  if (actionId === null) return (columns, limit) => createSelectSql(columns, "", limit);
  const draftAndLiveIds = await rows<{ id: number }>(executor, SELECT_VERSIONS, [appId, actionId]);
  const ids = new Set([actionId, ...draftAndLiveIds.map(({ id }) => id)]);
  return (columns, limit) => {
    const selectStatements = [...ids].map((id) => `(${createSelectSql("run.*", ` AND run.action_id = ${id}`, limit)})`);
    return `SELECT ${columns} FROM (${selectStatements.join(" UNION ALL ")}) AS run ORDER BY run.id DESC LIMIT ${limit}`;
  };
}
