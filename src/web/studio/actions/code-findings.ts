/** Filters the compiler's diagnostics: keeps errors in the code, and drops warnings about usual plain JavaScript. */
import type { ActionTypes } from "./code-types.js";

/** Diagnostic of the compiler, as Monaco's worker returns it. */
export interface CompilerDiagnostic {
  code: number;
  category: number;
  start?: number | undefined;
  length?: number | undefined;
  messageText: string | { messageText: string; next?: unknown };
}

const ERROR_CATEGORY = 1;
/** Codes of diagnostics about unknown names: not found, did you mean another name, needs a library. */
const UNKNOWN_NAME_CODES = new Set([2304, 2552, 2503, 2580, 2581, 2582, 2584, 2591, 2592, 2593]);
/** Codes of diagnostics about arithmetic. JavaScript code subtracts dates, which TypeScript rejects. */
const ARITHMETIC_CODES = new Set([2362, 2363]);
/** Messages about elements whose type the DOM's declarations leave open, such as the result of a selector or the target of an event. */
const UNKNOWN_ELEMENT_PATTERN = /on type '(Element|HTMLElement|EventTarget|Node|ChildNode|ParentNode)'/;

export const diagnosticText = ({ messageText }: Pick<CompilerDiagnostic, "messageText">): string =>
  typeof messageText === "string" ? messageText : messageText.messageText;

/** True if the diagnostic is also an error in plain JavaScript, as far as TypeScript can tell. */
export function isCodeError(
  diagnostic: CompilerDiagnostic,
  { hasUnknownNames }: Pick<ActionTypes, "hasUnknownNames">,
): boolean {
  if (diagnostic.category !== ERROR_CATEGORY || ARITHMETIC_CODES.has(diagnostic.code)) return false;
  if (hasUnknownNames && UNKNOWN_NAME_CODES.has(diagnostic.code)) return false;
  return !(diagnostic.code === 2339 && UNKNOWN_ELEMENT_PATTERN.test(diagnosticText(diagnostic)));
}
