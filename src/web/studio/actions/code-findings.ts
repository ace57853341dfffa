/** Filter of the compiler's diagnostics: it keeps those that are faults of an action's code and drops usual plain JavaScript. */
import type { ActionTypes } from "./code-types.js";

/** A finding of the compiler's, as its worker gives it. */
export interface Finding {
  code: number;
  category: number;
  start?: number | undefined;
  length?: number | undefined;
  messageText: string | { messageText: string; next?: unknown };
}

const ERROR = 1;
/** Names that are not known: cannot find it, did you mean another, needs a library. */
const UNKNOWN_NAMES = new Set([2304, 2552, 2503, 2580, 2581, 2582, 2584, 2591, 2592, 2593]);
/** Dates are subtracted in JavaScript. */
const ARITHMETIC = new Set([2362, 2363]);
/** What the DOM's declarations leave open: which element a selector finds, which one an event comes from. */
const OPEN_ELEMENT = /on type '(Element|HTMLElement|EventTarget|Node|ChildNode|ParentNode)'/;

export const textOf = ({ messageText }: Pick<Finding, "messageText">): string =>
  typeof messageText === "string" ? messageText : messageText.messageText;

/** Whether it is wrong in JavaScript too, as far as TypeScript can know. */
export function isFault(finding: Finding, { hasUnknownNames }: Pick<ActionTypes, "hasUnknownNames">): boolean {
  if (finding.category !== ERROR || ARITHMETIC.has(finding.code)) return false;
  if (hasUnknownNames && UNKNOWN_NAMES.has(finding.code)) return false;
  return !(finding.code === 2339 && OPEN_ELEMENT.test(textOf(finding)));
}
