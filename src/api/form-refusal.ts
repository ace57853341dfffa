/** Converts errors of the upload form's parser (@fastify/multipart, busboy) to REQUEST_INVALID. */
import { ActionError } from "../errors.js";

/** Character by which the form parser replaces bytes that are not UTF-8, without an error. */
const REPLACEMENT_CHARACTER = "\ufffd";

/**
 * Rejects text with U+FFFD, which the form parser writes for bytes that are not UTF-8. So a form cannot contain this character itself.
 * @throws REQUEST_INVALID that names the form field `field`
 */
export function rejectInvalidUtf8(text: unknown, field: string): void {
  if (typeof text !== "string" || !text.includes(REPLACEMENT_CHARACTER)) return;
  throw new ActionError("REQUEST_INVALID", `the form field ${field} must be UTF-8 text (got bytes that are not UTF-8)`);
}

/** Matches the form parser's messages about an invalid form. The parser calls a form boundary "needle". */
const FORM_ERROR_PATTERN = /form|multipart|boundary|needle|premature|aborted|header/i;

/** Returns REQUEST_INVALID for an error about an invalid form; any other error unchanged. */
export function convertInvalidFormError(error: unknown): unknown {
  if (error instanceof ActionError) return error;
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  if (!code.startsWith("FST_") && !FORM_ERROR_PATTERN.test(message)) return error;
  if (code === "FST_FILES_LIMIT")
    return new ActionError("REQUEST_INVALID", "the form contains too many files; send fewer files in one request");
  return new ActionError("REQUEST_INVALID", "the body must be a complete multipart/form-data form");
}
