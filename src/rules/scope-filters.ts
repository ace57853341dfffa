/**
 * Evaluates the conditions of `$filters` in memory, with the same results as the SQL of entry-query/filters.ts. Pass
 * only conditions that entry-query has validated.
 */
import { containsTextFolded, foldCase, formatDecimal, textsEqualTo } from "./comparable-text.js";
import { isObject } from "./described.js";
import { type FoundValue, isScalar, type ValueTest } from "./scope-values.js";

const NUMBER = /^\s*[-+]?(?:\d{1,255}(?:\.\d{0,255})?|\.\d{1,255})(?:[eE][-+]?\d{1,3})?\s*$/;
const DAY = /^\d{4}-\d{2}-\d{2}/;

function textOfScalar(value: unknown): string {
  if (typeof value === "number") return formatDecimal(value);
  return isScalar(value) ? String(value) : "";
}
const isPlain = (value: FoundValue): boolean => typeof value !== "object" || value === null;
const equalsAsText = (value: FoundValue, expected: string): boolean =>
  isPlain(value) && textsEqualTo(expected).some((text) => foldCase(textOfScalar(value)) === foldCase(text));

type CompareValues = (a: number | string, b: number | string) => boolean;
const isAbove: CompareValues = (a, b) => a > b;
const isAtLeast: CompareValues = (a, b) => a >= b;
const isBelow: CompareValues = (a, b) => a < b;
const isAtMost: CompareValues = (a, b) => a <= b;
const isEqual: CompareValues = (a, b) => a === b;

/** Returns a condition that compares numbers if the operand is a number, and texts otherwise. */
function compareTest(holds: CompareValues): (operand: unknown) => ValueTest {
  return (operand) => {
    const text = textOfScalar(operand);
    if (!NUMBER.test(text)) return (value) => typeof value === "string" && holds(value, text);
    return (value) => {
      const isNumber = typeof value === "number" || (typeof value === "string" && NUMBER.test(value));
      return isNumber && holds(Number(value), Number(text));
    };
  };
}

const isOnDay =
  (holds: CompareValues) =>
  (operand: unknown): ValueTest =>
  (value) =>
    typeof value === "string" && DAY.test(value) && holds(value.slice(0, 10), String(operand).slice(0, 10));

/** Returns a condition for a range with both bounds; its operand is `[from, to]` or `{from, to}`. */
const betweenTest =
  (first: (operand: unknown) => ValueTest, second: (operand: unknown) => ValueTest) =>
  (operand: unknown): ValueTest => {
    const [from, to] = isObject(operand) ? [operand["from"], operand["to"]] : (operand as unknown[]);
    const tests = [first(from), second(to)];
    return (value) => tests.every((test) => test(value));
  };

function isOneOf(operand: unknown): ValueTest {
  const listedValues =
    typeof operand === "string" ? operand.split(",").map((part) => part.trim()) : (operand as unknown[]);
  return (value) => listedValues.some((listed) => equalsAsText(value, textOfScalar(listed)));
}

const isEmpty: ValueTest = (value) =>
  value === undefined ||
  value === null ||
  value === "" ||
  (!isPlain(value) && Object.keys(value as object).length === 0);

interface ScopeCondition {
  test: (operand: unknown) => ValueTest;
  negated?: boolean;
  /** True if an array is tested only as a whole, and not also element by element. */
  comparesWholeValue?: boolean;
}

export const SCOPE_CONDITIONS: Readonly<Record<string, ScopeCondition>> = {
  "==": { test: (operand) => (value) => equalsAsText(value, textOfScalar(operand)) },
  "!=": { test: (operand) => (value) => equalsAsText(value, textOfScalar(operand)), negated: true },
  ">": { test: compareTest(isAbove) },
  ">=": { test: compareTest(isAtLeast) },
  "<": { test: compareTest(isBelow) },
  "<=": { test: compareTest(isAtMost) },
  contains: {
    test: (operand) => (value) => isScalar(value) && containsTextFolded(String(value), textOfScalar(operand)),
  },
  empty: { test: () => isEmpty, comparesWholeValue: true },
  notempty: { test: () => isEmpty, comparesWholeValue: true, negated: true },
  between: { test: betweenTest(compareTest(isAtLeast), compareTest(isAtMost)) },
  oneof: { test: isOneOf },
  dateis: { test: isOnDay(isEqual) },
  datebefore: { test: isOnDay(isBelow) },
  dateafter: { test: isOnDay(isAbove) },
  datebetween: { test: betweenTest(isOnDay(isAtLeast), isOnDay(isAtMost)) },
};
