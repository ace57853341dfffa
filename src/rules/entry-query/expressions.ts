/** Compiles expressions and accumulators of `aggregate` to SQL over the documents of one stage. */
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { numberSql } from "./filters.js";
import { checkText, FIELDS_MAX, jsonValue, readOperators, refuseName } from "./judge.js";
import { textSql, typeSql } from "./operators.js";
import { jsonNullIfMissing, parsePath, type Source, valueAt } from "./path.js";
import type { Statement } from "./statement.js";

export const NAME_MAX = 255;

/** Returns SQL for the rank of a value's type in sorting, as in MongoDB: missing values and null come first. */
export const typeRankSql = (value: string): string =>
  `CASE ${typeSql(value)} WHEN 'null' THEN 0 WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'object' THEN 3 WHEN 'array' THEN 4 ELSE 5 END`;

/** Returns a valid name for a new field: not a path and not an operator. */
export function fieldName(name: string, fieldPath: string): string {
  const checkedName = checkText(name, fieldPath, NAME_MAX);
  if (checkedName === "" || checkedName.startsWith("$") || checkedName.includes("."))
    refuseField(fieldPath, "a name without $ or dots", name);
  return checkedName;
}

/** Returns SQL for the expression's value as jsonb. A missing value is SQL's NULL. */
export function compileExpression(value: unknown, fieldPath: string, source: Source, statement: Statement): string {
  if (typeof value === "string" && value.startsWith("$")) {
    return valueAt(parsePath(value.slice(1), fieldPath, source), source, statement);
  }
  if (!isObject(value)) return statement.bind(jsonValue(value, fieldPath), "jsonb");
  const [operator = "", ...more] = Object.keys(value);
  if (more.length > 0) refuseField(fieldPath, 'a value, "$column" or an object with one operator', value);
  if (operator === "$literal") return statement.bind(jsonValue(value[operator], `${fieldPath}.$literal`), "jsonb");
  if (operator === "$convertToNumber") {
    // The SQL contains the operand three times, so each nested $convertToNumber would make it three times as long.
    if (isObject(value[operator]))
      refuseField(`${fieldPath}.$convertToNumber`, '"$column" or a value', value[operator]);
    return `COALESCE(to_jsonb(${numberSql(compileExpression(value[operator], `${fieldPath}.$convertToNumber`, source, statement))}), 'null')`;
  }
  return refuseName(fieldPath, ["$literal", "$convertToNumber"], operator);
}

/** SQL for each accumulator of $group. `v` is the SQL of a row's value; `first` is true for the first row of the group. */
export const ACCUMULATOR_SQL: Readonly<Record<string, (v: string, first: string) => string>> = {
  $sum: (v) => `to_jsonb(COALESCE(sum(${numericSql(v)}), 0))`,
  $avg: (v) => `COALESCE(to_jsonb(avg(${numericSql(v)})::float8), 'null')`,
  $min: (v) => extremeSql("min", v),
  $max: (v) => extremeSql("max", v),
  $first: (v, first) => `COALESCE((array_agg(${v}) FILTER (WHERE ${first}))[1], 'null')`,
  $push: (v) => `jsonb_agg(${jsonNullIfMissing(v)} ORDER BY n, m)`,
};

const numericSql = (v: string): string => `CASE WHEN ${typeSql(v)} = 'number' THEN ${textSql(v)}::numeric END`;

/** Returns SQL for the smallest or largest value. Numbers are below texts, and texts below booleans. Lists and objects are ignored. */
function extremeSql(aggregate: "min" | "max", v: string): string {
  const number = `to_jsonb(${aggregate}(${numericSql(v)}))`;
  const textExtreme = `to_jsonb(${aggregate}(CASE WHEN ${typeSql(v)} = 'string' THEN ${textSql(v)} COLLATE "C" END))`;
  const booleanExtreme = `to_jsonb(${aggregate === "min" ? "bool_and" : "bool_or"}(CASE WHEN ${typeSql(v)} = 'boolean' THEN ${textSql(v)}::boolean END))`;
  const parts = aggregate === "min" ? [number, textExtreme, booleanExtreme] : [booleanExtreme, textExtreme, number];
  return `COALESCE(${parts.join(", ")}, 'null')`;
}

export interface GatheredValue {
  name: string;
  operator: string;
  value: string;
}

/** Compiles the accumulators of a $group. @throws REQUEST_INVALID */
export function gatherValues(
  options: Record<string, unknown>,
  fieldPath: string,
  source: Source,
  statement: Statement,
): GatheredValue[] {
  const names = Object.keys(options).filter((name) => name !== "_id");
  if (names.length > FIELDS_MAX) refuseField(fieldPath, `an object with at most ${FIELDS_MAX} fields`, options);
  return names.map((name) => {
    const innerPath = `${fieldPath}.${name}`;
    const accumulator = readOperators(options[name], innerPath, [...Object.keys(ACCUMULATOR_SQL), "$count"]);
    const [operator, ...more] = Object.keys(accumulator);
    if (operator === undefined || more.length > 0)
      refuseField(innerPath, 'an object with one accumulator, such as {"$sum": "$Price"}', accumulator);
    fieldName(name, innerPath);
    if (operator === "$count") return { name, operator: "$sum", value: "'1'::jsonb" };
    return {
      name,
      operator,
      value: compileExpression(accumulator[operator], `${innerPath}.${operator}`, source, statement),
    };
  });
}
