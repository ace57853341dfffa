/** Expressions and accumulators of `aggregate`, as SQL over the documents of one stage. */
import { isObject } from "../described.js";
import { refuse } from "../fields.js";
import { numberOf } from "./filters.js";
import { FIELDS_MAX, jsonValue, operators, refuseName, text } from "./judge.js";
import { textOf, typeOf } from "./operators.js";
import { orNull, parsePath, type Source, valueAt } from "./path.js";
import type { Statement } from "./statement.js";

export const NAME_MAX = 255;

/** Rank of a value's type for sorting, as in MongoDB: missing values and null first. */
export const rankOf = (value: string): string =>
  `CASE ${typeOf(value)} WHEN 'null' THEN 0 WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'object' THEN 3 WHEN 'array' THEN 4 ELSE 5 END`;

/** Validates the name of a new field: no path, no operator. */
export function fieldName(name: string, place: string): string {
  const checked = text(name, place, NAME_MAX);
  if (checked === "" || checked.startsWith("$") || checked.includes("."))
    refuse(place, "a name without $ or dots", name);
  return checked;
}

/** SQL of a jsonb; SQL's null for a missing value. */
export function expression(value: unknown, place: string, source: Source, statement: Statement): string {
  if (typeof value === "string" && value.startsWith("$")) {
    return valueAt(parsePath(value.slice(1), place, source), source, statement);
  }
  if (!isObject(value)) return statement.bind(jsonValue(value, place), "jsonb");
  const [operator = "", ...more] = Object.keys(value);
  if (more.length > 0) refuse(place, 'a value, "$column" or an object of one operator', value);
  if (operator === "$literal") return statement.bind(jsonValue(value[operator], `${place}.$literal`), "jsonb");
  if (operator === "$convertToNumber") {
    // Its SQL contains the operand three times, so nesting it would grow without end.
    if (isObject(value[operator])) refuse(`${place}.$convertToNumber`, '"$column" or a value', value[operator]);
    return `COALESCE(to_jsonb(${numberOf(expression(value[operator], `${place}.$convertToNumber`, source, statement))}), 'null')`;
  }
  return refuseName(place, ["$literal", "$convertToNumber"], operator);
}

/** SQL aggregates of a group over rows whose value is `v`. */
export const ACCUMULATORS: Readonly<Record<string, (v: string, first: string) => string>> = {
  $sum: (v) => `to_jsonb(COALESCE(sum(${numeric(v)}), 0))`,
  $avg: (v) => `COALESCE(to_jsonb(avg(${numeric(v)})::float8), 'null')`,
  $min: (v) => extreme("min", v),
  $max: (v) => extreme("max", v),
  $first: (v, first) => `COALESCE((array_agg(${v}) FILTER (WHERE ${first}))[1], 'null')`,
  $push: (v) => `jsonb_agg(${orNull(v)} ORDER BY n, m)`,
};

const numeric = (v: string): string => `CASE WHEN ${typeOf(v)} = 'number' THEN ${textOf(v)}::numeric END`;

/** Order of types: numbers, texts, booleans. Lists and objects are not compared. */
function extreme(aggregate: "min" | "max", v: string): string {
  const number = `to_jsonb(${aggregate}(${numeric(v)}))`;
  const words = `to_jsonb(${aggregate}(CASE WHEN ${typeOf(v)} = 'string' THEN ${textOf(v)} COLLATE "C" END))`;
  const truth = `to_jsonb(${aggregate === "min" ? "bool_and" : "bool_or"}(CASE WHEN ${typeOf(v)} = 'boolean' THEN ${textOf(v)}::boolean END))`;
  const parts = aggregate === "min" ? [number, words, truth] : [truth, words, number];
  return `COALESCE(${parts.join(", ")}, 'null')`;
}

export interface Gathered {
  name: string;
  operator: string;
  value: string;
}

/** Accumulators of a $group besides its _id. @throws REQUEST_INVALID */
export function gathered(
  spec: Record<string, unknown>,
  place: string,
  source: Source,
  statement: Statement,
): Gathered[] {
  const names = Object.keys(spec).filter((name) => name !== "_id");
  if (names.length > FIELDS_MAX) refuse(place, `of at most ${FIELDS_MAX} fields`, spec);
  return names.map((name) => {
    const inside = `${place}.${name}`;
    const accumulator = operators(spec[name], inside, [...Object.keys(ACCUMULATORS), "$count"]);
    const [operator, ...more] = Object.keys(accumulator);
    if (operator === undefined || more.length > 0) refuse(inside, "an object of one accumulator", accumulator);
    fieldName(name, inside);
    if (operator === "$count") return { name, operator: "$sum", value: "'1'::jsonb" };
    return { name, operator, value: expression(accumulator[operator], `${inside}.${operator}`, source, statement) };
  });
}
