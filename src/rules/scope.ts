/** Whom a notification is for: a `where` on the app's user, or a list of them of which one must fit. Pure; knows no user's source. */
import { ActionError } from "../errors.js";
import { described, isObject, nestsDeeperThan } from "./described.js";

/** What is known of the app's user; null: a visitor without a name. */
export type ScopeUser = Readonly<Record<string, unknown>> | null;

const SCOPE_MAX_BYTES = 16 * 1024;
const SCOPE_MAX_DEPTH = 20;
const LIST_MAX = 1_000;

type Test = (value: unknown, expected: unknown) => boolean;

const same = (a: unknown, b: unknown): boolean => (a ?? null) === (b ?? null);
const ordered = (a: unknown, b: unknown, holds: (order: number) => boolean): boolean => {
  if (typeof a === "number" && typeof b === "number") return holds(a - b);
  return typeof a === "string" && typeof b === "string" && holds(a < b ? -1 : a > b ? 1 : 0);
};
const anyOf = (value: unknown, expected: unknown): boolean =>
  Array.isArray(expected) && expected.some((one) => [value].flat().some((held) => same(held, one)));

const TESTS: Record<string, Test> = {
  $eq: same,
  $ne: (value, expected) => !same(value, expected),
  $gt: (value, expected) => ordered(value, expected, (order) => order > 0),
  $gte: (value, expected) => ordered(value, expected, (order) => order >= 0),
  $lt: (value, expected) => ordered(value, expected, (order) => order < 0),
  $lte: (value, expected) => ordered(value, expected, (order) => order <= 0),
  $in: anyOf,
  $nin: (value, expected) => !anyOf(value, expected),
  $exists: (value, expected) => (value !== undefined && value !== null) === (expected !== false),
  $iLike: (value, expected) =>
    typeof value === "string" && value.toLowerCase().includes(String(expected).toLowerCase()),
};
const LISTS = ["$and", "$or", "$nor"];

function refuse(field: string, expected: string, came: unknown): never {
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected}; ${described(came)} came`);
}

function checkTests(tests: unknown, field: string): void {
  if (!isObject(tests) || !Object.keys(tests).some((name) => name.startsWith("$"))) return;
  for (const [name, expected] of Object.entries(tests)) {
    if (name === "$not") checkTests(expected, `${field}.$not`);
    else if (!Object.hasOwn(TESTS, name))
      refuse(`${field}`, `tested by ${Object.keys(TESTS).join(", ")} or $not`, name);
    else if (/^\$n?in$/.test(name) && !Array.isArray(expected)) refuse(`${field}.${name}`, "an array", expected);
  }
}

function checkWhere(where: unknown, field: string): void {
  if (!isObject(where)) refuse(field, "a where: an object of tests", where);
  for (const [name, inner] of Object.entries(where)) {
    const place = `${field}.${name}`;
    if (LISTS.includes(name)) {
      if (!Array.isArray(inner)) refuse(place, "an array of wheres", inner);
      for (const [index, one] of inner.entries()) checkWhere(one, `${place}[${index}]`);
    } else if (name === "$not") checkWhere(inner, place);
    else if (name.startsWith("$")) refuse(place, "a column, $and, $or, $nor or $not", name);
    else checkTests(inner, place);
  }
}

export type Scope = Record<string, unknown> | Record<string, unknown>[];

/** A number in a list is a user's id. null: everybody. @throws REQUEST_INVALID naming the field */
export function parseScope(value: unknown): Scope | null {
  if (value === undefined || value === null) return null;
  if (nestsDeeperThan(value, SCOPE_MAX_DEPTH) || Buffer.byteLength(JSON.stringify(value)) > SCOPE_MAX_BYTES) {
    return refuse("scope", `at most ${SCOPE_MAX_BYTES} bytes of JSON and ${SCOPE_MAX_DEPTH} levels`, value);
  }
  const list = (Array.isArray(value) ? value : [value]).map((one) => (Number.isSafeInteger(one) ? { id: one } : one));
  if (list.length > LIST_MAX) refuse("scope", `a list of at most ${LIST_MAX}`, value);
  for (const [index, one] of list.entries()) checkWhere(one, Array.isArray(value) ? `scope[${index}]` : "scope");
  return (Array.isArray(value) ? list : list[0]) as Scope;
}

function valueAt(user: ScopeUser, path: string): unknown {
  let value: unknown = user;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function passes(value: unknown, tests: unknown): boolean {
  if (!isObject(tests) || !Object.keys(tests).some((name) => name.startsWith("$"))) return same(value, tests);
  return Object.entries(tests).every(([name, expected]) =>
    name === "$not" ? !passes(value, expected) : TESTS[name]!(value, expected),
  );
}

function fits(where: Record<string, unknown>, user: ScopeUser): boolean {
  return Object.entries(where).every(([name, inner]) => {
    const all = () => inner as Record<string, unknown>[];
    switch (name) {
      case "$and":
        return all().every((one) => fits(one, user));
      case "$or":
        return all().some((one) => fits(one, user));
      case "$nor":
        return !all().some((one) => fits(one, user));
      case "$not":
        return !fits(inner as Record<string, unknown>, user);
      default:
        return passes(valueAt(user, name), inner);
    }
  });
}

/** Whether a notification of that scope, which `parseScope` has judged, is for the user. A scope is never for who has no name. */
export function inScope(scope: Scope | null, user: ScopeUser): boolean {
  if (scope === null) return true;
  if (user === null) return false;
  return Array.isArray(scope) ? scope.some((one) => fits(one, user)) : fits(scope, user);
}
