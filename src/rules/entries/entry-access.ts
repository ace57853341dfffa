/**
 * Determines a caller's rights on the entries and columns of a data source. The first access rule that matches the
 * caller and the operation decides.
 */
import { ActionError } from "../../errors.js";
import { allowsUser, type ColumnTests, filledTests, type UserData, type ValueTest } from "../caller-rules.js";
import { isObject } from "../described.js";
import { type EntryScope, FULL_SCOPE as EVERY_COLUMN } from "../entry-query/options.js";
import { parsePath } from "../entry-query/path.js";
import type { AccessRule, EntryVerb } from "./access-rules.js";

/** Caller of an operation on entries: trusted (no access rules apply), or a page with the user who is signed in, if any. */
export type EntryCaller = { trusted: true } | { trusted: false; user: UserData | null };

/** Rights of a caller for one operation. */
export interface EntryGrant {
  /** True if the caller can read the column (select, delete) or write it (insert, update). Hashed columns are never read. */
  mayTouch(column: string): boolean;
  /** Columns that the `where` (select, delete) or the data (insert, update) must contain. */
  required: readonly string[];
  /**
   * Conditions that an entry must meet before it is read, changed or removed, and that written data must meet.
   * Placeholders are already replaced.
   */
  tests: ColumnTests;
  /** Key that is the same for grants with the same columns, requirements and conditions. */
  fingerprint: string;
}

export const accessDenied = (): ActionError => new ActionError("DATA_SOURCE_ACCESS_DENIED");

const appliesTo = (rule: AccessRule, verb: EntryVerb, user: UserData | null): boolean =>
  rule.enabled !== false && rule.type.includes(verb) && allowsUser(rule.allow, user);

const FULL_GRANT: EntryGrant = { mayTouch: EVERY_COLUMN.canSee, required: [], tests: {}, fingerprint: "everything" };

function grantOf(rule: AccessRule, user: UserData | null): EntryGrant {
  const { include, exclude = [], require = [] } = rule;
  const all = require.filter((requirement) => typeof requirement !== "string").map((tests) => filledTests(tests, user));
  if (all.includes(null)) throw accessDenied();
  const tests = mergeTests(all as ColumnTests[]);
  const required = [...require.filter((requirement) => typeof requirement === "string"), ...Object.keys(tests)];
  const mayTouch = (column: string) => (include?.includes(column) ?? true) && !exclude.includes(column);
  return { mayTouch, required, tests, fingerprint: JSON.stringify([include, exclude, required, tests]) };
}

/** Combines conditions. If two of them contradict each other, no entry can meet both, and access is denied. */
function mergeTests(all: readonly ColumnTests[]): ColumnTests {
  const mergedTests: Record<string, ValueTest> = {};
  for (const [column, test] of all.flatMap((tests) => Object.entries(tests))) {
    const testBefore = Object.hasOwn(mergedTests, column) ? mergedTests[column]! : {};
    const clashingTest = Object.entries(test).some(
      ([name, value]) => Object.hasOwn(testBefore, name) && testBefore[name as keyof ValueTest] !== value,
    );
    if (clashingTest) throw accessDenied();
    mergedTests[column] = { ...testBefore, ...test };
  }
  return mergedTests;
}

/** Returns the index of the first rule that matches the user, or an anonymous visitor if `user` is null; -1 if none does. */
export const decidingRule = (rules: readonly AccessRule[], verb: EntryVerb, user: UserData | null): number =>
  rules.findIndex((rule) => appliesTo(rule, verb, user));

/**
 * Returns the caller's rights for the verb.
 * @throws DATA_SOURCE_ACCESS_DENIED if no rule matches, or the user lacks a value that the rule needs
 */
export function grantFor(rules: readonly AccessRule[], verb: EntryVerb, caller: EntryCaller): EntryGrant {
  if (caller.trusted) return FULL_GRANT;
  const rule = rules[decidingRule(rules, verb, caller.user)];
  if (!rule) throw accessDenied();
  return grantOf(rule, caller.user);
}

/**
 * True if the caller may select an entry by its ID. False if the rule requires a column in the `where`, because an ID
 * contains none. A rule with conditions on values can be checked after the entry is read.
 */
export const mayNameById = ({ required, tests }: EntryGrant): boolean =>
  required.every((column) => Object.hasOwn(tests, column));

/** Converts conditions to a `where` of the query language; null if there are none. */
export function testsAsWhere(tests: ColumnTests): Record<string, unknown> | null {
  const conditions = Object.entries(tests).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // `$eq` also matches lists that contain the value, which `equals` does not.
      ...(equals === undefined ? [] : [{ [path]: { $eq: equals, $not: { $type: "array" } } }]),
      ...(notequals === undefined ? [] : [{ [path]: { $ne: notequals } }]),
      ...(contains === undefined ? [] : [{ [path]: { $iLike: contains } }]),
    ];
  });
  return conditions.length === 0 ? null : { $and: conditions };
}

/**
 * Returns the column if the key of a `where` is the name of a whole column; null for a field of the entry itself, a path
 * into a column, or an invalid path.
 */
export function columnNamed(key: string): string | null {
  try {
    const path = parsePath(key, "where", { entry: "e" });
    return path.own === null && path.segments.length === 1 ? path.segments[0]! : null;
  } catch {
    return null;
  }
}

/** Yields the conditions on columns that every matching entry must meet: at the top of the `where`, and in its `$and`. */
function* requiredConditions(where: unknown): Generator<[column: string, condition: unknown]> {
  if (!isObject(where)) return;
  for (const [key, value] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(value)) for (const branch of value) yield* requiredConditions(branch);
    else if (key === "$filters" && Array.isArray(value)) yield* filterConditions(value);
    else if (!key.startsWith("$")) {
      const column = columnNamed(key);
      if (column !== null) yield [column, value];
    }
  }
}

function* filterConditions(filters: readonly unknown[]): Generator<[column: string, condition: unknown]> {
  for (const filter of filters) {
    const column = isObject(filter) && typeof filter["column"] === "string" ? columnNamed(filter["column"]) : null;
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
 * Rejects a `where` that compares a column with another value than the access rule. No entry could match both.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function requireValues({ tests }: EntryGrant, where: unknown): void {
  for (const [column, value] of requiredValues(where)) {
    const test = Object.hasOwn(tests, column) ? tests[column]! : {};
    if (test.equals !== undefined && test.equals !== value) throw accessDenied();
  }
}

/** @throws DATA_SOURCE_ACCESS_DENIED. The message contains the missing column only if the caller has access to it. */
export function requireColumns(grant: EntryGrant, input: ReadonlySet<string>, place: "where" | "data"): void {
  const missingColumn = grant.required.find((column) => !input.has(column));
  if (missingColumn === undefined) return;
  if (!grant.mayTouch(missingColumn)) throw accessDenied();
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule requires the column ${JSON.stringify(missingColumn)} in "${place}"`,
  );
}

/**
 * Returns the columns that a read may return, and a filter for its entries.
 * @param hashed columns that no caller can read
 */
export function scopeFor(grant: EntryGrant, hashed: ReadonlySet<string>): EntryScope {
  const filter = testsAsWhere(grant.tests);
  if (hashed.size === 0) return { canSee: grant.mayTouch, filter };
  return { canSee: (column) => !hashed.has(column) && grant.mayTouch(column), filter };
}
