/** Parses common fields of requests, such as texts and IDs. */
import { ActionError } from "../errors.js";
import { describeValue, findUnstorableCharacter } from "./describe-value.js";

const TEXT_MAX_CHARACTERS = 255;

/** Second half of the error message for a text that PostgreSQL cannot store; it follows the name of the field. */
export const UNSTORABLE_TEXT_FAULT = "must not contain the character U+0000 or a lone surrogate";

/**
 * Rejects a field. The message is `<field> must be <expected> (got <received>)`. If PostgreSQL cannot store the received text, the message
 * contains UNSTORABLE_TEXT_FAULT instead.
 * @throws REQUEST_INVALID
 */
export function refuseField(field: string, expected: string, received: unknown): never {
  if (typeof received === "string" && findUnstorableCharacter(received) >= 0)
    throw new ActionError("REQUEST_INVALID", `${field} ${UNSTORABLE_TEXT_FAULT} (got ${describeValue(received)})`);
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected} (got ${describeValue(received)})`);
}

/** Calls `parse`. The text of an error gets the prefix `where` (position in a batch), unless the text already starts with it. */
export function parseWithErrorPrefix<T>(where: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ActionError) || error.message.startsWith(where)) throw error;
    throw new ActionError(error.status, `${where}: ${error.message}`);
  }
}

/** Checks an array of one or more allowed texts. @throws REQUEST_INVALID that names the first element which is not allowed */
export function requireListOf(allowed: readonly string[], value: unknown, field: string): void {
  const texts = allowed.join(", ");
  if (!Array.isArray(value) || value.length === 0) refuseField(field, `an array with one or more of ${texts}`, value);
  const invalidIndex = value.findIndex((element) => !allowed.includes(element));
  if (invalidIndex >= 0) refuseField(`${field}[${invalidIndex}]`, `one of ${texts}`, value[invalidIndex]);
}

/** Returns the trimmed text. It must have 1 to 255 characters that PostgreSQL can store. @throws REQUEST_INVALID */
export function requireText(value: unknown, field: string): string {
  const text = typeof value === "string" ? value.trim() : "";
  if (text !== "" && text.length <= TEXT_MAX_CHARACTERS && findUnstorableCharacter(text) < 0) return text;
  return refuseField(field, `a text of 1 to ${TEXT_MAX_CHARACTERS} characters`, value);
}

/** Parses an e-mail address. @throws REQUEST_INVALID */
export function requireEmail(value: unknown, field: string): string {
  const email = requireText(value, field);
  if (/^[^\s@]+@[^\s@]+$/.test(email)) return email;
  return refuseField(field, "an e-mail address", email);
}

/** Parses an ID, a positive whole number; null if the field is absent. @throws REQUEST_INVALID */
export function parseOptionalId(value: unknown, field: string): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
  return refuseField(field, "a positive whole number", value);
}
