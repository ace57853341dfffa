/**
 * The tests of a `where` on one document in memory, as PostgreSQL makes them of an entry (entry-query): on values found by a path, arrays
 * on the way looked through. Takes what that language's judge has passed.
 */
import { isDeepStrictEqual } from "node:util";
import { holdsText } from "./comparable-text.js";
import { isObject } from "./described.js";

/** Absent is undefined, JSON's null is null. */
export type Found = unknown;
export type ValueTest = (value: Found) => boolean;

const INDEX = /^(?:0|[1-9]\d{0,4})$/;

/** Maximum tests of a document: one with large arrays and many tests would block all other requests. */
const LOOKS_MAX = 20_000;
export class TooManyLooks extends Error {}

export class Looks {
  private left = LOOKS_MAX;

  take(count = 1): void {
    this.left -= count;
    if (this.left < 0) throw new TooManyLooks();
  }
}

function child(value: Found, name: string): Found {
  if (Array.isArray(value)) return INDEX.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** What stands at the path; of arrays on the way, at the path in each element. */
export function valuesAt(document: Found, segments: readonly string[], looks: Looks): Found[] {
  let found = [document];
  for (const [at, name] of segments.entries()) {
    found = found.flatMap((value) => {
      const isLookedThrough = at > 0 && Array.isArray(value) && !INDEX.test(name);
      const items = isLookedThrough ? value : [value];
      looks.take(items.length);
      return items.map((item) => child(item, name));
    });
  }
  return found;
}

/** The values, and after each array its elements. */
export const withElements = (values: readonly Found[]): Found[] =>
  values.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]));

export const isScalar = (value: Found): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const equals =
  (expected: unknown): ValueTest =>
  (value) =>
    isDeepStrictEqual(value ?? null, expected);

const compared =
  (holds: (order: number) => boolean) =>
  (expected: unknown): ValueTest =>
  (value) => {
    if (typeof value !== typeof expected || !isScalar(value)) return false;
    const other = expected as typeof value;
    return holds(value < other ? -1 : value > other ? 1 : 0);
  };

const NUMBERS = ["number", "double", "int", "long", "decimal"];

function typeName(value: Found): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isOfType(expected: unknown): ValueTest {
  const name = NUMBERS.includes(String(expected)) ? "number" : expected === "bool" ? "boolean" : expected;
  return (value) => typeName(value) === name;
}

function isRemainder(expected: unknown): ValueTest {
  const [divisor, remainder] = expected as [number, number];
  return (value) => typeof value === "number" && value % divisor === remainder;
}

interface Operator {
  test: (expected: unknown) => ValueTest;
  /** Elements of an array count as values. */
  ofElements: boolean;
  /** Holds where the test holds for none. */
  negated?: boolean;
}

const ofElements = (test: Operator["test"]): Operator => ({ test, ofElements: true });
const oneOf = (expected: unknown): ValueTest => {
  const tests = (expected as unknown[]).map(equals);
  return (value) => tests.some((test) => test(value));
};

/** `$exists: false` is what is left of `$exists: true`. */
export const OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: ofElements(equals),
  $ne: { ...ofElements(equals), negated: true },
  $gt: ofElements(compared((order) => order > 0)),
  $gte: ofElements(compared((order) => order >= 0)),
  $lt: ofElements(compared((order) => order < 0)),
  $lte: ofElements(compared((order) => order <= 0)),
  $in: ofElements(oneOf),
  $nin: { ...ofElements(oneOf), negated: true },
  $type: ofElements(isOfType),
  $mod: ofElements(isRemainder),
  $iLike: ofElements((part) => (value) => isScalar(value) && holdsText(String(value), String(part))),
  $size: { test: (size) => (value) => Array.isArray(value) && value.length === size, ofElements: false },
  $exists: { test: () => (value) => value !== undefined, ofElements: false },
};
