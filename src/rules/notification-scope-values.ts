/**
 * Evaluates the operators of a `where` on a document in memory, with the same results as the SQL of entry-query. Callers must pass only a
 * `where` that entry-query has validated.
 */
import { isDeepStrictEqual } from "node:util";
import { containsTextFolded } from "./comparable-text.js";
import { isObject } from "./describe-value.js";

/** Value at a path of a document: undefined if the document has no such path, null for JSON's null. */
export type ScopeValue = unknown;
export type ScopeValueTest = (value: ScopeValue) => boolean;

const ARRAY_INDEX_PATTERN = /^(?:0|[1-9]\d{0,4})$/;

/** Maximum number of steps (reads and tests of values) to evaluate one `where`. More steps would delay all other requests. */
const STEPS_MAX = 20_000;
export class ScopeTestLimitError extends Error {}

export class ScopeTestBudget {
  private remainingSteps = STEPS_MAX;

  countStep(count = 1): void {
    this.remainingSteps -= count;
    if (this.remainingSteps < 0) throw new ScopeTestLimitError();
  }
}

function getChildValue(value: ScopeValue, name: string): ScopeValue {
  if (Array.isArray(value)) return ARRAY_INDEX_PATTERN.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * Returns the values at a path, with undefined for each missing value. In an array on the path, an index selects one element. Any other
 * name is read from each element, unless the array is `document` itself.
 */
export function readScopeValues(
  document: ScopeValue,
  segments: readonly string[],
  budget: ScopeTestBudget,
): ScopeValue[] {
  let values = [document];
  for (const [at, name] of segments.entries()) {
    values = values.flatMap((value) => {
      const isSearchedArray = at > 0 && Array.isArray(value) && !ARRAY_INDEX_PATTERN.test(name);
      const items = isSearchedArray ? value : [value];
      budget.countStep(items.length);
      return items.map((item) => getChildValue(item, name));
    });
  }
  return values;
}

/** Returns the values, and after each array also its elements. */
export const addArrayElements = (values: readonly ScopeValue[]): ScopeValue[] =>
  values.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]));

export const isScalar = (value: ScopeValue): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const createEqualsTest =
  (expected: unknown): ScopeValueTest =>
  (value) =>
    isDeepStrictEqual(value ?? null, expected);

const createComparisonTest =
  (isAcceptedOrder: (order: number) => boolean) =>
  (expected: unknown): ScopeValueTest =>
  (value) => {
    if (typeof value !== typeof expected || !isScalar(value)) return false;
    const otherValue = expected as typeof value;
    return isAcceptedOrder(value < otherValue ? -1 : value > otherValue ? 1 : 0);
  };

const NUMBER_TYPES = ["number", "double", "int", "long", "decimal"];

function getTypeName(value: ScopeValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function createTypeTest(expected: unknown): ScopeValueTest {
  const name = NUMBER_TYPES.includes(String(expected)) ? "number" : expected === "bool" ? "boolean" : expected;
  return (value) => getTypeName(value) === name;
}

function createRemainderTest(expected: unknown): ScopeValueTest {
  const [divisor, remainder] = expected as [number, number];
  return (value) => typeof value === "number" && value % divisor === remainder;
}

interface Operator {
  test: (expected: unknown) => ScopeValueTest;
  /** True if the operator also tests each element of an array. */
  testsElements: boolean;
  /** True if the operator matches documents in which no value passes the test. */
  negated?: boolean;
}

const createElementOperator = (test: Operator["test"]): Operator => ({ test, testsElements: true });
const createOneOfTest = (expected: unknown): ScopeValueTest => {
  const tests = (expected as unknown[]).map(createEqualsTest);
  return (value) => tests.some((test) => test(value));
};

/** Operators by name. notification-scope.ts evaluates `$exists: false` as the opposite of `$exists: true`. */
export const SCOPE_OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: createElementOperator(createEqualsTest),
  $ne: { ...createElementOperator(createEqualsTest), negated: true },
  $gt: createElementOperator(createComparisonTest((order) => order > 0)),
  $gte: createElementOperator(createComparisonTest((order) => order >= 0)),
  $lt: createElementOperator(createComparisonTest((order) => order < 0)),
  $lte: createElementOperator(createComparisonTest((order) => order <= 0)),
  $in: createElementOperator(createOneOfTest),
  $nin: { ...createElementOperator(createOneOfTest), negated: true },
  $type: createElementOperator(createTypeTest),
  $mod: createElementOperator(createRemainderTest),
  $iLike: createElementOperator(
    (part) => (value) => isScalar(value) && containsTextFolded(String(value), String(part)),
  ),
  $size: { test: (size) => (value) => Array.isArray(value) && value.length === size, testsElements: false },
  $exists: { test: () => (value) => value !== undefined, testsElements: false },
};
