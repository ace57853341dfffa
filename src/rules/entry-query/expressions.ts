/** Compiles expressions and accumulators of `aggregate` to SQL. They apply to the documents of one stage. */
import { isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import {
  AGGREGATE_FIELDS_MAX,
  rejectUnknownName,
  requireKnownOperators,
  requireQueryText,
  serializeJsonValue,
} from "./checks.js";
import { jsonNumberSql } from "./filters.js";
import { jsonTextSql, jsonTypeSql } from "./operators.js";
import { jsonNullIfMissingSql, parseDocumentPath, type QueriedDocument, valueAtPathSql } from "./path.js";
import type { SqlStatement } from "./statement.js";

export const FIELD_NAME_MAX_CHARACTERS = 255;

/** Returns SQL for the rank of a value's type. Values of different types sort by it as in MongoDB; null and missing values come first. */
export const typeSortRankSql = (value: string): string =>
  `CASE ${jsonTypeSql(value)} WHEN 'null' THEN 0 WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'object' THEN 3 WHEN 'array' THEN 4 ELSE 5 END`;

/** Returns `name` if a field of a document can have this name: paths and names of operators cannot. @throws REQUEST_INVALID */
export function requireFieldName(name: string, fieldPath: string): string {
  const checkedName = requireQueryText(name, fieldPath, FIELD_NAME_MAX_CHARACTERS);
  if (checkedName === "" || checkedName.startsWith("$") || checkedName.includes("."))
    refuseField(fieldPath, "a name that is not empty, does not start with $ and contains no dot", name);
  return checkedName;
}

/** Compiles an expression to SQL of the type jsonb, which gives NULL if the value is missing. */
export function compileAggregateExpression(
  value: unknown,
  fieldPath: string,
  source: QueriedDocument,
  statement: SqlStatement,
): string {
  if (typeof value === "string" && value.startsWith("$")) {
    return valueAtPathSql(parseDocumentPath(value.slice(1), fieldPath, source), source, statement);
  }
  if (!isObject(value)) return statement.bind(serializeJsonValue(value, fieldPath), "jsonb");
  const [operator = "", ...more] = Object.keys(value);
  if (more.length > 0) refuseField(fieldPath, 'a value, "$column" or an object with one operator', value);
  if (operator === "$literal")
    return statement.bind(serializeJsonValue(value[operator], `${fieldPath}.$literal`), "jsonb");
  if (operator === "$convertToNumber") {
    // Rejects nested $convertToNumber: its SQL contains the operand three times, so each level would triple the length of the SQL.
    if (isObject(value[operator]))
      refuseField(`${fieldPath}.$convertToNumber`, '"$column" or a value', value[operator]);
    return `COALESCE(to_jsonb(${jsonNumberSql(compileAggregateExpression(value[operator], `${fieldPath}.$convertToNumber`, source, statement))}), 'null')`;
  }
  return rejectUnknownName(fieldPath, ["$literal", "$convertToNumber"], operator);
}

/** Builds the SQL of each accumulator of $group. `isFirstRowSql` is true for the first row of a group. */
export const ACCUMULATOR_SQL: Readonly<Record<string, (valueSql: string, isFirstRowSql: string) => string>> = {
  $sum: (v) => `to_jsonb(COALESCE(sum(${numericSql(v)}), 0))`,
  $avg: (v) => `COALESCE(to_jsonb(avg(${numericSql(v)})::float8), 'null')`,
  $min: (v) => minOrMaxSql("min", v),
  $max: (v) => minOrMaxSql("max", v),
  $first: (v, isFirstRowSql) => `COALESCE((array_agg(${v}) FILTER (WHERE ${isFirstRowSql}))[1], 'null')`,
  $push: (v) => `jsonb_agg(${jsonNullIfMissingSql(v)} ORDER BY n, m)`,
};

const numericSql = (v: string): string => `CASE WHEN ${jsonTypeSql(v)} = 'number' THEN ${jsonTextSql(v)}::numeric END`;

/** Returns SQL for the smallest or largest value: numbers sort before texts, texts before booleans. Ignores lists and objects. */
function minOrMaxSql(aggregate: "min" | "max", v: string): string {
  const numberExtreme = `to_jsonb(${aggregate}(${numericSql(v)}))`;
  const textExtreme = `to_jsonb(${aggregate}(CASE WHEN ${jsonTypeSql(v)} = 'string' THEN ${jsonTextSql(v)} COLLATE "C" END))`;
  const booleanExtreme = `to_jsonb(${aggregate === "min" ? "bool_and" : "bool_or"}(CASE WHEN ${jsonTypeSql(v)} = 'boolean' THEN ${jsonTextSql(v)}::boolean END))`;
  const parts =
    aggregate === "min" ? [numberExtreme, textExtreme, booleanExtreme] : [booleanExtreme, textExtreme, numberExtreme];
  return `COALESCE(${parts.join(", ")}, 'null')`;
}

export interface Accumulator {
  name: string;
  operator: string;
  value: string;
}

export function compileAccumulators(
  options: Record<string, unknown>,
  fieldPath: string,
  source: QueriedDocument,
  statement: SqlStatement,
): Accumulator[] {
  const names = Object.keys(options).filter((name) => name !== "_id");
  if (names.length > AGGREGATE_FIELDS_MAX)
    refuseField(fieldPath, `an object with at most ${AGGREGATE_FIELDS_MAX} fields`, options);
  return names.map((name) => {
    const innerPath = `${fieldPath}.${name}`;
    const accumulator = requireKnownOperators(options[name], innerPath, [...Object.keys(ACCUMULATOR_SQL), "$count"]);
    const [operator, ...more] = Object.keys(accumulator);
    if (operator === undefined || more.length > 0)
      refuseField(innerPath, 'an object with one accumulator, such as {"$sum": "$Price"}', accumulator);
    requireFieldName(name, innerPath);
    if (operator === "$count") return { name, operator: "$sum", value: "'1'::jsonb" };
    return {
      name,
      operator,
      value: compileAggregateExpression(accumulator[operator], `${innerPath}.${operator}`, source, statement),
    };
  });
}
