/**
 * Compiles `$filters`: conditions that people choose in a list, `{column, condition, value}`. They ignore case, and
 * compare numbers with numeric text.
 */
import { decimalText, equalTexts, foldCaseSql, holdsTextSql } from "../comparable-text.js";
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { checkFields, checkList, checkText, refuseName } from "./judge.js";
import { isScalar, textOf, typeOf } from "./operators.js";
import { anyValueAt, parsePath, type Source, type Test } from "./path.js";
import type { Statement } from "./statement.js";

const TEXT_MAX = 10_000;
const LIST_MAX = 1_000;
const NUMBER = /^\s*[-+]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][-+]?\d{1,3})?\s*$/;
/** Pattern of a number for PostgreSQL, whose repetition counts end at 255. */
const NUMBER_SQL = "'^\\s*[-+]?(\\d{1,255}(\\.\\d{0,255})?|\\.\\d{1,255})([eE][-+]?\\d{1,3})?\\s*$'";
const DAY = /^\d{4}-\d{2}-\d{2}/;
const DAY_SQL = "'^\\d{4}-\\d{2}-\\d{2}'";

/** Returns SQL for the numeric of a number or numeric text; otherwise NULL. */
export const numberOf = (value: string): string =>
  `CASE WHEN ${typeOf(value)} IN ('number', 'string') AND ${textOf(value)} ~ ${NUMBER_SQL} THEN ${textOf(value)}::numeric END`;

const dayOf = (value: string): string =>
  `CASE WHEN ${typeOf(value)} = 'string' AND ${textOf(value)} ~ ${DAY_SQL} THEN left(${textOf(value)}, 10) COLLATE "C" END`;

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

/** Returns the two ends of `between`, given as `[from, to]` or `{from, to}`. */
function parseRange(value: unknown, fieldPath: string): [unknown, unknown] {
  if (isObject(value)) {
    const { from, to } = checkFields(value, fieldPath, ["from", "to"]);
    return [from, to];
  }
  const [from, to] = checkList(value, fieldPath, 2, 2);
  return [from, to];
}

type CompileCondition = (value: unknown, fieldPath: string, statement: Statement) => Test;

/** Returns SQL that is true if the value is one of these texts in any case. */
const isText = (texts: readonly string[], statement: Statement): Test => {
  const expected = texts.flatMap(equalTexts).map((text) => foldCaseSql(statement.bind(text, "text")));
  return (sql) =>
    `(${typeOf(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${textOf(sql)}, '')`)} IN (${expected.join(", ")}))`;
};

const equalCondition: CompileCondition = (value, fieldPath, statement) =>
  isText([scalarText(value, fieldPath)], statement);

/** Builds a comparison: of numbers if the operand is a number, otherwise of texts. */
const comparedBy =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const operand = scalarText(value, fieldPath);
    if (NUMBER.test(operand)) {
      const number = statement.bind(operand.trim(), "numeric");
      return (sql) => falseIfNull(`${numberOf(sql)} ${sign} ${number}`);
    }
    const boundValue = statement.bind(operand, "text");
    return (sql) => `(${typeOf(sql)} = 'string' AND ${textOf(sql)} ${sign} ${boundValue})`;
  };

const dayCompared =
  (sign: string): CompileCondition =>
  (value, fieldPath, statement) => {
    const boundValue = statement.bind(parseDay(value, fieldPath), "text");
    return (sql) => falseIfNull(`${dayOf(sql)} ${sign} ${boundValue}`);
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
    `(${typeOf(sql)} NOT IN ('array', 'object') AND ${foldCaseSql(`COALESCE(${textOf(sql)}, '')`)} IN (SELECT ${foldCaseSql("one")} FROM unnest(${expected}) one))`;
};

const containsCondition: CompileCondition = (value, fieldPath, statement) => {
  const boundPart = statement.bind(scalarText(value, fieldPath), "text");
  return (sql) => `(${isScalar(sql)} AND ${holdsTextSql(textOf(sql), boundPart)})`;
};

const EMPTY_VALUES = `'[null, "", [], {}]'::jsonb`;
const emptyCondition: CompileCondition = () => (sql) =>
  `(${sql} IS NULL OR ${sql} IN (SELECT jsonb_array_elements(${EMPTY_VALUES})))`;

/** Conditions by name. `elements` is true if array elements count; `ofNothing` is true if the condition can hold for a missing value. */
const CONDITION_TABLE: Record<
  string,
  { condition: CompileCondition; negated?: boolean; elements?: boolean; ofNothing?: boolean }
> = {
  "==": { condition: equalCondition, ofNothing: true },
  "!=": { condition: equalCondition, ofNothing: true, negated: true },
  ">": { condition: comparedBy(">") },
  ">=": { condition: comparedBy(">=") },
  "<": { condition: comparedBy("<") },
  "<=": { condition: comparedBy("<=") },
  contains: { condition: containsCondition },
  empty: { condition: emptyCondition, elements: false, ofNothing: true },
  notempty: { condition: emptyCondition, elements: false, ofNothing: true, negated: true },
  between: { condition: joinedBounds(comparedBy(">="), comparedBy("<=")) },
  oneof: { condition: oneOf, ofNothing: true },
  dateis: { condition: dayCompared("=") },
  datebefore: { condition: dayCompared("<") },
  dateafter: { condition: dayCompared(">") },
  datebetween: { condition: joinedBounds(dayCompared(">="), dayCompared("<=")) },
};

/** Returns SQL of one filter, which is never NULL. @throws ActionError REQUEST_INVALID */
export function filterCondition(filter: unknown, fieldPath: string, source: Source, statement: Statement): string {
  const { column, condition: name, value } = checkFields(filter, fieldPath, ["column", "condition", "value"]);
  const path = parsePath(column, `${fieldPath}.column`, source);
  const knownCondition =
    typeof name === "string" && Object.hasOwn(CONDITION_TABLE, name) ? CONDITION_TABLE[name] : undefined;
  if (!knownCondition) refuseName(`${fieldPath}.condition`, Object.keys(CONDITION_TABLE), String(name));
  const test = knownCondition.condition(value, `${fieldPath}.value`, statement);
  const { elements = true, ofNothing = false } = knownCondition;
  const sql = anyValueAt(path, source, statement, [test], { elements, ofNothing });
  return knownCondition.negated ? `NOT ${sql}` : sql;
}
