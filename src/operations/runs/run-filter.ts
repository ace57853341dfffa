/** Which runs a reader asks for: each filter judged under its own name, and as conditions on the ledger. Asks the database nothing. */
import type { Copy, TriggerType } from "../../data/action-types.js";
import { RUN_STATES, type RunState } from "../../data/run.js";
import { ActionError } from "../../errors.js";
import { optionalId, refuse } from "../../rules/fields.js";
import { page } from "../../rules/page.js";
import { TRIGGER_TYPES } from "../../rules/trigger-input.js";

/** As it comes; `from` and `to` are moments, the first within the range and the second beyond it. */
export interface RunFilter {
  /** Either copy's id stands for both. */
  actionId?: unknown;
  state?: unknown;
  trigger?: unknown;
  copy?: unknown;
  /** The version that was run. */
  versionId?: unknown;
  /** Who asked for it. */
  personId?: unknown;
  from?: unknown;
  to?: unknown;
  /** Words, each of which begins a word in the payload, the result, the error, the console or a host. */
  search?: unknown;
  /** The runs before this one. */
  before?: unknown;
  limit?: unknown;
  offset?: unknown;
}

const COPIES: readonly Copy[] = ["master", "production"];
const SEARCH_MIN = 2;
const SEARCH_MAX = 200;
const WORDS_MAX = 5;
/** Runs get their ids in the order of their times, but for what a transaction takes. */
const OUT_OF_ORDER = "interval '1 minute'";
/** States of the runs that are few, which an index of their own finds. */
const GONE_WRONG: readonly RunState[] = ["failed", "skipped", "cancelled"];

/** @throws REQUEST_INVALID */
export function oneOf<T extends string>(value: unknown, name: string, allowed: readonly T[]): T | null {
  if (value === undefined || value === null) return null;
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  refuse(name, `one of ${allowed.join(", ")}`, value);
}

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** @throws REQUEST_INVALID */
export function optionalMoment(value: unknown, name: string): Date | null {
  if (value === undefined || value === null) return null;
  const moment =
    value instanceof Date ? value : new Date(typeof value === "string" && ISO.test(value) ? value : Number.NaN);
  if (!Number.isNaN(moment.getTime())) return moment;
  const example = "2026-11-21T12:00:00Z";
  refuse(name, `a moment such as ${example}`, value);
}

/** @throws REQUEST_INVALID */
function searchOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value.trim() : "";
  const isFit = text.length >= SEARCH_MIN && text.length <= SEARCH_MAX && text.split(/\s+/).length <= WORDS_MAX;
  if (isFit && !text.includes("\0") && text.isWellFormed()) return text;
  const expected = `up to ${WORDS_MAX} words of ${SEARCH_MIN} to ${SEARCH_MAX} characters together`;
  refuse("search", expected, value);
}

/** Conditions on the row `run` with the parameters that they count on, the first of which is the app. */
export interface RunConditions {
  /** The action whose runs are asked for, by the id of either copy; null: all of the app. */
  actionId: number | null;
  /** Words that the runs are to hold: found by an index of their own, each as the beginning of a word. */
  search: string | null;
  before: number | null;
  /** What an index answers. */
  found: string;
  /** What is looked at row by row; null: nothing. */
  looked: string | null;
  parameters: unknown[];
  limit: number;
  offset: number;
}

/** @throws REQUEST_INVALID */
export function runConditions(appId: number, filter: RunFilter): RunConditions {
  const parameters: unknown[] = [appId];
  const given = (value: unknown) => `$${parameters.push(value)}`;
  const found = ["run.app_id = $1"];
  const looked: string[] = [];

  const actionId = optionalId(filter.actionId, "actionId");
  const before = optionalId(filter.before, "before");
  if (before !== null) found.push(`run.id < ${given(before)}`);
  addTimes(optionalMoment(filter.from, "from"), optionalMoment(filter.to, "to"), found, given);

  const state = oneOf(filter.state, "state", RUN_STATES);
  // Written out, so that it is seen to be what an index was made for.
  if (state !== null) (GONE_WRONG.includes(state) ? found : looked).push(`run.state = '${state}'`);
  if (state === "failed" || state === "skipped" || state === "cancelled") {
    found.push("run.state IN ('failed', 'skipped', 'cancelled')");
  }
  const equal = (column: string, value: unknown) => value !== null && looked.push(`run.${column} = ${given(value)}`);
  equal("trigger", oneOf(filter.trigger, "trigger", TRIGGER_TYPES satisfies readonly TriggerType[]));
  equal("copy", oneOf(filter.copy, "copy", COPIES));
  equal("version_id", optionalId(filter.versionId, "versionId"));
  equal("person_id", optionalId(filter.personId, "personId"));
  return {
    actionId,
    search: searchOf(filter.search),
    before,
    found: found.join(" AND "),
    looked: looked.length > 0 ? looked.join(" AND ") : null,
    parameters,
    ...page(filter),
  };
}

/** A range of time is a range of ids first, in whose order runs are listed. @throws REQUEST_INVALID where it is none */
function addTimes(from: Date | null, to: Date | null, found: string[], given: (value: unknown) => string): void {
  if (from && to && from >= to) throw new ActionError("REQUEST_INVALID", "from must be before to");
  const idAt = (moment: string) =>
    `(SELECT at.id FROM run at WHERE at.app_id = $1 AND at.queued_at >= ${moment} ORDER BY at.queued_at LIMIT 1)`;
  if (from) {
    const start = `${given(from)}::timestamptz`;
    found.push(`run.queued_at >= ${start}`, `run.id >= ${idAt(`${start} - ${OUT_OF_ORDER}`)}`);
  }
  if (to) {
    const end = `${given(to)}::timestamptz`;
    found.push(`run.queued_at < ${end}`);
    found.push(`run.id <= coalesce(${idAt(`${end} + ${OUT_OF_ORDER}`)}, ${Number.MAX_SAFE_INTEGER})`);
  }
}
