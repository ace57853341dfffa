/**
 * Determines a caller's rights on entries and columns of a data source. The first access rule that matches the caller and the operation
 * decides.
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
import { WHERE_MAX_DEPTH } from "../entry-query/checks.js";
import { TextsOnlyOperand } from "../entry-query/operators.js";
import { UNRESTRICTED_ENTRY_SCOPE as EVERY_COLUMN, type VisibleEntryScope } from "../entry-query/options.js";
import { parseDocumentPath } from "../entry-query/path.js";
import type { EntryAccessRule, EntryVerb } from "./access-rules.js";

/**
 * Caller of an operation on entries. A trusted caller needs no access rule. Any other caller does; `user` is the app user who is signed in
 * on the page, or null.
 */
export type EntryCaller = { isTrusted: true } | { isTrusted: false; user: AppUserData | null };

/** Columns and entries that a caller may access with one operation: select, insert, update or delete. */
export interface EntryPermissions {
  /**
   * True if the rule lets the caller read (select, delete) or write (insert, update) this column. Ignores that the column may be hashed.
   */
  mayAccessColumn(column: string): boolean;
  /** Columns that the caller must name: in the `where` (select, delete) or in the data (insert, update). */
  requiredColumns: readonly string[];
  /** Conditions that an entry must meet before and after the operation. They contain values of the app user instead of placeholders. */
  conditions: ColumnConditions;
  /** Equal for two permissions with the same columns, required columns and conditions. Subscriptions detect changes by it. */
  fingerprint: string;
}

export const createAccessDeniedError = (): ActionError => new ActionError("DATA_SOURCE_ACCESS_DENIED");

const ruleApplies = (rule: EntryAccessRule, verb: EntryVerb, user: AppUserData | null): boolean =>
  rule.enabled !== false && rule.type.includes(verb) && isUserAllowedByRule(rule.allow, user);

const ALL_PERMISSIONS: EntryPermissions = {
  mayAccessColumn: EVERY_COLUMN.canSeeColumn,
  requiredColumns: [],
  conditions: {},
  fingerprint: "everything",
};

function createRulePermissions(rule: EntryAccessRule, user: AppUserData | null): EntryPermissions {
  const { include, exclude = [], require = [] } = rule;
  const conditionSets = require
    .filter((requirement) => typeof requirement !== "string")
    .map((columnConditions) => fillConditionPlaceholders(columnConditions, user));
  if (conditionSets.includes(null)) throw createAccessDeniedError();
  const conditions = mergeConditions(conditionSets as ColumnConditions[]);
  const requiredColumns = [
    ...require.filter((requirement) => typeof requirement === "string"),
    ...Object.keys(conditions),
  ];
  const mayAccess = (column: string) => (include?.includes(column) ?? true) && !exclude.includes(column);
  return {
    mayAccessColumn: mayAccess,
    requiredColumns,
    conditions,
    fingerprint: JSON.stringify([include, exclude, requiredColumns, conditions]),
  };
}

/** Merges sets of conditions. @throws DATA_SOURCE_ACCESS_DENIED if two of them have the same column and operator, but different values */
function mergeConditions(conditionSets: readonly ColumnConditions[]): ColumnConditions {
  const mergedConditions: Record<string, ValueCondition> = {};
  for (const [column, condition] of conditionSets.flatMap((columnConditions) => Object.entries(columnConditions))) {
    const conditionBefore = Object.hasOwn(mergedConditions, column) ? mergedConditions[column]! : {};
    const hasConflict = Object.entries(condition).some(
      ([name, value]) =>
        Object.hasOwn(conditionBefore, name) && conditionBefore[name as keyof ValueCondition] !== value,
    );
    if (hasConflict) throw createAccessDeniedError();
    mergedConditions[column] = { ...conditionBefore, ...condition };
  }
  return mergedConditions;
}

/** Returns the index of the first rule that matches the operation (`verb`) and the user (null: anonymous visitor); -1 if none does. */
export const findDecidingRuleIndex = (
  rules: readonly EntryAccessRule[],
  verb: EntryVerb,
  user: AppUserData | null,
): number => rules.findIndex((rule) => ruleApplies(rule, verb, user));

/**
 * Returns the columns and entries that the caller may access with the operation (`verb`).
 * @throws DATA_SOURCE_ACCESS_DENIED if no rule matches, if the app user lacks a value for the rule's conditions, or if the conditions
 * contradict each other
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
 * True if the caller may select an entry by its ID, to read, change or remove it. False if the access rule requires a column in the
 * `where`, without a condition on its value. A request with an ID has no `where`.
 */
