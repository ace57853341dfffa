/** Value in a condition as a form edits it: the typed text, and the type of the value. value-fields.tsx renders the inputs. */

/** Type of a value in a condition. The service distinguishes the text "3" from the number 3. */
export type ScalarValueKind = "string" | "number" | "boolean";

export type ScalarValue = string | number | boolean;

export interface TypedValue {
  typedText: string;
  kind: ScalarValueKind;
}

export const SCALAR_VALUE_KIND_LABELS: readonly (readonly [ScalarValueKind, string])[] = [
  ["string", "Text"],
  ["number", "Number"],
  ["boolean", "Yes/no"],
];

export const isScalarValue = (value: unknown): value is ScalarValue =>
  SCALAR_VALUE_KIND_LABELS.some(([kind]) => kind === typeof value);

export const toTypedValue = (value: ScalarValue): TypedValue => ({
  typedText: String(value),
  kind: typeof value as ScalarValueKind,
});

/** Converts the typed text to the value to store. First call `findValueFault`, because this function does not check the text. */
export function parseTypedValue({ typedText, kind }: TypedValue): ScalarValue {
  if (kind === "number") return Number(typedText);
  return kind === "boolean" ? typedText === "true" : typedText;
}

/**
 * True if the text is a number, and JavaScript stores all its digits before the decimal point. For an absolute value of 2^53 or more, the
 * text must be exactly as JavaScript writes the number.
 */
function isExactNumber(text: string): boolean {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return false;
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER || String(value) === text;
}

/**
 * Converts typed text to a value: the text if the cell contained a string, otherwise the parsed JSON. If the text is not JSON, returns
 * the text. Also returns the text for a number that JavaScript cannot store exactly, such as an ID of 20 digits.
 */
export function parseCellText(text: string, previousValue: unknown): unknown {
  if (typeof previousValue === "string") return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "number" && !isExactNumber(text) ? text : value;
  } catch {
    return text;
  }
}

/** Describes the numbers that the service can store instead of this text, for which `isExactNumber` is false. */
function describeExpectedNumber(text: string): string {
  const value = Number(text);
  if (text.trim() === "" || Number.isNaN(value) || text.includes("Infinity")) return "a number";
  if (!Number.isFinite(value)) return value > 0 ? "at most 1.79e308" : "at least -1.79e308";
  const isSameText = String(value).replace("+", "") === text.trim().toLowerCase();
  return `a number that can be stored exactly${isSameText ? "" : `, such as ${value}`}`;
}

/** Returns an error message about the first text that does not fit its type, such as "x" for a number; null if all fit. */
export function findValueFault(values: readonly TypedValue[]): string | null {
  const faultIndex = values.findIndex(({ kind, typedText }) => kind === "number" && !isExactNumber(typedText));
  if (faultIndex < 0) return null;
  const { typedText } = values[faultIndex]!;
  const fault = `Value ${faultIndex + 1} must be ${describeExpectedNumber(typedText)} (got "${typedText}").`;
  return `${fault} Your change is not saved until you correct it.`;
}
