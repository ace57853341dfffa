/** Checks values in a query on entries. Throws an error if a value is invalid or exceeds a size limit. */

import { ActionError } from "../../errors.js";
import { containsInfinity, describeValue, findUnstorableCharacter, isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import { createFlatShape, refuseUnknownFields } from "../unknown-fields.js";

/** Maximum nesting depth of a `where`. docs/reference/data-source-queries.md describes this limit and those below. */
export const WHERE_MAX_DEPTH = 12;
export const WHERE_MAX_OPERATORS = 250;
export const QUERY_LIST_MAX_ITEMS = 10_000;
export const QUERY_VALUE_MAX_DEPTH = 20;
export const COLUMN_PATH_MAX_SEGMENTS = 10;
export const COLUMN_PATH_MAX_CHARACTERS = 512;
export const ORDER_COLUMNS_MAX = 5;
export const QUERY_JOINS_MAX = 5;
export const AGGREGATE_STAGES_MAX = 10;
export const AGGREGATE_FIELDS_MAX = 50;

/** Throws the error for a query that exceeds a limit. @throws REQUEST_INVALID with `message` */
export function throwQueryLimitError(message: string): never {
  throw new ActionError("REQUEST_INVALID", message);
}

/** Throws the error for an unknown field, operator or condition. @throws REQUEST_INVALID with the allowed and the received name */
export function rejectUnknownName(fieldPath: string, allowed: readonly string[], received: string): never {
  throw new ActionError(
    "REQUEST_INVALID",
    `${fieldPath} can contain only ${allowed.join(", ")} (got ${describeValue(received)})`,
  );
}

export function requireObject(value: unknown, fieldPath: string): Record<string, unknown> {
  return isObject(value) ? value : refuseField(fieldPath, "an object", value);
}

export function requireFields(value: unknown, fieldPath: string, allowed: readonly string[]): Record<string, unknown> {
  const input = requireObject(value, fieldPath);
  refuseUnknownFields(input, createFlatShape(allowed), fieldPath);
  return input;
}

export function requireKnownOperators(
  value: unknown,
  fieldPath: string,
  allowed: readonly string[],
): Record<string, unknown> {
  const input = requireObject(value, fieldPath);
  const unknownName = Object.keys(input).find((key) => !allowed.includes(key));
  if (unknownName !== undefined) rejectUnknownName(fieldPath, allowed, unknownName);
  return input;
}

export function requireList(value: unknown, fieldPath: string, max: number, min = 0): unknown[] {
  if (Array.isArray(value) && value.length <= max && value.length >= min) return value;
  const count = max === min ? max : `${min} to ${max.toLocaleString("en")}`;
  return refuseField(fieldPath, `an array of ${count} items`, value);
}

export function requireWholeNumber(value: unknown, fieldPath: string, min: number, max: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  return refuseField(fieldPath, `a whole number from ${min} to ${max}`, value);
}

/** Returns the value if it is a text of at most `max` characters that PostgreSQL can store. @throws REQUEST_INVALID */
export function requireQueryText(value: unknown, fieldPath: string, max: number): string {
  if (typeof value === "string" && value.length <= max && findUnstorableCharacter(value) < 0) return value;
  return refuseField(fieldPath, `a text of at most ${max} characters`, value);
}

export function parseOptionalFlag(value: unknown, fieldPath: string): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === "boolean" ? value : refuseField(fieldPath, "true or false", value);
}

/** True if the value contains text that PostgreSQL cannot store, or if it nests deeper than `levels`. */
function isUnstorable(value: unknown, levels: number): boolean {
  if (typeof value === "string") return findUnstorableCharacter(value) >= 0;
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((element) => isUnstorable(element, levels - 1));
  return Object.entries(value).some(
    ([key, field]) => findUnstorableCharacter(key) >= 0 || isUnstorable(field, levels - 1),
  );
}

/**
 * Serializes a JSON value as an SQL parameter.
 * @throws ActionError REQUEST_INVALID if no entry can contain the value, or if it has more than QUERY_VALUE_MAX_DEPTH levels
 */
export function serializeJsonValue(value: unknown, fieldPath: string): string {
  if (value === undefined || isUnstorable(value, QUERY_VALUE_MAX_DEPTH) || containsInfinity(value)) {
    refuseField(
      fieldPath,
      `a JSON value that an entry can contain, with at most ${QUERY_VALUE_MAX_DEPTH} levels`,
      value,
    );
  }
  return JSON.stringify(value);
}
