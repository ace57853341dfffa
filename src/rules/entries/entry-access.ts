/**
 * Who may do what with the entries of one data source: the first access rule that fits decides, and what it leaves visible. Pure; knows
 * no credential and no SQL.
 */
import { ActionError } from "../../errors.js";
import { allows, type ColumnTests, filledTests, type UserData, type ValueTest } from "../caller-rules.js";
import { isObject } from "../described.js";
import { type EntryScope, EVERYTHING as EVERY_COLUMN } from "../entry-query/options.js";
import { parsePath } from "../entry-query/path.js";
import type { AccessRule, EntryVerb } from "./access-rules.js";

/** For whom entries are read or written: for the app itself, or for a page, with the user that is signed in to it. */
export type EntryCaller = { trusted: true } | { trusted: false; user: UserData | null };

/** What one caller may do by one verb. */
export interface EntryGrant {
  /** Whether the caller may see, or write, the column. A hashed one may be written. */
  mayTouch(column: string): boolean;
  /** Columns that the where (select, delete) or the data (insert, update) must hold. */
  required: readonly string[];
  /** Tests that an entry must meet: before it is read, changed or removed, and in what is written. Without `{{…}}`. */
  tests: ColumnTests;
  /** Equal for grants that show, or let write, the same. */
  fingerprint: string;
}

export const denied = (): ActionError => new ActionError("DATA_SOURCE_ACCESS_DENIED");

const fits = (rule: AccessRule, verb: EntryVerb, user: UserData | null): boolean =>
  rule.enabled !== false && rule.type.includes(verb) && allows(rule.allow, user);

const EVERYTHING: EntryGrant = { mayTouch: EVERY_COLUMN.sees, required: [], tests: {}, fingerprint: "everything" };

function grantOf(rule: AccessRule, user: UserData | null): EntryGrant {
  const { include, exclude = [], require = [] } = rule;
  const all = require.filter((one) => typeof one !== "string").map((tests) => filledTests(tests, user));
  if (all.includes(null)) throw denied();
  const tests = mergeTests(all as ColumnTests[]);
  const required = [...require.filter((one) => typeof one === "string"), ...Object.keys(tests)];
  const mayTouch = (column: string) => (include?.includes(column) ?? true) && !exclude.includes(column);
  return { mayTouch, required, tests, fingerprint: JSON.stringify([include, exclude, required, tests]) };
}

/** Two tests of one column that ask for different things can never both be written as one: then nothing meets them. */
function mergeTests(all: readonly ColumnTests[]): ColumnTests {
  const merged: Record<string, ValueTest> = {};
  for (const [column, test] of all.flatMap((tests) => Object.entries(tests))) {
    const before = Object.hasOwn(merged, column) ? merged[column]! : {};
    const clash = Object.entries(test).some(
      ([name, value]) => Object.hasOwn(before, name) && before[name as keyof ValueTest] !== value,
    );
    if (clash) throw denied();
    merged[column] = { ...before, ...test };
  }
  return merged;
}

/** Index of the rule that decides for the user, or for an anonymous visitor; -1: none. */
export const decidingRule = (rules: readonly AccessRule[], verb: EntryVerb, user: UserData | null): number =>
  rules.findIndex((one) => fits(one, verb, user));

/**
 * What the caller may do by the verb.
 * @throws DATA_SOURCE_ACCESS_DENIED where no rule fits, or the user has not what the deciding rule asks for
 */
export function grantFor(rules: readonly AccessRule[], verb: EntryVerb, caller: EntryCaller): EntryGrant {
  if (caller.trusted) return EVERYTHING;
  const rule = rules[decidingRule(rules, verb, caller.user)];
  if (!rule) throw denied();
  return grantOf(rule, caller.user);
}

/** An ID is not a where. A rule that only requires a column by name cannot be met by an ID; one that tests a value can. */
export const mayNameById = ({ required, tests }: EntryGrant): boolean =>
  required.every((column) => Object.hasOwn(tests, column));

