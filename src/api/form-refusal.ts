/** The faults of a form, as the parser of forms (@fastify/multipart, busboy) throws them. Knows no file. */
import { ActionError } from "../errors.js";

/** Stands for bytes that are no UTF-8: the parser of forms decodes texts without an error. */
const REPLACEMENT = "\ufffd";

/** @throws REQUEST_INVALID for a text of a form that is not UTF-8 */
export function refuseOtherBytes(text: unknown, field: string): void {
  if (typeof text !== "string" || !text.includes(REPLACEMENT)) return;
  throw new ActionError("REQUEST_INVALID", `${field} must be UTF-8 (got other bytes)`);
}

/** In the parser's words; a boundary that is too long it calls a needle. */
const OF_FORM = /form|multipart|boundary|needle|premature|aborted|header/i;

/** REQUEST_INVALID for a fault of the form's; any other error as it is. */
export function asFormRefusal(error: unknown): unknown {
  if (error instanceof ActionError) return error;
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  if (!code.startsWith("FST_") && !OF_FORM.test(message)) return error;
  return new ActionError("REQUEST_INVALID", "the form is not whole, or is no multipart/form-data");
}
