/**
 * Filters the TypeScript compiler's diagnostics. Drops diagnostics that correct JavaScript causes because it has no
 * types, and keeps likely errors.
 */
import type { ActionTypeDeclarations } from "./code-types.js";

export interface CompilerDiagnostic {
  code: number;
  category: number;
  start?: number | undefined;
  length?: number | undefined;
  messageText: string | { messageText: string; next?: unknown };
}

/** `DiagnosticCategory.Error` of the TypeScript compiler. */
const ERROR_CATEGORY = 1;
/** Diagnostic codes for an unknown name: "cannot find name", "did you mean …", "do you need a library". */
const UNKNOWN_NAME_CODES = new Set([2304, 2552, 2503, 2580, 2581, 2582, 2584, 2591, 2592, 2593]);
/** Diagnostic codes for arithmetic with values that are not numbers. They are dropped, because correct JavaScript subtracts dates. */
const ARITHMETIC_CODES = new Set([2362, 2363]);
/** Matches messages about a missing property of a general DOM type. The actual element, such as an input, usually has the property. */
const UNKNOWN_ELEMENT_PATTERN = /on type '(Element|HTMLElement|EventTarget|Node|ChildNode|ParentNode)'/;

export const getDiagnosticText = ({ messageText }: Pick<CompilerDiagnostic, "messageText">): string =>
  typeof messageText === "string" ? messageText : messageText.messageText;

/** True if the diagnostic is likely an error of the code. False if it is only caused by missing types. */
export function isCodeError(
  diagnostic: CompilerDiagnostic,
  { hasUnknownNames }: Pick<ActionTypeDeclarations, "hasUnknownNames">,
): boolean {
  if (diagnostic.category !== ERROR_CATEGORY || ARITHMETIC_CODES.has(diagnostic.code)) return false;
  if (hasUnknownNames && UNKNOWN_NAME_CODES.has(diagnostic.code)) return false;
  return !(diagnostic.code === 2339 && UNKNOWN_ELEMENT_PATTERN.test(getDiagnosticText(diagnostic)));
}