/** The tests as a `where` of the query language; null for none. */
export function testsAsWhere(tests: ColumnTests): Record<string, unknown> | null {
  const conditions = Object.entries(tests).flatMap(([column, { equals, notequals, contains }]) => {
    const path = `data.${column.replaceAll(".", "\\.")}`;
    return [
      // `$eq` also finds lists that hold the value.
      ...(equals === undefined ? [] : [{ [path]: { $eq: equals, $not: { $type: "array" } } }]),
      ...(notequals === undefined ? [] : [{ [path]: { $ne: notequals } }]),
      ...(contains === undefined ? [] : [{ [path]: { $iLike: contains } }]),
    ];
  });
  return conditions.length === 0 ? null : { $and: conditions };
}

/** The whole column that a key of a where names; null for a field of the entry itself, a part of a column, or no path. */
export function columnNamed(key: string): string | null {
  try {
    const path = parsePath(key, "where", { entry: "e" });
    return path.own === null && path.segments.length === 1 ? path.segments[0]! : null;
  } catch {
    return null;
  }
}

/** What the where says that every found entry must meet: its own conditions, and those of its `$and`. */
function* demands(where: unknown): Generator<[column: string, condition: unknown]> {
  if (!isObject(where)) return;
  for (const [key, value] of Object.entries(where)) {
    if (key === "$and" && Array.isArray(value)) for (const one of value) yield* demands(one);
    else if (key === "$filters" && Array.isArray(value)) yield* filtered(value);
    else if (!key.startsWith("$")) {
      const column = columnNamed(key);
      if (column !== null) yield [column, value];
    }
  }
}

function* filtered(filters: readonly unknown[]): Generator<[column: string, condition: unknown]> {
  for (const one of filters) {
    const column = isObject(one) && typeof one["column"] === "string" ? columnNamed(one["column"]) : null;
    if (column !== null) yield [column, { $filters: one }];
  }
}

/** Columns of which the where says something that every found entry must meet. */
export const demandedColumns = (where: unknown): Set<string> => new Set([...demands(where)].map(([column]) => column));

/** The values that the where says a column must equal. */
function* equalities(where: unknown): Generator<[column: string, value: unknown]> {
  for (const [column, condition] of demands(where)) {
    if (!isObject(condition)) yield [column, condition];
    else if (Object.hasOwn(condition, "$eq")) yield [column, condition["$eq"]];
  }
}

/** A where that asks for another value than the rule does is refused, and not only empty. @throws DATA_SOURCE_ACCESS_DENIED */
export function requireValues({ tests }: EntryGrant, where: unknown): void {
  for (const [column, value] of equalities(where)) {
    const test = Object.hasOwn(tests, column) ? tests[column]! : {};
    if (test.equals !== undefined && test.equals !== value) throw denied();
  }
}

/** @throws DATA_SOURCE_ACCESS_DENIED naming what is missing where the caller may know of that column */
export function requireColumns(grant: EntryGrant, given: ReadonlySet<string>, place: "where" | "data"): void {
  const missing = grant.required.find((column) => !given.has(column));
  if (missing === undefined) return;
  if (!grant.mayTouch(missing)) throw denied();
  throw new ActionError(
    "DATA_SOURCE_ACCESS_DENIED",
    `the access rule asks for ${JSON.stringify(missing)} in the ${place}`,
  );
}

/**
 * Returns what a read may show. @throws DATA_SOURCE_ACCESS_DENIED
 * @param hashed columns that no caller sees
 */
export function scopeFor(grant: EntryGrant, hashed: ReadonlySet<string>): EntryScope {
  const filter = testsAsWhere(grant.tests);
  if (hashed.size === 0) return { sees: grant.mayTouch, filter };
  return { sees: (column) => !hashed.has(column) && grant.mayTouch(column), filter };
}
