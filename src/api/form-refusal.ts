/** Converts errors of the form parser (@fastify/multipart, busboy) to REQUEST_INVALID. */
import { ActionError } from "../errors.js";

/** The form parser decodes bytes that are not UTF-8 to this character without an error. */
const REPLACEMENT_CHARACTER = "\ufffd";

/** @throws REQUEST_INVALID if a text of a form is not UTF-8 */
export function refuseOtherBytes(text: unknown, field: string): void {
  if (typeof text !== "string" || !text.includes(REPLACEMENT_CHARACTER)) return;
  throw new ActionError("REQUEST_INVALID", `${field} must be UTF-8 (got other bytes)`);
}

/** Matches the form parser's messages about an invalid form. "needle" is its word for a boundary that is too long. */
const FORM_MESSAGE = /form|multipart|boundary|needle|premature|aborted|header/i;

/** Returns REQUEST_INVALID for a fault of the form; any other error unchanged. */
export function asFormRefusal(error: unknown): unknown {
  if (error instanceof ActionError) return error;
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  if (!code.startsWith("FST_") && !FORM_MESSAGE.test(message)) return error;
  return new ActionError("REQUEST_INVALID", "the form is incomplete or is not multipart/form-data");
}
