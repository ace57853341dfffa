/** Compiles `order` to sort keys, and a cursor to an SQL condition for the entries of the next or previous page. */
import { createHash } from "node:crypto";
import { ActionError } from "../../errors.js";
import { isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import { ORDER_COLUMNS_MAX, requireList, throwQueryLimitError } from "./checks.js";
import {
  type EntryField,
  entryFieldSql,
  type Path,
  parseDocumentPath,
  type QueriedDocument,
  sortableValueSql,
} from "./path.js";
import type { SqlStatement } from "./statement.js";

export interface SortKey {
  path: Path;
  descending: boolean;
}

const ID: Path = { entryField: "id" };

/**
 * Parses `order`; without it, sorts by the entry's field `order`. Adds the ID as a sort key, so that no two entries have equal keys.
 * @throws ActionError REQUEST_INVALID
 */
export function parseOrder(order: unknown, source: QueriedDocument, fieldPath = "order"): SortKey[] {
  const input = order === undefined || order === null ? [] : requireList(order, fieldPath, ORDER_COLUMNS_MAX);
  const keys = input.map((element, index): SortKey => {
    const innerPath = `${fieldPath}[${index}]`;
    const isPair = Array.isArray(element) && (element.length === 1 || element.length === 2);
    if (!isPair && typeof element !== "string")
      refuseField(innerPath, "the path of a column, or an array of it and ASC or DESC", element);
    const [column, direction = "ASC"] = isPair ? element : [element];
    const upperDirection = typeof direction === "string" ? direction.toUpperCase() : "";
    if (upperDirection !== "ASC" && upperDirection !== "DESC") refuseField(`${innerPath}[1]`, "ASC or DESC", direction);
    return {
      path: parseDocumentPath(column, isPair ? `${innerPath}[0]` : innerPath, source, true),
      descending: upperDirection === "DESC",
    };
  });
  if (keys.length === 0) keys.push({ path: { entryField: "order" }, descending: false });
  // The ID is sorted in the direction of the key before it, so that PostgreSQL can use one index for both.
  if (!keys.some(({ path }) => path.entryField === "id")) keys.push({ path: ID, descending: keys.at(-1)!.descending });
  return keys;
}

/** Returns SQL for the value of a sort key. Fields such as `createdAt` have their SQL type, columns of an entry the type jsonb. */
export const sortKeySql = ({ path }: SortKey, source: QueriedDocument, statement: SqlStatement): string =>
  path.entryField === null ? sortableValueSql(path, source, statement) : entryFieldSql(path.entryField, source);

/**
 * Returns the sort keys as a list for ORDER BY.
 * @param sql SQL of each key's value
 * @param isReversed true to sort in reverse, to read the previous page
 */
export function orderBySql(keys: readonly SortKey[], sql: readonly string[], isReversed = false): string {
  return keys.map(({ descending }, index) => `${sql[index]} ${descending === isReversed ? "ASC" : "DESC"}`).join(", ");
}

const SQL_TYPES: Record<EntryField, string> = {
  id: "bigint",
  order: "float8",
  createdAt: "timestamptz",
  updatedAt: "timestamptz",
};
const KEY_VALUE_PATTERNS: Record<EntryField, RegExp> = {
  id: /^\d{1,16}$/,
  order: /^-?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?$/,
  createdAt: /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[-+]\d\d(?::\d\d)?$/,
  updatedAt: /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[-+]\d\d(?::\d\d)?$/,
};

/** Returns SQL of a sort key's value as text, which is the form that a cursor stores. */
export const sortKeyTextSql = (sql: string): string => `(${sql})::text`;

/**
 * Returns an SQL condition for the entries after (or before, if `isReversed`) the entry whose sort keys have these values.
 * @param sql SQL of each key's value
 */
export function afterPositionSql(
  keys: readonly SortKey[],
  sql: readonly string[],
  values: readonly string[],
  isReversed: boolean,
  statement: SqlStatement,
): string {
  const boundKeys = keys.map(({ path }, index) => {
    if (path.entryField === null) return statement.bind(values[index]!, "jsonb");
    return `(${statement.bind(values[index]!, "text")})::${SQL_TYPES[path.entryField]}`;
  });
  const getComparisonSign = ({ descending }: SortKey) => (descending === isReversed ? ">" : "<");
  const [first] = keys;
  if (keys.every(({ descending }) => descending === first!.descending)) {
    return `(${sql.join(", ")}) ${getComparisonSign(first!)} (${boundKeys.join(", ")})`;
  }
  return keys.reduceRight(
    (rest, key, index) =>
      `(${sql[index]} ${getComparisonSign(key)} ${boundKeys[index]} OR (${sql[index]} = ${boundKeys[index]} AND ${rest}))`,
    "false",
  );
}

export const CURSOR_MAX_CHARACTERS = 20_000;

/**
 * Position of a page. `values` are the sort keys' values of the entry before the page; if `reversed` is true, of the entry after the page.
 * The service validates each cursor that it receives, because callers get it as a text, which they can change.
 */
export interface Cursor {
  values: readonly string[];
  reversed: boolean;
}

const computeOrderFingerprint = (keys: readonly SortKey[], dataSourceId: number): string =>
  createHash("sha256")
    .update(JSON.stringify([dataSourceId, keys]))
    .digest("base64url")
    .slice(0, 12);

export function encodeEntryCursor(
  keys: readonly SortKey[],
  dataSourceId: number,
  { values, reversed }: Cursor,
): string {
  const content = { f: computeOrderFingerprint(keys, dataSourceId), k: values, r: reversed ? 1 : 0 };
  const cursor = Buffer.from(JSON.stringify(content)).toString("base64url");
  if (cursor.length > CURSOR_MAX_CHARACTERS)
    throwQueryLimitError('the values of the columns in "order" are too long for a cursor; use "offset" instead');
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

function isValueOfKey(value: unknown, { path }: SortKey): value is string {
  if (typeof value !== "string" || value.includes("\\u0000")) return false;
  if (path.entryField !== null) return KEY_VALUE_PATTERNS[path.entryField].test(value);
  try {
    JSON.parse(value);
    return value.isWellFormed();
  } catch {
    return false;
  }
}

/** Decodes and validates a cursor. @throws REQUEST_INVALID if it is not from a query of this data source with this order */
export function validateEntryCursor(cursor: unknown, keys: readonly SortKey[], dataSourceId: number): Cursor {
  const content = typeof cursor === "string" ? decodeCursor(cursor) : null;
  const values = content?.["k"];
  const isValid =
    content !== null &&
    content["f"] === computeOrderFingerprint(keys, dataSourceId) &&
    Array.isArray(values) &&
    values.length === keys.length &&
    keys.every((key, index) => isValueOfKey(values[index], key));
  if (isValid) return { values: values as string[], reversed: content["r"] === 1 };
  throw new ActionError(
    "REQUEST_INVALID",
    'cursor must be one that an earlier query of this data source with the same "order" returned',
  );
}
