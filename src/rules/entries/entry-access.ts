/**
 * Determines a caller's rights on the entries and columns of a data source. The first access rule that matches the
 * caller and the operation decides.
 */
import { ActionError } from "../../errors.js";
import {
  type AppUserData,
  type ColumnConditions,
  fillConditionPlaceholders,
  isUserAllowedByRule,
  type ValueCondition,
} from "../caller-rules.js";
import { isObject } from "../describe-value.js";
import { UNRESTRICTED_ENTRY_SCOPE as EVERY_COLUMN, type VisibleEntryScope } from "../entry-query/options.js";
import { parsePath } from "../entry-query/path.js";
import type { EntryAccessRule, EntryVerb } from "./access-rules.js";

/**
 * Caller of an operation on entries. A trusted caller needs no access rule; all others are pages. `user` is null if no
 * app user is signed in on the page.
 */
export type EntryCaller = { isTrusted: true } | { isTrusted: false; user: AppUserData | null };

/** Columns and entries that a caller may access in one operation: select, insert, update or delete. */
export interface EntryPermissions {
  /**
   * Returns true if the caller can read this column (select, delete) or write it (insert, update). No caller can read
   * hashed columns.
   */
  mayAccessColumn(column: string): boolean;
  /** Columns that the caller must name in the `where` (select, delete) or in the data (insert, update). */
  requiredColumns: readonly string[];
  /**
   * Conditions on columns. An entry must meet them before the caller can read, change or remove it, and data that the
   * caller writes must meet them too. The user's values have already replaced the placeholders.
   */
  conditions: ColumnConditions;
  /**
   * Text that is equal for two permissions if they have the same columns, required columns and conditions.
   * Subscriptions compare it to detect changed permissions.
   */
  fingerprint: string;
}

export const createAccessDeniedError = (): ActionError => new ActionError("DATA_SOURCE_ACCESS_DENIED");

const appliesTo = (rule: EntryAccessRule, verb: EntryVerb, user: AppUserData | null): boolean =>
  rule.enabled !== false && rule.type.includes(verb) && isUserAllowedByRule(rule.allow, user);

const ALL_PERMISSIONS: EntryPermissions = {
  mayAccessColumn: EVERY_COLUMN.canSee,
  requiredColumns: [],
  conditions: {},
  fingerprint: "everything",
};

function createRulePermissions(rule: EntryAccessRule, user: AppUserData | null): EntryPermissions {
  const { include, exclude = [], require = [] } = rule;
  const all = require
    .filter((requirement) => typeof requirement !== "string")
    .map((tests) => fillConditionPlaceholders(tests, user));
  if (all.includes(null)) throw createAccessDeniedError();
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

/**
 * Combines several sets of conditions into one.
 * @throws DATA_SOURCE_ACCESS_DENIED if two conditions contradict each other, because no entry can meet both
 */
function mergeConditions(all: readonly ColumnConditions[]): ColumnConditions {
  const mergedTests: Record<string, ValueCondition> = {};
  for (const [column, test] of all.flatMap((tests) => Object.entries(tests))) {
    const testBefore = Object.hasOwn(mergedTests, column) ? mergedTests[column]! : {};
    const clashingTest = Object.entries(test).some(
      ([name, value]) => Object.hasOwn(testBefore, name) && testBefore[name as keyof ValueCondition] !== value,
    );
    if (clashingTest) throw createAccessDeniedError();
    mergedTests[column] = { ...testBefore, ...test };
  }
  return mergedTests;
}

/**
 * Returns the index of the first rule that matches the operation (`verb`) and the user; -1 if no rule does. A `user` of
 * null is an anonymous visitor.
 */
export const findDecidingRuleIndex = (
  rules: readonly EntryAccessRule[],
  verb: EntryVerb,
  user: AppUserData | null,
): number => rules.findIndex((rule) => appliesTo(rule, verb, user));

/**
 * Returns the columns and entries that the caller may access with the operation (`verb`).
 * @throws DATA_SOURCE_ACCESS_DENIED if no rule matches, or if the user's entry lacks a value that the rule's conditions
 * use
 */
export function findEntryPermissions(
  rules: readonly EntryAccessRule[],
  verb: EntryVerb,
  caller: EntryCaller,
): EntryPermissions {
  if (caller.isTrusted) return ALL_PERMISSIONS;
  const rule = rules[findDecidingRuleIndex(rules, verb, caller.user)];
  if (!rule) throw createAccessDeniedError();
  return createRulePermissions(rule, caller.user);
}

/**
 * True if the caller may read an entry by its ID. False if the access rule requires a column in the `where`, because a
 * request by ID has no `where`. Ignores conditions on values, because they are checked after the entry is read.
 */
export const maySelectEntryById = ({ requiredColumns: required, conditions: tests }: EntryPermissions): boolean =>
  required.every((column) => Object.hasOwn(tests, column));

/** Converts the conditions of an access rule to a `where` filter. Returns null if there are no conditions. */
export function toWhereFilter(tests: ColumnConditions): Record<string, unknown> | null {
  const conditions = Object.entries(tests).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // The operator `$eq` also matches a list that contains the value. `equals` of an access rule does not, so `$not`
      // excludes lists.
      ...(equals === undefined ? [] : [{ [path]: { $eq: equals, $not: { $type: "array" } } }]),
      ...(notequals === undefined ? [] : [{ [path]: { $ne: notequals } }]),
      ...(contains === undefined ? [] : [{ [path]: { $iLike: contains } }]),
    ];
  });
  return conditions.length === 0 ? null : { $and: conditions };
}

