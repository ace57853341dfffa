/** Fields of a request that no resource has for its own: texts and ids, each refused by its name. */
import { ActionError } from "../errors.js";
import { described } from "./described.js";

const TEXT_MAX_CHARACTERS = 255;

/** A name of 1 to 255 storable characters. @throws REQUEST_INVALID */
export function requiredText(value: unknown, field: string): string {
  const text = typeof value === "string" ? value.trim() : "";
  if (text !== "" && text.length <= TEXT_MAX_CHARACTERS && !text.includes("\0") && text.isWellFormed()) return text;
  throw new ActionError(
    "REQUEST_INVALID",
    `${field} must be a text of 1 to ${TEXT_MAX_CHARACTERS} characters; ${described(value)} came`,
  );
}

/** An e-mail address. @throws REQUEST_INVALID */
export function requiredEmail(value: unknown, field: string): string {
  const email = requiredText(value, field);
  if (/^[^\s@]+@[^\s@]+$/.test(email)) return email;
  throw new ActionError("REQUEST_INVALID", `${field} must be an e-mail address`);
}

/** A positive integer, or null where none was given. @throws REQUEST_INVALID */
export function optionalId(value: unknown, field: string): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
  throw new ActionError("REQUEST_INVALID", `${field} must be a positive whole number; ${described(value)} came`);
}
