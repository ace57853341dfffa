/**
 * Determines a caller's rights on the entries of a data source. The first matching access rule decides, and also which
 * columns are visible.
 */
import { ActionError } from "../../errors.js";
import { allowsUser, type ColumnTests, filledTests, type UserData, type ValueTest } from "../caller-rules.js";
import { isObject } from "../described.js";
import { type EntryScope, FULL_SCOPE as EVERY_COLUMN } from "../entry-query/options.js";
import { parsePath } from "../entry-query/path.js";
import type { AccessRule, EntryVerb } from "./access-rules.js";

/** The caller as access rules see it: a trusted one of the app itself, or a page with its signed-in user. */
export type EntryCaller = { trusted: true } | { trusted: false; user: UserData | null };

/** What one caller may do with one operation. */
export interface EntryGrant {
  /** True if the caller can see the column, or write it for a write. A hashed column can be written but never seen. */
  mayTouch(column: string): boolean;
  /** Columns that the `where` (select, delete) or the data (insert, update) must contain. */
  required: readonly string[];
  /**
   * Tests that an entry must pass before it is read, changed or removed, and that written data must pass. Placeholders
   * are already replaced.
   */
  tests: ColumnTests;
  /** Key that is equal for grants with the same visible or writable columns. */
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

/** Combines tests. Two different tests of one column cannot be combined: then no entry passes. */
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

/** Returns the index of the rule that decides for the user, or for an anonymous visitor; -1 if none does. */
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
 * True if the caller may name an entry by its ID alone. An ID cannot satisfy a rule that requires a column by name, but
 * it can satisfy one that tests a value.
 */
export const mayNameById = ({ required, tests }: EntryGrant): boolean =>
  required.every((column) => Object.hasOwn(tests, column));

/** Returns the tests as a `where` of the query language; null if there are none. */
export function testsAsWhere(tests: ColumnTests): Record<string, unknown> | null {
  const conditions = Object.entries(tests).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // `$eq` also matches lists that contain the value.
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

/** Yields the conditions that every matching entry must meet: those at the top of the `where`, and those in its `$and`. */
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
 * Rejects a `where` that requires another value than the rule does; otherwise the result would be empty.
 * @throws DATA_SOURCE_ACCESS_DENIED
 */
export function requireValues({ tests }: EntryGrant, where: unknown): void {
  for (const [column, value] of requiredValues(where)) {
    const test = Object.hasOwn(tests, column) ? tests[column]! : {};
    if (test.equals !== undefined && test.equals !== value) throw accessDenied();
  }
}

/** @throws DATA_SOURCE_ACCESS_DENIED that names the missing column if the caller can know it */
export function requireColumns(grant: EntryGrant, input: ReadonlySet<string>, place: "where" | "data"): void {
  const missingColumn = grant.required.find((column) => !input.has(column));
  if (missingColumn === undefined) return;
  if (!grant.mayTouch(missingColumn)) throw accessDenied();
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule asks for ${JSON.stringify(missingColumn)} in the ${place}`,
  );
}

/**
 * Returns the entries and columns that a read may return.
 * @throws DATA_SOURCE_ACCESS_DENIED
 * @param hashed columns that no caller can see
 */
export function scopeFor(grant: EntryGrant, hashed: ReadonlySet<string>): EntryScope {
  const filter = testsAsWhere(grant.tests);
  if (hashed.size === 0) return { canSee: grant.mayTouch, filter };
  return { canSee: (column) => !hashed.has(column) && grant.mayTouch(column), filter };
}
