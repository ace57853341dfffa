/** Validates the filters of lists of runs and converts them to SQL. docs/reference has the meaning of each filter. */
import type { Copy, TriggerType } from "../../data/action-types.js";
import { type Executor, rows } from "../../data/database.js";
import { RUN_STATES, type RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { parseOptionalId, refuseField } from "../../rules/fields.js";
import { parsePageLimits } from "../../rules/page.js";
import { TRIGGER_TYPES } from "../../rules/trigger-input.js";

/** Filters as the caller sends them. The range of time includes `from` and excludes `to`. */
export interface RunFilter {
  /** ID of the draft or of the live version. Either one selects the runs of both. */
  actionId?: unknown;
  state?: unknown;
  trigger?: unknown;
  copy?: unknown;
  /** ID of the version whose code ran. */
  versionId?: unknown;
  /** ID of the person who started the run. */
  personId?: unknown;
  from?: unknown;
  to?: unknown;
  /** Prefixes of words in the payload, the result, the error, the console or a host. */
  search?: unknown;
  /** Only runs with a lower ID are listed. */
  before?: unknown;
  limit?: unknown;
  offset?: unknown;
}

const COPY_NAMES = { draft: "master", live: "production", master: "master", production: "production" } as const;
const SEARCH_MIN = 2;
const SEARCH_MAX = 200;
const WORDS_MAX = 5;
/** Runs have the same order by ID as by time, except within this interval, because transactions overlap. */
const OUT_OF_ORDER = "interval '1 minute'";
/** Rare run states, for which there is a separate index. */
const INDEXED_STATES: readonly RunState[] = ["failed", "skipped", "cancelled"];

/** @throws REQUEST_INVALID */
export function optionalChoice<T extends string>(value: unknown, name: string, allowed: readonly T[]): T | null {
  if (value === undefined || value === null) return null;
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  refuseField(name, `one of ${allowed.join(", ")}`, value);
}

/** Returns the draft or live version, by its name in the API or in the database. @throws REQUEST_INVALID */
export function optionalCopy(value: unknown): Copy | null {
  const name = optionalChoice(value, "copy", Object.keys(COPY_NAMES) as (keyof typeof COPY_NAMES)[]);
  return name === null ? null : COPY_NAMES[name];
}

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** @throws REQUEST_INVALID */
export function optionalMoment(value: unknown, name: string): Date | null {
  if (value === undefined || value === null) return null;
  const moment =
    value instanceof Date ? value : new Date(typeof value === "string" && ISO.test(value) ? value : Number.NaN);
  if (!Number.isNaN(moment.getTime())) return moment;
  const example = "2026-11-21T12:00:00Z";
  refuseField(name, `a time such as ${example}`, value);
}

/** @throws REQUEST_INVALID */
function searchOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value.trim() : "";
  const isFit = text.length >= SEARCH_MIN && text.length <= SEARCH_MAX && text.split(/\s+/).length <= WORDS_MAX;
  if (isFit && !text.includes("\0") && text.isWellFormed()) return text;
  const expected = `a text of ${SEARCH_MIN} to ${SEARCH_MAX} characters with at most ${WORDS_MAX} words`;
  refuseField("search", expected, value);
}

/** SQL conditions on the table `run`, and their parameters. The first parameter is the app. */
export interface RunConditions {
  /** ID of the action; null for all actions of the app. */
  actionId: number | null;
  search: string | null;
  before: number | null;
  /** Conditions for which PostgreSQL can use an index. */
  indexed: string;
  /** Conditions that are checked for each row; null if there are none. */
  unindexed: string | null;
  parameters: unknown[];
  limit: number;
  offset: number;
}

