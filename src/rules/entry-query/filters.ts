/**
 * Compiles `$filters` to SQL: conditions `{column, condition, value}` that people choose in a user interface. Equality ignores case, and
 * compares a number as its decimal text, so that the text "5" equals the number 5.
 */
import { containsTextFoldedSql, foldCaseSql, formatDecimal, listEquivalentTexts } from "../comparable-text.js";
import { isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import { requireFields, requireList, requireQueryText } from "./checks.js";
import { isJsonScalarSql, jsonTextSql, jsonTypeSql } from "./operators.js";
import { anyValuePassesSql, parseDocumentPath, type QueriedDocument, type ValueTestSql } from "./path.js";
import type { SqlStatement } from "./statement.js";

const TEXT_MAX_CHARACTERS = 10_000;
const LIST_MAX_ITEMS = 1_000;
const NUMBER_PATTERN = /^\s*[-+]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][-+]?\d{1,3})?\s*$/;
/**
 * SQL regular expression for a number, like NUMBER_PATTERN. PostgreSQL allows repetition counts up to 255, so longer numbers do not match.
 */
const NUMBER_PATTERN_SQL = "'^\\s*[-+]?(\\d{1,255}(\\.\\d{0,255})?|\\.\\d{1,255})([eE][-+]?\\d{1,3})?\\s*$'";
const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}/;
const DAY_PATTERN_SQL = "'^\\d{4}-\\d{2}-\\d{2}'";

/** Returns SQL that converts a number, or a text that contains a number, to numeric. Any other value becomes NULL. */
export const jsonNumberSql = (value: string): string =>
  `CASE WHEN ${jsonTypeSql(value)} IN ('number', 'string') AND ${jsonTextSql(value)} ~ ${NUMBER_PATTERN_SQL} THEN ${jsonTextSql(value)}::numeric END`;

const daySql = (value: string): string =>
  `CASE WHEN ${jsonTypeSql(value)} = 'string' AND ${jsonTextSql(value)} ~ ${DAY_PATTERN_SQL} THEN left(${jsonTextSql(value)}, 10) COLLATE "C" END`;

const falseIfNullSql = (sql: string): string => `COALESCE(${sql}, false)`;

/** Returns a text, a number or a boolean as text; "" for null and for an absent value. @throws REQUEST_INVALID */
function requireScalarText(value: unknown, fieldPath: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return formatDecimal(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "string") refuseField(fieldPath, "a text, a number or a boolean", value);
  return requireQueryText(value, fieldPath, TEXT_MAX_CHARACTERS);
}

function parseDay(value: unknown, fieldPath: string): string {
  if (typeof value === "string" && DAY_PATTERN.test(value)) return value.slice(0, 10);
  return refuseField(fieldPath, "a day as YYYY-MM-DD", value);
}

interface RangeBound {
  value: unknown;
  /** Path of the bound in the request, for error messages. */
  fieldPath: string;
}

/** Parses a range: `[from, to]` or `{from, to}`. */
function parseRange(value: unknown, fieldPath: string): { from: RangeBound; to: RangeBound } {
  if (isObject(value)) {
    const { from, to } = requireFields(value, fieldPath, ["from", "to"]);
    return { from: { value: from, fieldPath: `${fieldPath}.from` }, to: { value: to, fieldPath: `${fieldPath}.to` } };
  }
  const [from, to] = requireList(value, fieldPath, 2, 2);
  return { from: { value: from, fieldPath: `${fieldPath}[0]` }, to: { value: to, fieldPath: `${fieldPath}[1]` } };
}

type CompileCondition = (value: unknown, fieldPath: string, statement: SqlStatement) => ValueTestSql;

