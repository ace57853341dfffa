/** Parses common fields of requests, such as texts and IDs. */
import { ActionError } from "../errors.js";
import { describeValue } from "./describe-value.js";

const TEXT_MAX_CHARACTERS = 255;

/** @throws REQUEST_INVALID with the message `<field> must be <expected> (got <received>)` */
export function refuseField(field: string, expected: string, received: unknown): never {
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected} (got ${describeValue(received)})`);
}

/** Returns the trimmed text. It must have 1 to 255 characters that PostgreSQL can store. @throws REQUEST_INVALID */
export function requireText(value: unknown, field: string): string {
  const text = typeof value === "string" ? value.trim() : "";
  if (text !== "" && text.length <= TEXT_MAX_CHARACTERS && !text.includes("\0") && text.isWellFormed()) return text;
  return refuseField(field, `a text of 1 to ${TEXT_MAX_CHARACTERS} characters`, value);
}

/** Parses an e-mail address. @throws REQUEST_INVALID */
export function requireEmail(value: unknown, field: string): string {
  const email = requireText(value, field);
  if (/^[^\s@]+@[^\s@]+$/.test(email)) return email;
  throw new ActionError("REQUEST_INVALID", `${field} must be an e-mail address`);
}

/** Parses an ID, a positive integer; null if the field is absent. @throws REQUEST_INVALID */
export function parseOptionalId(value: unknown, field: string): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
  return refuseField(field, "a positive whole number", value);
}
