/**
 * Determines a caller's rights on the entries and columns of a data source. The first access rule that matches the
 * caller and the operation decides.
 */
import { ActionError } from "../../errors.js";
import {
  allowsUser,
  type ColumnConditions,
  fillColumnConditions,
  type UserData,
  type ValueCondition,
} from "../caller-rules.js";
import { isObject } from "../described.js";
import { type EntryScope, FULL_SCOPE as EVERY_COLUMN } from "../entry-query/options.js";
import { parsePath } from "../entry-query/path.js";
import type { AccessRule, EntryVerb } from "./access-rules.js";

/** Caller of an operation on entries: a trusted caller without access rules, or a page. `user` is null if no app user is signed in. */
export type EntryCaller = { isTrusted: true } | { isTrusted: false; user: UserData | null };

/** Columns and entries that a caller may access in one operation: select, insert, update or delete. */
export interface EntryPermissions {
  /** True if the caller can read the column (select, delete) or write it (insert, update). Callers can never read hashed columns. */
  mayAccessColumn(column: string): boolean;
  /** Columns that the caller must name in the `where` (select, delete) or in the data (insert, update). */
  requiredColumns: readonly string[];
  /**
   * Conditions that an entry must meet before the caller can read, change or remove it, and that written data must meet. Placeholders are
   * already replaced by the user's values.
   */
  conditions: ColumnConditions;
  /** Text that is equal for permissions with the same columns, required columns and conditions, for use as a key. */
  fingerprint: string;
}

export const createAccessDenied = (): ActionError => new ActionError("DATA_SOURCE_ACCESS_DENIED");

const appliesTo = (rule: AccessRule, verb: EntryVerb, user: UserData | null): boolean =>
  rule.enabled !== false && rule.type.includes(verb) && allowsUser(rule.allow, user);

const ALL_PERMISSIONS: EntryPermissions = {
  mayAccessColumn: EVERY_COLUMN.canSee,
  requiredColumns: [],
  conditions: {},
  fingerprint: "everything",
};

function permissionsOfRule(rule: AccessRule, user: UserData | null): EntryPermissions {
  const { include, exclude = [], require = [] } = rule;
  const all = require
    .filter((requirement) => typeof requirement !== "string")
    .map((tests) => fillColumnConditions(tests, user));
  if (all.includes(null)) throw createAccessDenied();
  const tests = mergeConditions(all as ColumnConditions[]);
  const required = [...require.filter((requirement) => typeof requirement === "string"), ...Object.keys(tests)];
  const mayTouch = (column: string) => (include?.includes(column) ?? true) && !exclude.includes(column);
  return {
    mayAccessColumn: mayTouch,
    requiredColumns: required,
    conditions: tests,
    fingerprint: JSON.stringify([include, exclude, required, tests]),
  };
}

/** Combines conditions. @throws DATA_SOURCE_ACCESS_DENIED if two of them contradict each other, because no entry can meet both */
function mergeConditions(all: readonly ColumnConditions[]): ColumnConditions {
  const mergedTests: Record<string, ValueCondition> = {};
  for (const [column, test] of all.flatMap((tests) => Object.entries(tests))) {
    const testBefore = Object.hasOwn(mergedTests, column) ? mergedTests[column]! : {};
    const clashingTest = Object.entries(test).some(
      ([name, value]) => Object.hasOwn(testBefore, name) && testBefore[name as keyof ValueCondition] !== value,
    );
    if (clashingTest) throw createAccessDenied();
    mergedTests[column] = { ...testBefore, ...test };
  }
  return mergedTests;
}

/** Returns the index of the first rule for the verb that matches the user; -1 if no rule does. `user` null is an anonymous visitor. */
export const decidingRuleIndex = (rules: readonly AccessRule[], verb: EntryVerb, user: UserData | null): number =>
  rules.findIndex((rule) => appliesTo(rule, verb, user));

/**
 * Returns the columns and entries that the caller may access with the verb.
 * @throws DATA_SOURCE_ACCESS_DENIED if no rule matches, or if the user's entry lacks a value that the rule's conditions use
 */
export function permissionsFor(rules: readonly AccessRule[], verb: EntryVerb, caller: EntryCaller): EntryPermissions {
  if (caller.isTrusted) return ALL_PERMISSIONS;
  const rule = rules[decidingRuleIndex(rules, verb, caller.user)];
  if (!rule) throw createAccessDenied();
  return permissionsOfRule(rule, caller.user);
}