/**
 * Returns the column that a key of a `where` names. Returns null if the key does not stand for a whole column: a field
 * such as `createdAt`, a path into a column, or an invalid path.
 */
export function getColumnNamedByWhereKey(key: string): string | null {
  try {
    const path = parsePath(key, "where", { entryAlias: "e" });
    return path.entryField === null && path.segments.length === 1 ? path.segments[0]! : null;
  } catch {
    return null;
  }
}

/**
 * Yields the conditions on columns that every entry must meet to match the `where`: those at its top level, in its
 * `$and` and in its `$filters`.
 */
function* listRequiredConditions(where: unknown): Generator<[column: string, condition: unknown]> {
  if (!isObject(where)) return;
  for (const [key, value] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(value)) for (const branch of value) yield* listRequiredConditions(branch);
    else if (key === "$filters" && Array.isArray(value)) yield* filterConditions(value);
    else if (!key.startsWith("$")) {
      const column = getColumnNamedByWhereKey(key);
      if (column !== null) yield [column, value];
    }
  }
}

function* filterConditions(filters: readonly unknown[]): Generator<[column: string, condition: unknown]> {
  for (const filter of filters) {
    const column =
      isObject(filter) && typeof filter["column"] === "string" ? getColumnNamedByWhereKey(filter["column"]) : null;
    if (column !== null) yield [column, { $filters: filter }];
  }
}

/** Returns the columns on which every entry must meet a condition to match the `where`. */
export const listWhereColumns = (where: unknown): Set<string> =>
  new Set([...listRequiredConditions(where)].map(([column]) => column));

/** Yields the columns that the `where` requires to equal a value, each with this value. */
function* listRequiredValues(where: unknown): Generator<[column: string, value: unknown]> {
  for (const [column, condition] of listRequiredConditions(where)) {
    if (!isObject(condition)) yield [column, condition];
    else if (Object.hasOwn(condition, "$eq")) yield [column, condition["$eq"]];
  }
}

/**
 * Rejects a `where` that requires another value of a column than the access rule does.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function rejectWhereThatContradictsRule({ conditions: tests }: EntryPermissions, where: unknown): void {
  for (const [column, value] of listRequiredValues(where)) {
    const test = Object.hasOwn(tests, column) ? tests[column]! : {};
    if (test.equals !== undefined && test.equals !== value) throw createAccessDeniedError();
  }
}

/**
 * Rejects a request that does not name a column that the access rule requires. The message names the column only if the
 * caller may access it.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function checkRequiredColumns(
  grant: EntryPermissions,
  input: ReadonlySet<string>,
  place: "where" | "data",
): void {
  const missingColumn = grant.requiredColumns.find((column) => !input.has(column));
  if (missingColumn === undefined) return;
  if (!grant.mayAccessColumn(missingColumn)) throw createAccessDeniedError();
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule requires the column ${JSON.stringify(missingColumn)} in "${place}"`,
  );
}

/**
 * Returns the scope of a read: the columns that the response may contain, and a filter for the entries that the caller
 * may read.
 * @param hashed names of hashed columns, which no caller can read
 */
export function createVisibleEntryScope(grant: EntryPermissions, hashed: ReadonlySet<string>): VisibleEntryScope {
  return {
    canSee: (column) => !hashed.has(column) && grant.mayAccessColumn(column),
    filter: toWhereFilter(grant.conditions),
  };
}