/** Returns a test that is true if the value equals one of the texts, without regard to case. */
const createEqualsAnyTest = (texts: readonly string[], statement: SqlStatement): ValueTestSql => {
  const expected = texts.flatMap(listEquivalentTexts).map((text) => foldCaseSql(statement.bind(text, "text")));
  return (sql) =>
    `(${jsonTypeSql(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${jsonTextSql(sql)}, '')`)} IN (${expected.join(", ")}))`;
};

const equalCondition: CompileCondition = (value, fieldPath, statement) =>
  createEqualsAnyTest([requireScalarText(value, fieldPath)], statement);

/** Returns a text, a number or a boolean as text. @throws REQUEST_INVALID also for null and an absent value */
function requireComparedText(value: unknown, fieldPath: string): string {
  if (value === null || value === undefined) refuseField(fieldPath, "a number or a text", value);
  return requireScalarText(value, fieldPath);
}

/**
 * Returns a condition that compares numbers if the operand is a number, or a text with a number. Otherwise, the condition compares texts.
 */
const createComparison =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const operand = requireComparedText(value, fieldPath);
    if (NUMBER_PATTERN.test(operand)) {
      const numberPlaceholder = statement.bind(operand.trim(), "numeric");
      return (sql) => falseIfNullSql(`${jsonNumberSql(sql)} ${sign} ${numberPlaceholder}`);
    }
    const textPlaceholder = statement.bind(operand, "text");
    return (sql) => `(${jsonTypeSql(sql)} = 'string' AND ${jsonTextSql(sql)} ${sign} ${textPlaceholder})`;
  };

const createDayComparison =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const dayPlaceholder = statement.bind(parseDay(value, fieldPath), "text");
    return (sql) => falseIfNullSql(`${daySql(sql)} ${sign} ${dayPlaceholder}`);
  };

const createRangeCondition =
  (first: CompileCondition, second: CompileCondition): CompileCondition =>
  (value, fieldPath, statement) => {
    const { from, to } = parseRange(value, fieldPath);
    const tests = [first(from.value, from.fieldPath, statement), second(to.value, to.fieldPath, statement)];
    return (sql) => `(${tests.map((test) => test(sql)).join(" AND ")})`;
  };

const oneOfCondition: CompileCondition = (value, fieldPath, statement) => {
  const values =
    typeof value === "string"
      ? value.split(",").map((part) => part.trim())
      : requireList(value, fieldPath, LIST_MAX_ITEMS);
  const expected = statement.bind(
    values.flatMap((element, index) => listEquivalentTexts(requireScalarText(element, `${fieldPath}[${index}]`))),
    "text[]",
  );
  return (sql) =>
    `(${jsonTypeSql(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${jsonTextSql(sql)}, '')`)} IN (SELECT ${foldCaseSql("operand")} FROM unnest(${expected}) operand))`;
};

const containsCondition: CompileCondition = (value, fieldPath, statement) => {
  const boundText = statement.bind(requireScalarText(value, fieldPath), "text");
  return (sql) => `(${isJsonScalarSql(sql)} AND ${containsTextFoldedSql(jsonTextSql(sql), boundText)})`;
};

const EMPTY_VALUES_SQL = `'[null, "", [], {}]'::jsonb`;
const emptyCondition: CompileCondition = () => (sql) =>
  `(${sql} IS NULL OR ${sql} IN (SELECT jsonb_array_elements(${EMPTY_VALUES_SQL})))`;

/** Conditions by name. path.ts (`ReachableValues`) explains `testsElements` and `matchesMissing`; `negated` inverts the condition. */
const CONDITION_TABLE: Record<
  string,
  { condition: CompileCondition; negated?: boolean; testsElements?: boolean; matchesMissing?: boolean }
> = {
  "==": { condition: equalCondition, matchesMissing: true },
  "!=": { condition: equalCondition, matchesMissing: true, negated: true },
  ">": { condition: createComparison(">") },
  ">=": { condition: createComparison(">=") },
  "<": { condition: createComparison("<") },
  "<=": { condition: createComparison("<=") },
  contains: { condition: containsCondition },
  empty: { condition: emptyCondition, testsElements: false, matchesMissing: true },
  notempty: { condition: emptyCondition, testsElements: false, matchesMissing: true, negated: true },
  between: { condition: createRangeCondition(createComparison(">="), createComparison("<=")) },
  oneof: { condition: oneOfCondition, matchesMissing: true },
  dateis: { condition: createDayComparison("=") },
  datebefore: { condition: createDayComparison("<") },
  dateafter: { condition: createDayComparison(">") },
  datebetween: { condition: createRangeCondition(createDayComparison(">="), createDayComparison("<=")) },
};

/** Compiles one filter to an SQL condition that is never NULL. @throws ActionError REQUEST_INVALID */
export function compileColumnFilter(
  filter: unknown,
  fieldPath: string,
  source: QueriedDocument,
  statement: SqlStatement,
): string {
  const { column, condition: name, value } = requireFields(filter, fieldPath, ["column", "condition", "value"]);
  const path = parseDocumentPath(column, `${fieldPath}.column`, source);
  const knownCondition =
    typeof name === "string" && Object.hasOwn(CONDITION_TABLE, name) ? CONDITION_TABLE[name] : undefined;
  if (!knownCondition)
    return refuseField(`${fieldPath}.condition`, `one of ${Object.keys(CONDITION_TABLE).join(", ")}`, name);
  const test = knownCondition.condition(value, `${fieldPath}.value`, statement);
  const { testsElements = true, matchesMissing = false } = knownCondition;
  const sql = anyValuePassesSql(path, source, statement, [test], { testsElements, matchesMissing });
  return knownCondition.negated ? `NOT ${sql}` : sql;
}