/**
 * True if the caller may select an entry by its ID. False if the rule requires a column in the `where`, because a request by ID has no
 * `where`. Conditions on values do not prevent it: they are checked after the entry is read.
 */
export const maySelectById = ({ requiredColumns: required, conditions: tests }: EntryPermissions): boolean =>
  required.every((column) => Object.hasOwn(tests, column));

/** Converts conditions of an access rule to a `where` filter; null if there are no conditions. */
export function conditionsAsWhere(tests: ColumnConditions): Record<string, unknown> | null {
  const conditions = Object.entries(tests).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // `$eq` also matches lists that contain the value. `equals` of an access rule does not, so lists are excluded.
      ...(equals === undefined ? [] : [{ [path]: { $eq: equals, $not: { $type: "array" } } }]),
      ...(notequals === undefined ? [] : [{ [path]: { $ne: notequals } }]),
      ...(contains === undefined ? [] : [{ [path]: { $iLike: contains } }]),
    ];
  });
  return conditions.length === 0 ? null : { $and: conditions };
}

/**
 * Returns the column that a key of a `where` names. null if the key is not a whole column: a field such as `createdAt`, a path into a
 * column, or an invalid path.
 */
export function columnOfWhereKey(key: string): string | null {
  try {
    const path = parsePath(key, "where", { entry: "e" });
    return path.own === null && path.segments.length === 1 ? path.segments[0]! : null;
  } catch {
    return null;
  }
}

/** Yields the conditions on columns that every matching entry must meet: those at the top of the `where`, and those in its `$and`. */
function* requiredConditions(where: unknown): Generator<[column: string, condition: unknown]> {
  if (!isObject(where)) return;
  for (const [key, value] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(value)) for (const branch of value) yield* requiredConditions(branch);
    else if (key === "$filters" && Array.isArray(value)) yield* filterConditions(value);
    else if (!key.startsWith("$")) {
      const column = columnOfWhereKey(key);
      if (column !== null) yield [column, value];
    }
  }
}

function* filterConditions(filters: readonly unknown[]): Generator<[column: string, condition: unknown]> {
  for (const filter of filters) {
    const column = isObject(filter) && typeof filter["column"] === "string" ? columnOfWhereKey(filter["column"]) : null;
    if (column !== null) yield [column, { $filters: filter }];
  }
}

/** Returns the columns that have a condition which every matching entry must meet. */
export const columnsInWhere = (where: unknown): Set<string> =>
  new Set([...requiredConditions(where)].map(([column]) => column));

/** Yields the values to which the `where` compares a column. */
function* requiredValues(where: unknown): Generator<[column: string, value: unknown]> {
  for (const [column, condition] of requiredConditions(where)) {
    if (!isObject(condition)) yield [column, condition];
    else if (Object.hasOwn(condition, "$eq")) yield [column, condition["$eq"]];
  }
}

/**
 * Rejects a `where` that compares a column with a value other than the one that the access rule requires.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function rejectContradictingWhere({ conditions: tests }: EntryPermissions, where: unknown): void {
  for (const [column, value] of requiredValues(where)) {
    const test = Object.hasOwn(tests, column) ? tests[column]! : {};
    if (test.equals !== undefined && test.equals !== value) throw createAccessDenied();
  }
}

/**
 * Rejects input that lacks a required column. The message names the column only if the caller may access it.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function checkRequiredColumns(
  grant: EntryPermissions,
  input: ReadonlySet<string>,
  place: "where" | "data",
): void {
  const missingColumn = grant.requiredColumns.find((column) => !input.has(column));
  if (missingColumn === undefined) return;
  if (!grant.mayAccessColumn(missingColumn)) throw createAccessDenied();
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule requires the column ${JSON.stringify(missingColumn)} in "${place}"`,
  );
}

/**
 * Returns the columns that a read may return, and a filter that selects the entries that the caller may read.
 * @param hashed names of hashed columns, which no caller can read
 */
export function entryScopeFor(grant: EntryPermissions, hashed: ReadonlySet<string>): EntryScope {
  const filter = conditionsAsWhere(grant.conditions);
  if (hashed.size === 0) return { canSee: grant.mayAccessColumn, filter };
  return { canSee: (column) => !hashed.has(column) && grant.mayAccessColumn(column), filter };
}