/** @throws REQUEST_INVALID */
export function runConditions(appId: number, filter: RunFilter): RunConditions {
  const parameters: unknown[] = [appId];
  const bind = (value: unknown) => `$${parameters.push(value)}`;
  const indexed = ["run.app_id = $1"];
  const unindexed: string[] = [];

  const actionId = parseOptionalId(filter.actionId, "actionId");
  const before = parseOptionalId(filter.before, "before");
  if (before !== null) indexed.push(`run.id < ${bind(before)}`);
  addTimes(optionalMoment(filter.from, "from"), optionalMoment(filter.to, "to"), indexed, bind);

  const state = optionalChoice(filter.state, "state", RUN_STATES);
  // The state is a literal in the SQL text, so that the planner can use the partial index.
  if (state !== null) (INDEXED_STATES.includes(state) ? indexed : unindexed).push(`run.state = '${state}'`);
  if (state !== null && INDEXED_STATES.includes(state)) {
    indexed.push("run.state IN ('failed', 'skipped', 'cancelled')");
  }
  const equal = (column: string, value: unknown) => value !== null && unindexed.push(`run.${column} = ${bind(value)}`);
  equal("trigger", optionalChoice(filter.trigger, "trigger", TRIGGER_TYPES satisfies readonly TriggerType[]));
  equal("copy", optionalCopy(filter.copy));
  equal("version_id", parseOptionalId(filter.versionId, "versionId"));
  equal("person_id", parseOptionalId(filter.personId, "personId"));
  return {
    actionId,
    search: searchOf(filter.search),
    before,
    indexed: indexed.join(" AND "),
    unindexed: unindexed.length > 0 ? unindexed.join(" AND ") : null,
    parameters,
    ...parsePageLimits(filter),
  };
}

/** Adds a range of IDs that contains the range of time, because runs are listed by ID. @throws REQUEST_INVALID */
function addTimes(from: Date | null, to: Date | null, indexed: string[], bind: (value: unknown) => string): void {
  if (from && to && from >= to) throw new ActionError("REQUEST_INVALID", "from must be before to");
  const idAt = (moment: string) =>
    `(SELECT at.id FROM run at WHERE at.app_id = $1 AND at.queued_at >= ${moment} ORDER BY at.queued_at LIMIT 1)`;
  if (from) {
    const start = `${bind(from)}::timestamptz`;
    indexed.push(`run.queued_at >= ${start}`, `run.id >= ${idAt(`${start} - ${OUT_OF_ORDER}`)}`);
  }
  if (to) {
    const endOfTime = `${bind(to)}::timestamptz`;
    indexed.push(`run.queued_at < ${endOfTime}`);
    indexed.push(`run.id <= coalesce(${idAt(`${endOfTime} + ${OUT_OF_ORDER}`)}, ${Number.MAX_SAFE_INTEGER})`);
  }
}

/** SQL that selects the IDs of an action's draft and live version. Its arguments are SQL parameters such as `$1`. */
export const selectVersions = (app: string, action: string) => `
  SELECT kin.id FROM action self JOIN action kin ON coalesce(kin.master_id, kin.id) = coalesce(self.master_id, self.id)
   WHERE self.app_id = ${app} AND self.id = ${action}`;

const SELECT_VERSIONS = selectVersions("$1", "$2");

/** Builds SQL that selects `columns` of the newest runs, at most `limit`, with descending IDs. */
export type NewestRuns = (columns: string, limit: number) => string;

/**
 * Returns the SQL of the newest runs. It selects the runs of the draft and of the live version separately, because no
 * index covers both.
 */
export async function newestRuns(
  executor: Executor,
  appId: number,
  { actionId, indexed }: Pick<RunConditions, "actionId" | "indexed">,
): Promise<NewestRuns> {
  const select = (columns: string, condition: string, limit: number) =>
    `SELECT ${columns} FROM run WHERE ${indexed}${condition} ORDER BY run.id DESC LIMIT ${limit}`;
  if (actionId === null) return (columns, limit) => select(columns, "", limit);
  const versions = await rows<{ id: number }>(executor, SELECT_VERSIONS, [appId, actionId]);
  const ids = new Set([actionId, ...versions.map(({ id }) => id)]);
  return (columns, limit) => {
    const each = [...ids].map((id) => `(${select("run.*", ` AND run.action_id = ${id}`, limit)})`);
    return `SELECT ${columns} FROM (${each.join(" UNION ALL ")}) AS run ORDER BY run.id DESC LIMIT ${limit}`;
  };
}
