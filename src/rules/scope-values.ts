/**
 * Evaluates the operators of a `where` on a document in memory, with the same results as the SQL of entry-query. Pass
 * only a `where` that entry-query has validated.
 */
import { isDeepStrictEqual } from "node:util";
import { containsTextFolded } from "./comparable-text.js";
import { isObject } from "./described.js";

/** Value at a path of a document; undefined if there is none, null for JSON's null. */
export type FoundValue = unknown;
export type ValueTest = (value: FoundValue) => boolean;

const INDEX = /^(?:0|[1-9]\d{0,4})$/;

/** Maximum number of values that are tested for one document. More would block the process, and so all other requests. */
const TESTS_MAX = 20_000;
export class TestLimitError extends Error {}

export class TestBudget {
  private left = TESTS_MAX;

  countStep(count = 1): void {
    this.left -= count;
    if (this.left < 0) throw new TestLimitError();
  }
}

function childValue(value: FoundValue, name: string): FoundValue {
  if (Array.isArray(value)) return INDEX.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Returns the values at the path. For an array along the path, these are the values in all its elements. */
export function valuesAt(document: FoundValue, segments: readonly string[], budget: TestBudget): FoundValue[] {
  let values = [document];
  for (const [at, name] of segments.entries()) {
    values = values.flatMap((value) => {
      const isLookedThrough = at > 0 && Array.isArray(value) && !INDEX.test(name);
      const items = isLookedThrough ? value : [value];
      budget.countStep(items.length);
      return items.map((item) => childValue(item, name));
    });
  }
  return values;
}

/** Returns the values, and after each array also its elements. */
export const withElements = (values: readonly FoundValue[]): FoundValue[] =>
  values.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]));

export const isScalar = (value: FoundValue): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const equalsTest =
  (expected: unknown): ValueTest =>
  (value) =>
    isDeepStrictEqual(value ?? null, expected);

const comparedTest =
  (holds: (order: number) => boolean) =>
  (expected: unknown): ValueTest =>
  (value) => {
    if (typeof value !== typeof expected || !isScalar(value)) return false;
    const otherValue = expected as typeof value;
    return holds(value < otherValue ? -1 : value > otherValue ? 1 : 0);
  };

const NUMBER_TYPES = ["number", "double", "int", "long", "decimal"];

function typeName(value: FoundValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isOfType(expected: unknown): ValueTest {
  const name = NUMBER_TYPES.includes(String(expected)) ? "number" : expected === "bool" ? "boolean" : expected;
  return (value) => typeName(value) === name;
}

function isRemainder(expected: unknown): ValueTest {
  const [divisor, remainder] = expected as [number, number];
  return (value) => typeof value === "number" && value % divisor === remainder;
}

interface Operator {
  test: (expected: unknown) => ValueTest;
  /** True if elements of an array count as values. */
  ofElements: boolean;
  /** True if the operator matches when no value passes the test. */
  negated?: boolean;
}

const elementOperator = (test: Operator["test"]): Operator => ({ test, ofElements: true });
const oneOf = (expected: unknown): ValueTest => {
  const tests = (expected as unknown[]).map(equalsTest);
  return (value) => tests.some((test) => test(value));
};

/** Operators by name. `$exists: false` is evaluated elsewhere, as the negation of `$exists: true`. */
export const SCOPE_OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: elementOperator(equalsTest),
  $ne: { ...elementOperator(equalsTest), negated: true },
  $gt: elementOperator(comparedTest((order) => order > 0)),
  $gte: elementOperator(comparedTest((order) => order >= 0)),
  $lt: elementOperator(comparedTest((order) => order < 0)),
  $lte: elementOperator(comparedTest((order) => order <= 0)),
  $in: elementOperator(oneOf),
  $nin: { ...elementOperator(oneOf), negated: true },
  $type: elementOperator(isOfType),
  $mod: elementOperator(isRemainder),
  $iLike: elementOperator((part) => (value) => isScalar(value) && containsTextFolded(String(value), String(part))),
  $size: { test: (size) => (value) => Array.isArray(value) && value.length === size, ofElements: false },
  $exists: { test: () => (value) => value !== undefined, ofElements: false },
};
