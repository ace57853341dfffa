/** Compiles the operators of `where` that compare one value, such as `$eq` and `$in`, to SQL. */
import { containsTextFoldedSql, UNICODE_COLLATION } from "../comparable-text.js";
import { refuseField } from "../fields.js";
import {
  QUERY_LIST_MAX_ITEMS,
  requireList,
  requireQueryText,
  requireWholeNumber,
  serializeJsonValue,
} from "./checks.js";
import { jsonNullIfMissingSql, type ValueTestSql } from "./path.js";
import { translateRegExpToPostgres } from "./regular-expression.js";
import type { SqlStatement } from "./statement.js";

/** SQL test of an operator such as `$eq`, and the values to which it applies (path.ts, `anyValuePassesSql`). */
export interface OperatorTest {
  test: ValueTestSql;
  /** True if the test also applies to each element of an array at the end of the path. */
  testsElements: boolean;
  matchesMissing: boolean;
}

type Operator = (
  operand: unknown,
  fieldPath: string,
  statement: SqlStatement,
  siblings: Record<string, unknown>,
) => OperatorTest;

export const jsonTypeSql = (value: string): string => `jsonb_typeof(${jsonNullIfMissingSql(value)})`;
export const jsonTextSql = (value: string): string => `(${value} #>> '{}')`;

const createElementTest = (test: ValueTestSql, matchesMissing = false): OperatorTest => ({
  test,
  testsElements: true,
  matchesMissing,
});
const createWholeValueTest = (test: ValueTestSql): OperatorTest => ({
  test,
  testsElements: false,
  matchesMissing: false,
});

const equalOperator: Operator = (operand, fieldPath, statement) => {
  const expected = statement.bind(serializeJsonValue(operand, fieldPath), "jsonb");
  return createElementTest((value) => `${jsonNullIfMissingSql(value)} = ${expected}`, operand === null);
};

const inOperator: Operator = (operand, fieldPath, statement) => {
  const operands = requireList(operand, fieldPath, QUERY_LIST_MAX_ITEMS);
  const expected = statement.bind(
    operands.map((operand, index) => serializeJsonValue(operand, `${fieldPath}[${index}]`)),
    "jsonb[]",
  );
  return createElementTest((value) => `${jsonNullIfMissingSql(value)} = ANY(${expected})`, operands.includes(null));
};

const createComparison =
  (sign: string): Operator =>
  (operand, fieldPath, statement) => {
    const operandType = typeof operand;
    if (operandType !== "number" && operandType !== "string" && operandType !== "boolean")
      refuseField(fieldPath, "a number, a text or a boolean", operand);
    const expected = statement.bind(serializeJsonValue(operand, fieldPath), "jsonb");
    return createElementTest(
      (value) => `(${jsonNullIfMissingSql(value)} ${sign} ${expected} AND ${jsonTypeSql(value)} = '${operandType}')`,
    );
  };

const sizeOperator: Operator = (operand, fieldPath, statement) => {
  const length = statement.bind(requireWholeNumber(operand, fieldPath, 0, 1_000_000), "integer");
  return createWholeValueTest(
    (value) => `CASE WHEN ${jsonTypeSql(value)} = 'array' THEN jsonb_array_length(${value}) = ${length} ELSE false END`,
  );
};

const existsOperator: Operator = (operand, fieldPath) => {
  if (typeof operand !== "boolean") refuseField(fieldPath, "true or false", operand);
  return createWholeValueTest((value) => `${value} IS NOT NULL`);
};

const JSON_TYPE_BY_NAME: Record<string, string> = {
  string: "string",
  number: "number",
  double: "number",
  int: "number",
  long: "number",
  decimal: "number",
  bool: "boolean",
  boolean: "boolean",
  object: "object",
  array: "array",
  null: "null",
};

const typeOperator: Operator = (operand, fieldPath) => {
  const name =
    typeof operand === "string" && Object.hasOwn(JSON_TYPE_BY_NAME, operand) ? JSON_TYPE_BY_NAME[operand] : undefined;
  if (name === undefined) refuseField(fieldPath, `one of ${Object.keys(JSON_TYPE_BY_NAME).join(", ")}`, operand);
  return createElementTest((value) => `COALESCE(jsonb_typeof(${value}) = '${name}', false)`);
};

const moduloOperator: Operator = (operand, fieldPath, statement) => {
  const [divisor, remainder] = requireList(operand, fieldPath, 2, 2).map((element, index) =>
    requireWholeNumber(element, `${fieldPath}[${index}]`, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  );
  if (divisor === 0) refuseField(`${fieldPath}[0]`, "a divisor other than 0", divisor);
  const [divisorSql, remainderSql] = [statement.bind(divisor, "numeric"), statement.bind(remainder, "numeric")];
  return createElementTest(
    (value) =>
      `CASE WHEN ${jsonTypeSql(value)} = 'number' THEN mod(${jsonTextSql(value)}::numeric, ${divisorSql}) = ${remainderSql} ELSE false END`,
  );
};

const regexOperator: Operator = (operand, fieldPath, statement, siblings) => {
  const { pattern, ignoreCase } = translateRegExpToPostgres(
    operand,
    siblings["$options"],
    fieldPath.replace(/\.\$regex$/, ""),
  );
  const boundPattern = statement.bind(pattern, "text");
  return createElementTest(
    (value) =>
      `(${jsonTypeSql(value)} = 'string' AND ${jsonTextSql(value)} ${ignoreCase ? `${UNICODE_COLLATION} ~*` : 'COLLATE "C" ~'} ${boundPattern})`,
  );
};

export const isJsonScalarSql = (value: string): string => `${jsonTypeSql(value)} IN ('string', 'number', 'boolean')`;

/** Operand of `$iLike` that searches only texts, and no numbers and booleans. Only access rules use it: a JSON request cannot contain it. */
export class TextsOnlyOperand {
  constructor(readonly part: string) {}
}

const containsIgnoringCaseOperator: Operator = (operand, fieldPath, statement) => {
  const [part, isSearchedSql] =
    operand instanceof TextsOnlyOperand
      ? [operand.part, (value: string) => `${jsonTypeSql(value)} = 'string'`]
      : [operand, isJsonScalarSql];
  const boundText = statement.bind(requireQueryText(part, fieldPath, 10_000), "text");
  return createElementTest(
    (value) => `(${isSearchedSql(value)} AND ${containsTextFoldedSql(jsonTextSql(value), boundText)})`,
  );
};

/** Operators by name. An operator matches if at least one value passes its test; with `negated`, if no value does. */
export const QUERY_OPERATORS: Readonly<Record<string, { operator: Operator; negated?: boolean }>> = {
  $eq: { operator: equalOperator },
  $ne: { operator: equalOperator, negated: true },
  $gt: { operator: createComparison(">") },
  $gte: { operator: createComparison(">=") },
  $lt: { operator: createComparison("<") },
  $lte: { operator: createComparison("<=") },
  $in: { operator: inOperator },
  $nin: { operator: inOperator, negated: true },
  $size: { operator: sizeOperator },
  $exists: { operator: existsOperator },
  $type: { operator: typeOperator },
  $mod: { operator: moduloOperator },
  $regex: { operator: regexOperator },
  $iLike: { operator: containsIgnoringCaseOperator },
};
