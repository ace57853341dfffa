/**
 * Evaluates the conditions of `$filters` in memory, with the same results as the SQL of entry-query/filters.ts. Callers must pass only
 * conditions that entry-query has validated.
 */
import { containsTextFolded, foldCase, formatDecimal, listEquivalentTexts } from "./comparable-text.js";
import { isObject } from "./describe-value.js";
import { isScalar, type ScopeValue, type ScopeValueTest } from "./notification-scope-values.js";

const NUMBER_PATTERN = /^\s*[-+]?(?:\d{1,255}(?:\.\d{0,255})?|\.\d{1,255})(?:[eE][-+]?\d{1,3})?\s*$/;
const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}/;

function convertScalarToText(value: unknown): string {
  if (typeof value === "number") return formatDecimal(value);
  return isScalar(value) ? String(value) : "";
}
const isNotObject = (value: ScopeValue): boolean => typeof value !== "object" || value === null;
const equalsAsText = (value: ScopeValue, expected: string): boolean =>
  isNotObject(value) &&
  listEquivalentTexts(expected).some((text) => foldCase(convertScalarToText(value)) === foldCase(text));

type CompareValues = (a: number | string, b: number | string) => boolean;
const isAbove: CompareValues = (a, b) => a > b;
const isAtLeast: CompareValues = (a, b) => a >= b;
const isBelow: CompareValues = (a, b) => a < b;
const isAtMost: CompareValues = (a, b) => a <= b;
const isEqual: CompareValues = (a, b) => a === b;

/** Returns a function that creates the test for an operand. The test compares numbers if the operand is a number, otherwise texts. */
function createComparison(compare: CompareValues): (operand: unknown) => ScopeValueTest {
  return (operand) => {
    const text = convertScalarToText(operand);
    if (!NUMBER_PATTERN.test(text)) return (value) => typeof value === "string" && compare(value, text);
    return (value) => {
      const isNumber = typeof value === "number" || (typeof value === "string" && NUMBER_PATTERN.test(value));
      return isNumber && compare(Number(value), Number(text));
    };
  };
}

const createDayTest =
  (compare: CompareValues) =>
  (operand: unknown): ScopeValueTest =>
  (value) =>
    typeof value === "string" && DAY_PATTERN.test(value) && compare(value.slice(0, 10), String(operand).slice(0, 10));

/** Creates a test of a range, whose operand is `[from, to]` or `{from, to}`. `first` tests the lower bound, `second` the upper one. */
const createRangeTest =
  (first: (operand: unknown) => ScopeValueTest, second: (operand: unknown) => ScopeValueTest) =>
  (operand: unknown): ScopeValueTest => {
    const [from, to] = isObject(operand) ? [operand["from"], operand["to"]] : (operand as unknown[]);
    const tests = [first(from), second(to)];
    return (value) => tests.every((test) => test(value));
  };

function createOneOfTest(operand: unknown): ScopeValueTest {
  const listedValues =
    typeof operand === "string" ? operand.split(",").map((part) => part.trim()) : (operand as unknown[]);
  return (value) => listedValues.some((listed) => equalsAsText(value, convertScalarToText(listed)));
}

const isEmptyValue: ScopeValueTest = (value) =>
  value === undefined ||
  value === null ||
  value === "" ||
  (!isNotObject(value) && Object.keys(value as object).length === 0);

interface ScopeCondition {
  createTest: (operand: unknown) => ScopeValueTest;
  negated?: boolean;
  /** True if the condition tests an array only as a whole; false if it also tests each element. */
  comparesWholeValue?: boolean;
}

export const SCOPE_FILTER_CONDITIONS: Readonly<Record<string, ScopeCondition>> = {
  "==": { createTest: (operand) => (value) => equalsAsText(value, convertScalarToText(operand)) },
  "!=": { createTest: (operand) => (value) => equalsAsText(value, convertScalarToText(operand)), negated: true },
  ">": { createTest: createComparison(isAbove) },
  ">=": { createTest: createComparison(isAtLeast) },
  "<": { createTest: createComparison(isBelow) },
  "<=": { createTest: createComparison(isAtMost) },
  contains: {
    createTest: (operand) => (value) =>
      isScalar(value) && containsTextFolded(String(value), convertScalarToText(operand)),
  },
  empty: { createTest: () => isEmptyValue, comparesWholeValue: true },
  notempty: { createTest: () => isEmptyValue, comparesWholeValue: true, negated: true },
  between: { createTest: createRangeTest(createComparison(isAtLeast), createComparison(isAtMost)) },
  oneof: { createTest: createOneOfTest },
  dateis: { createTest: createDayTest(isEqual) },
  datebefore: { createTest: createDayTest(isBelow) },
  dateafter: { createTest: createDayTest(isAbove) },
  datebetween: { createTest: createRangeTest(createDayTest(isAtLeast), createDayTest(isAtMost)) },
};
