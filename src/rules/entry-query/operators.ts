/** Compiles the operators of `where` that compare one value, such as `$eq` and `$in`, to SQL. */
import { holdsTextSql, UNICODE_COLLATION } from "../comparable-text.js";
import { refuseField } from "../fields.js";
import { checkList, checkText, jsonValue, LIST_MAX, wholeNumber } from "./judge.js";
import { jsonNullIfMissing, type Test } from "./path.js";
import { translatePattern } from "./regular-expression.js";
import type { Statement } from "./statement.js";

/** Test of an operator, and the values at a path to which it applies: see `anyValueAt` in path.ts. */
export interface ValueTest {
  test: Test;
  /** True if elements of an array count as values. */
  elements: boolean;
  matchesMissing: boolean;
}

type Operator = (
  operand: unknown,
  fieldPath: string,
  statement: Statement,
  siblings: Record<string, unknown>,
) => ValueTest;

export const typeSql = (value: string): string => `jsonb_typeof(${jsonNullIfMissing(value)})`;
/** Returns SQL for the text of a scalar; NULL for JSON's null. */
export const textSql = (value: string): string => `(${value} #>> '{}')`;

const valueTest = (test: Test, matchesMissing = false): ValueTest => ({ test, elements: true, matchesMissing });
const arrayTest = (test: Test): ValueTest => ({ test, elements: false, matchesMissing: false });

const equalOperator: Operator = (operand, fieldPath, statement) => {
  const expected = statement.bind(jsonValue(operand, fieldPath), "jsonb");
  return valueTest((value) => `${jsonNullIfMissing(value)} = ${expected}`, operand === null);
};

const oneOf: Operator = (operand, fieldPath, statement) => {
  const operands = checkList(operand, fieldPath, LIST_MAX);
  const expected = statement.bind(
    operands.map((operand, index) => jsonValue(operand, `${fieldPath}[${index}]`)),
    "jsonb[]",
  );
  return valueTest((value) => `${jsonNullIfMissing(value)} = ANY(${expected})`, operands.includes(null));
};

const comparedBy =
  (sign: string): Operator =>
  (operand, fieldPath, statement) => {
    const typeOperator = typeof operand;
    if (typeOperator !== "number" && typeOperator !== "string" && typeOperator !== "boolean")
      refuseField(fieldPath, "a number, a text or a boolean", operand);
    const expected = statement.bind(jsonValue(operand, fieldPath), "jsonb");
    return valueTest(
      (value) => `(${jsonNullIfMissing(value)} ${sign} ${expected} AND ${typeSql(value)} = '${typeOperator}')`,
    );
  };

const sizeOperator: Operator = (operand, fieldPath, statement) => {
  const length = statement.bind(wholeNumber(operand, fieldPath, 0, 1_000_000), "integer");
  return arrayTest(
    (value) => `CASE WHEN ${typeSql(value)} = 'array' THEN jsonb_array_length(${value}) = ${length} ELSE false END`,
  );
};

const existsOperator: Operator = (operand, fieldPath) => {
  if (typeof operand !== "boolean") refuseField(fieldPath, "true or false", operand);
  return arrayTest((value) => `${value} IS NOT NULL`);
};

const TYPES: Record<string, string> = {
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

const type: Operator = (operand, fieldPath) => {
  const name = typeof operand === "string" && Object.hasOwn(TYPES, operand) ? TYPES[operand] : undefined;
  if (name === undefined) refuseField(fieldPath, `one of ${Object.keys(TYPES).join(", ")}`, operand);
  return valueTest((value) => `COALESCE(jsonb_typeof(${value}) = '${name}', false)`);
};

const moduloOperator: Operator = (operand, fieldPath, statement) => {
  const [divisor, remainder] = checkList(operand, fieldPath, 2, 2).map((element, index) =>
    wholeNumber(element, `${fieldPath}[${index}]`, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  );
  if (divisor === 0) refuseField(`${fieldPath}[0]`, "a divisor other than 0", divisor);
  const [by, rest] = [statement.bind(divisor, "numeric"), statement.bind(remainder, "numeric")];
  return valueTest(
    (value) =>
      `CASE WHEN ${typeSql(value)} = 'number' THEN mod(${textSql(value)}::numeric, ${by}) = ${rest} ELSE false END`,
  );
};

const regexOperator: Operator = (operand, fieldPath, statement, siblings) => {
  const { pattern, ignoreCase } = translatePattern(operand, siblings["$options"], fieldPath.replace(/\.\$regex$/, ""));
  const boundPattern = statement.bind(pattern, "text");
  return valueTest(
    (value) =>
      `(${typeSql(value)} = 'string' AND ${textSql(value)} ${ignoreCase ? `${UNICODE_COLLATION} ~*` : 'COLLATE "C" ~'} ${boundPattern})`,
  );
};

export const isScalarSql = (value: string): string => `${typeSql(value)} IN ('string', 'number', 'boolean')`;

const caseBlindPart: Operator = (operand, fieldPath, statement) => {
  const boundText = statement.bind(checkText(operand, fieldPath, 10_000), "text");
  return valueTest((value) => `(${isScalarSql(value)} AND ${holdsTextSql(textSql(value), boundText)})`);
};

/** Operators by name. An operator matches if at least one value passes its test, or no value if it is `negated`. */
export const OPERATOR_TESTS: Readonly<Record<string, { operator: Operator; negated?: boolean }>> = {
  $eq: { operator: equalOperator },
  $ne: { operator: equalOperator, negated: true },
  $gt: { operator: comparedBy(">") },
  $gte: { operator: comparedBy(">=") },
  $lt: { operator: comparedBy("<") },
  $lte: { operator: comparedBy("<=") },
  $in: { operator: oneOf },
  $nin: { operator: oneOf, negated: true },
  $size: { operator: sizeOperator },
  $exists: { operator: existsOperator },
  $type: { operator: type },
  $mod: { operator: moduloOperator },
  $regex: { operator: regexOperator },
  $iLike: { operator: caseBlindPart },
};