export const maySelectEntryById = ({ requiredColumns, conditions }: EntryPermissions): boolean =>
  requiredColumns.every((column) => Object.hasOwn(conditions, column));

/** Converts the conditions of an access rule to a `where`; null if there are no conditions. */
export function convertColumnConditionsToWhere(columnConditions: ColumnConditions): Record<string, unknown> | null {
  const conditions = Object.entries(columnConditions).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // `$eq` also matches a list that contains the value. `equals` of an access rule does not, so `$not` excludes lists.
      ...(equals === undefined ? [] : [{ [path]: { $eq: equals, $not: { $type: "array" } } }]),
      ...(notequals === undefined ? [] : [{ [path]: { $ne: notequals } }]),
      ...(contains === undefined ? [] : [{ [path]: { $iLike: new TextsOnlyOperand(contains) } }]),
    ];
  });
  return conditions.length === 0 ? null : { $and: conditions };
}

/**
 * Returns the column that a key of a `where` names. Returns null if the key is a field such as `entry.createdAt`, a path into a column, or
 * invalid.
 */
export function getColumnNamedByWhereKey(key: string): string | null {
  try {
    const path = parseDocumentPath(key, "where", { entryAlias: "e" });
    return path.entryField === null && path.segments.length === 1 ? path.segments[0]! : null;
  } catch {
    return null;
  }
}

/** Yields the conditions that every entry must meet to match the `where`: those at its top level, in `$and` and in `$filters`. */
function* listRequiredConditions(where: unknown, depth = 0): Generator<[column: string, condition: unknown]> {
  // A `where` that nests deeper is rejected when it is compiled to SQL.
  if (!isObject(where) || depth > WHERE_MAX_DEPTH) return;
  for (const [key, value] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(value))
      for (const branch of value) yield* listRequiredConditions(branch, depth + 1);
    else if (key === "$filters" && Array.isArray(value)) yield* listFilterConditions(value);
    else if (!key.startsWith("$")) {
      const column = getColumnNamedByWhereKey(key);
      if (column !== null) yield [column, value];
    }
  }
}

function* listFilterConditions(filters: readonly unknown[]): Generator<[column: string, condition: unknown]> {
  for (const filter of filters) {
    const column =
      isObject(filter) && typeof filter["column"] === "string" ? getColumnNamedByWhereKey(filter["column"]) : null;
    if (column !== null) yield [column, { $filters: filter }];
  }
}

/** Returns the columns with a condition that every entry must meet to match the `where`. */
export const listWhereColumns = (where: unknown): Set<string> =>
  new Set([...listRequiredConditions(where)].map(([column]) => column));

/** Yields each column that the `where` requires to equal a value, with this value. */
function* listRequiredValues(where: unknown): Generator<[column: string, value: unknown]> {
  for (const [column, condition] of listRequiredConditions(where)) {
    if (!isObject(condition)) yield [column, condition];
    else if (Object.hasOwn(condition, "$eq")) yield [column, condition["$eq"]];
  }
}

/** Rejects a `where` that requires a column to have a value other than the one in the access rule. @throws DATA_SOURCE_ACCESS_DENIED */
export function rejectWhereThatContradictsRule({ conditions }: EntryPermissions, where: unknown): void {
  for (const [column, value] of listRequiredValues(where)) {
    const condition = Object.hasOwn(conditions, column) ? conditions[column]! : {};
    if (condition.equals !== undefined && condition.equals !== value) throw createAccessDeniedError();
  }
}

/**
 * Rejects a request without a column that the access rule requires. The message names the column only if the caller may access it.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function checkRequiredColumns(
  permissions: EntryPermissions,
  input: ReadonlySet<string>,
  checkedField: "where" | "data",
): void {
  const missingColumn = permissions.requiredColumns.find((column) => !input.has(column));
  if (missingColumn === undefined) return;
  if (!permissions.mayAccessColumn(missingColumn)) throw createAccessDeniedError();
  const position = checkedField === "where" ? '"where", outside of $or, $nor and $not' : '"data"';
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule requires the column ${JSON.stringify(missingColumn)}; add it to ${position}`,
  );
}

/**
 * Returns the columns that a read may return, and a filter for the entries that the caller may read.
 * @param hashedColumns names of hashed columns, which no caller can read
 */
export function createVisibleEntryScope(
  permissions: EntryPermissions,
  hashedColumns: ReadonlySet<string>,
): VisibleEntryScope {
  return {
    canSeeColumn: (column) => !hashedColumns.has(column) && permissions.mayAccessColumn(column),
    filter: convertColumnConditionsToWhere(permissions.conditions),
  };
}
