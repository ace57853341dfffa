/**
 * Compiles `$filters`: conditions `{column, condition, value}` that people choose in a user interface. They ignore case.
 * A text that contains a number equals that number.
 */
import { decimalText, equalTexts, foldCaseSql, holdsTextSql } from "../comparable-text.js";
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { checkFields, checkList, checkText, refuseName } from "./judge.js";
import { isScalarSql, textSql, typeSql } from "./operators.js";
import { anyValueAt, parsePath, type Source, type Test } from "./path.js";
import type { Statement } from "./statement.js";

const TEXT_MAX = 10_000;
const LIST_MAX = 1_000;
const NUMBER = /^\s*[-+]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][-+]?\d{1,3})?\s*$/;
/** The same pattern for PostgreSQL, which allows at most 255 repetitions. */
const NUMBER_SQL = "'^\\s*[-+]?(\\d{1,255}(\\.\\d{0,255})?|\\.\\d{1,255})([eE][-+]?\\d{1,3})?\\s*$'";
const DAY = /^\d{4}-\d{2}-\d{2}/;
const DAY_SQL = "'^\\d{4}-\\d{2}-\\d{2}'";

/** Returns SQL that converts a number, or a text that contains a number, to the type numeric. Other values become NULL. */
export const numberSql = (value: string): string =>
  `CASE WHEN ${typeSql(value)} IN ('number', 'string') AND ${textSql(value)} ~ ${NUMBER_SQL} THEN ${textSql(value)}::numeric END`;

const daySql = (value: string): string =>
  `CASE WHEN ${typeSql(value)} = 'string' AND ${textSql(value)} ~ ${DAY_SQL} THEN left(${textSql(value)}, 10) COLLATE "C" END`;

const falseIfNull = (sql: string): string => `COALESCE(${sql}, false)`;

function scalarText(value: unknown, fieldPath: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return decimalText(value);
  if (typeof value === "boolean") return String(value);
  return checkText(value, fieldPath, TEXT_MAX);
}

function parseDay(value: unknown, fieldPath: string): string {
  if (typeof value === "string" && DAY.test(value)) return value.slice(0, 10);
  return refuseField(fieldPath, "a day as YYYY-MM-DD", value);
}

/** Returns the two bounds of `between`, which callers send as `[from, to]` or `{from, to}`. */
function parseRange(value: unknown, fieldPath: string): [unknown, unknown] {
  if (isObject(value)) {
    const { from, to } = checkFields(value, fieldPath, ["from", "to"]);
    return [from, to];
  }
  const [from, to] = checkList(value, fieldPath, 2, 2);
  return [from, to];
}

type CompileCondition = (value: unknown, fieldPath: string, statement: Statement) => Test;

/** Returns a test that is true if the value equals one of the texts, ignoring case. */
const equalsAnyText = (texts: readonly string[], statement: Statement): Test => {
  const expected = texts.flatMap(equalTexts).map((text) => foldCaseSql(statement.bind(text, "text")));
  return (sql) =>
    `(${typeSql(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${textSql(sql)}, '')`)} IN (${expected.join(", ")}))`;
};

const equalCondition: CompileCondition = (value, fieldPath, statement) =>
  equalsAnyText([scalarText(value, fieldPath)], statement);

/** Returns a condition that compares numbers if the operand is a number, and texts otherwise. */
const comparedBy =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const operand = scalarText(value, fieldPath);
    if (NUMBER.test(operand)) {
      const number = statement.bind(operand.trim(), "numeric");
      return (sql) => falseIfNull(`${numberSql(sql)} ${sign} ${number}`);
    }
    const boundValue = statement.bind(operand, "text");
    return (sql) => `(${typeSql(sql)} = 'string' AND ${textSql(sql)} ${sign} ${boundValue})`;
  };

const dayCompared =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const boundValue = statement.bind(parseDay(value, fieldPath), "text");
    return (sql) => falseIfNull(`${daySql(sql)} ${sign} ${boundValue}`);
  };

const joinedBounds =
  (first: CompileCondition, second: CompileCondition): CompileCondition =>
  (value, fieldPath, statement) => {
    const [from, to] = parseRange(value, fieldPath);
    const tests = [first(from, `${fieldPath}[0]`, statement), second(to, `${fieldPath}[1]`, statement)];
    return (sql) => `(${tests.map((test) => test(sql)).join(" AND ")})`;
  };

const oneOf: CompileCondition = (value, fieldPath, statement) => {
  const values =
    typeof value === "string" ? value.split(",").map((part) => part.trim()) : checkList(value, fieldPath, LIST_MAX);
  const expected = statement.bind(
    values.flatMap((element, index) => equalTexts(scalarText(element, `${fieldPath}[${index}]`))),
    "text[]",
  );
  return (sql) =>
    `(${typeSql(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${textSql(sql)}, '')`)} IN (SELECT ${foldCaseSql("one")} FROM unnest(${expected}) one))`;
};

const containsCondition: CompileCondition = (value, fieldPath, statement) => {
  const boundPart = statement.bind(scalarText(value, fieldPath), "text");
  return (sql) => `(${isScalarSql(sql)} AND ${holdsTextSql(textSql(sql), boundPart)})`;
};

const EMPTY_VALUES = `'[null, "", [], {}]'::jsonb`;
const emptyCondition: CompileCondition = () => (sql) =>
  `(${sql} IS NULL OR ${sql} IN (SELECT jsonb_array_elements(${EMPTY_VALUES})))`;

/** Conditions by name. For `elements` and `matchesMissing` see `ReachableValues` in path.ts. */
const CONDITION_TABLE: Record<
  string,
  { condition: CompileCondition; negated?: boolean; elements?: boolean; matchesMissing?: boolean }
> = {
  "==": { condition: equalCondition, matchesMissing: true },
  "!=": { condition: equalCondition, matchesMissing: true, negated: true },
  ">": { condition: comparedBy(">") },
  ">=": { condition: comparedBy(">=") },
  "<": { condition: comparedBy("<") },
  "<=": { condition: comparedBy("<=") },
  contains: { condition: containsCondition },
  empty: { condition: emptyCondition, elements: false, matchesMissing: true },
  notempty: { condition: emptyCondition, elements: false, matchesMissing: true, negated: true },
  between: { condition: joinedBounds(comparedBy(">="), comparedBy("<=")) },
  oneof: { condition: oneOf, matchesMissing: true },
  dateis: { condition: dayCompared("=") },
  datebefore: { condition: dayCompared("<") },
  dateafter: { condition: dayCompared(">") },
  datebetween: { condition: joinedBounds(dayCompared(">="), dayCompared("<=")) },
};

/** Compiles one filter to an SQL condition that is never NULL. @throws ActionError REQUEST_INVALID */
export function compileFilter(filter: unknown, fieldPath: string, source: Source, statement: Statement): string {
  const { column, condition: name, value } = checkFields(filter, fieldPath, ["column", "condition", "value"]);
  const path = parsePath(column, `${fieldPath}.column`, source);
  const knownCondition =
    typeof name === "string" && Object.hasOwn(CONDITION_TABLE, name) ? CONDITION_TABLE[name] : undefined;
  if (!knownCondition) refuseName(`${fieldPath}.condition`, Object.keys(CONDITION_TABLE), String(name));
  const test = knownCondition.condition(value, `${fieldPath}.value`, statement);
  const { elements = true, matchesMissing = false } = knownCondition;
  const sql = anyValueAt(path, source, statement, [test], { elements, matchesMissing });
  return knownCondition.negated ? `NOT ${sql}` : sql;
}
