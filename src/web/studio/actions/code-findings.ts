/** Filters the compiler's diagnostics: keeps errors in the code, and drops warnings about usual plain JavaScript. */
import type { ActionTypes } from "./code-types.js";

/** Diagnostic of the compiler, as Monaco's worker returns it. */
export interface Finding {
  code: number;
  category: number;
  start?: number | undefined;
  length?: number | undefined;
  messageText: string | { messageText: string; next?: unknown };
}

const ERROR = 1;
/** Codes of diagnostics about unknown names: not found, did you mean another name, needs a library. */
const UNKNOWN_NAMES = new Set([2304, 2552, 2503, 2580, 2581, 2582, 2584, 2591, 2592, 2593]);
/** Codes of diagnostics about arithmetic. JavaScript code subtracts dates, which TypeScript rejects. */
const ARITHMETIC = new Set([2362, 2363]);
/** Messages about elements whose type the DOM's declarations leave open, such as the result of a selector or the target of an event. */
const OPEN_ELEMENT = /on type '(Element|HTMLElement|EventTarget|Node|ChildNode|ParentNode)'/;

export const textOf = ({ messageText }: Pick<Finding, "messageText">): string =>
  typeof messageText === "string" ? messageText : messageText.messageText;

/** True if the diagnostic is also an error in plain JavaScript, as far as TypeScript can tell. */
export function isFault(finding: Finding, { hasUnknownNames }: Pick<ActionTypes, "hasUnknownNames">): boolean {
  if (finding.category !== ERROR || ARITHMETIC.has(finding.code)) return false;
  if (hasUnknownNames && UNKNOWN_NAMES.has(finding.code)) return false;
  return !(finding.code === 2339 && OPEN_ELEMENT.test(textOf(finding)));
}
