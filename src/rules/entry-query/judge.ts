/** Errors of invalid queries, and checks that limit the size of a query. */

import { ActionError } from "../../errors.js";
import { describeValue, holdsInfinity, isObject, unstorableCharacterIndex } from "../described.js";
import { refuseField } from "../fields.js";
import { flatShape, refuseUnknownFields } from "../unknown-fields.js";

/** Maximum nesting of a `where`. docs/reference/data-source-queries.md describes the query language and all limits below. */
export const WHERE_MAX_DEPTH = 12;
export const WHERE_MAX_OPERATORS = 250;
export const LIST_MAX = 10_000;
export const VALUE_MAX_DEPTH = 20;
export const PATH_MAX_SEGMENTS = 10;
export const PATH_MAX_CHARACTERS = 512;
export const ORDER_MAX = 5;
export const JOINS_MAX = 5;
export const STAGES_MAX = 10;
export const FIELDS_MAX = 50;

/** @throws REQUEST_INVALID for a query that is too large */
export function throwLimitError(message: string): never {
  throw new ActionError("REQUEST_INVALID", message);
}

/** Rejects an unknown field, operator or condition. @throws REQUEST_INVALID with the allowed names and the received name */
export function refuseName(fieldPath: string, allowed: readonly string[], received: string): never {
  throw new ActionError(
    "REQUEST_INVALID",
    `${fieldPath} can contain only ${allowed.join(", ")} (got ${describeValue(received)})`,
  );
}

/** @throws REQUEST_INVALID unless the value is an object */
export function checkObject(value: unknown, fieldPath: string): Record<string, unknown> {
  return isObject(value) ? value : refuseField(fieldPath, "an object", value);
}

/** Returns the value if it is an object with only allowed fields. @throws REQUEST_INVALID */
export function checkFields(value: unknown, fieldPath: string, allowed: readonly string[]): Record<string, unknown> {
  const input = checkObject(value, fieldPath);
  refuseUnknownFields(input, flatShape(allowed), fieldPath);
  return input;
}

/** Returns the value if it is an object with only allowed operators. @throws REQUEST_INVALID */
export function readOperators(value: unknown, fieldPath: string, allowed: readonly string[]): Record<string, unknown> {
  const input = checkObject(value, fieldPath);
  const unknownName = Object.keys(input).find((key) => !allowed.includes(key));
  if (unknownName !== undefined) refuseName(fieldPath, allowed, unknownName);
  return input;
}

export function checkList(value: unknown, fieldPath: string, max: number, min = 0): unknown[] {
  if (Array.isArray(value) && value.length <= max && value.length >= min) return value;
  return refuseField(fieldPath, `an array of ${min} to ${max.toLocaleString("en")} items`, value);
}

export function wholeNumber(value: unknown, fieldPath: string, min: number, max: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  return refuseField(fieldPath, `a whole number from ${min} to ${max}`, value);
}

/** Returns a text that PostgreSQL can store. */
export function checkText(value: unknown, fieldPath: string, max: number): string {
  if (typeof value === "string" && value.length <= max && unstorableCharacterIndex(value) < 0) return value;
  return refuseField(fieldPath, `a text of at most ${max} characters without U+0000 and lone surrogates`, value);
}

export function readFlag(value: unknown, fieldPath: string): boolean {
  if (value === undefined || value === null) return false;
  return typeof value === "boolean" ? value : refuseField(fieldPath, "true or false", value);
}

/** True if the value contains a text or key that PostgreSQL cannot store. */
function isUnstorable(value: unknown, levels: number): boolean {
  if (typeof value === "string") return unstorableCharacterIndex(value) >= 0;
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((element) => isUnstorable(element, levels - 1));
  return Object.entries(value).some(
    ([key, field]) => unstorableCharacterIndex(key) >= 0 || isUnstorable(field, levels - 1),
  );
}

/** Serializes a JSON value for an SQL parameter. @throws ActionError REQUEST_INVALID if no entry could contain the value */
export function jsonValue(value: unknown, fieldPath: string): string {
  if (value === undefined || isUnstorable(value, VALUE_MAX_DEPTH) || holdsInfinity(value)) {
    refuseField(fieldPath, `a JSON value that an entry can contain, with at most ${VALUE_MAX_DEPTH} levels`, value);
  }
  return JSON.stringify(value);
}
