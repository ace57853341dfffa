/** Compiles `order` to sort keys, and a cursor to the SQL condition for the entries of the next or previous page. */
import { createHash } from "node:crypto";
import { ActionError } from "../../errors.js";
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { checkList, ORDER_MAX, throwLimitError } from "./judge.js";
import { keyAt, type OwnField, ownFieldSql, type Path, parsePath, type Source } from "./path.js";
import type { Statement } from "./statement.js";

export interface OrderKey {
  path: Path;
  descending: boolean;
}

const ID: Path = { own: "id" };

/** Returns the sort keys. The last key is the ID, so that no two entries are equal. @throws ActionError REQUEST_INVALID */
export function parseOrder(order: unknown, source: Source, fieldPath = "order"): OrderKey[] {
  const input = order === undefined || order === null ? [] : checkList(order, fieldPath, ORDER_MAX);
  const keys = input.map((element, index): OrderKey => {
    const innerPath = `${fieldPath}[${index}]`;
    const [column, direction = "ASC"] = typeof element === "string" ? [element] : checkList(element, innerPath, 2, 1);
    const upperDirection = typeof direction === "string" ? direction.toUpperCase() : "";
    if (upperDirection !== "ASC" && upperDirection !== "DESC") refuseField(`${innerPath}[1]`, "ASC or DESC", direction);
    return { path: parsePath(column, `${innerPath}[0]`, source, true), descending: upperDirection === "DESC" };
  });
  if (keys.length === 0) keys.push({ path: { own: "order" }, descending: false });
  // The ID has the same direction as the key before it, so that PostgreSQL can use one index for both.
  if (!keys.some(({ path }) => path.own === "id")) keys.push({ path: ID, descending: keys.at(-1)!.descending });
  return keys;
}

/** Returns SQL for the value of a sort key: a field such as `createdAt` in its own type, a column as jsonb. */
export const keySql = ({ path }: OrderKey, source: Source, statement: Statement): string =>
  path.own === null ? keyAt(path, source, statement) : ownFieldSql(path.own, source);

/** @param reversed true for the previous page */
export function orderBy(keys: readonly OrderKey[], sql: readonly string[], reversed = false): string {
  return keys.map(({ descending }, index) => `${sql[index]} ${descending === reversed ? "ASC" : "DESC"}`).join(", ");
}

const TYPES: Record<OwnField, string> = {
  id: "bigint",
  order: "float8",
  createdAt: "timestamptz",
  updatedAt: "timestamptz",
};
const KEY_VALUE_FORMS: Record<OwnField, RegExp> = {
  id: /^\d{1,16}$/,
  order: /^-?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?$/,
  createdAt: /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[-+]\d\d(?::\d\d)?$/,
  updatedAt: /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[-+]\d\d(?::\d\d)?$/,
};

/** Returns SQL for the text with which a cursor stores the value of a key. */
export const keyText = (sql: string): string => `(${sql})::text`;

/** Returns an SQL condition for the entries after the position with these values, or before it if `reversed` is true. */
export function afterPosition(
  keys: readonly OrderKey[],
  sql: readonly string[],
  values: readonly string[],
  reversed: boolean,
  statement: Statement,
): string {
  const boundKeys = keys.map(({ path }, index) => {
    if (path.own === null) return statement.bind(values[index]!, "jsonb");
    return `(${statement.bind(values[index]!, "text")})::${TYPES[path.own]}`;
  });
  const comparisonSign = ({ descending }: OrderKey) => (descending === reversed ? ">" : "<");
  const [first] = keys;
  if (keys.every(({ descending }) => descending === first!.descending)) {
    return `(${sql.join(", ")}) ${comparisonSign(first!)} (${boundKeys.join(", ")})`;
  }
  return keys.reduceRight(
    (rest, key, index) =>
      `(${sql[index]} ${comparisonSign(key)} ${boundKeys[index]} OR (${sql[index]} = ${boundKeys[index]} AND ${rest}))`,
    "false",
  );
}

export const CURSOR_MAX_CHARACTERS = 20_000;

/**
 * Position after which a page starts. Callers get it as an opaque text, which contains only values that they can see. The
 * text is validated like any input, because callers can change it.
 */
export interface Cursor {
  values: readonly string[];
  reversed: boolean;
}

const orderFingerprint = (keys: readonly OrderKey[], dataSourceId: number): string =>
  createHash("sha256")
    .update(JSON.stringify([dataSourceId, keys]))
    .digest("base64url")
    .slice(0, 12);

export function writeCursor(keys: readonly OrderKey[], dataSourceId: number, { values, reversed }: Cursor): string {
  const content = { f: orderFingerprint(keys, dataSourceId), k: values, r: reversed ? 1 : 0 };
  const cursor = Buffer.from(JSON.stringify(content)).toString("base64url");
  if (cursor.length > CURSOR_MAX_CHARACTERS)
    throwLimitError('the values of the columns in "order" are too long for a cursor; use "offset" instead');
  return cursor;
}

function decodeCursor(cursor: string): Record<string, unknown> | null {
  try {
    const content: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return isObject(content) ? content : null;
  } catch {
    return null;
  }
}

function isValueOfKey(value: unknown, { path }: OrderKey): value is string {
  if (typeof value !== "string" || value.includes("\\u0000")) return false;
  if (path.own !== null) return KEY_VALUE_FORMS[path.own].test(value);
  try {
    JSON.parse(value);
    return value.isWellFormed();
  } catch {
    return false;
  }
}

/** @throws REQUEST_INVALID if it is not a cursor of this data source with this order */
export function readCursor(cursor: unknown, keys: readonly OrderKey[], dataSourceId: number): Cursor {
  const content = typeof cursor === "string" ? decodeCursor(cursor) : null;
  const values = content?.["k"];
  const isValid =
    content !== null &&
    content["f"] === orderFingerprint(keys, dataSourceId) &&
    Array.isArray(values) &&
    values.length === keys.length &&
    keys.every((key, index) => isValueOfKey(values[index], key));
  if (isValid) return { values: values as string[], reversed: content["r"] === 1 };
  throw new ActionError(
    "REQUEST_INVALID",
    'cursor must be one that an earlier query of this data source with the same "order" returned',
  );
}
