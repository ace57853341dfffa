/** Value of a condition as a form edits it: the typed text and its type. value-fields.tsx shows it. */

/** Types of values. The service compares types too: the text "3" is not the number 3. */
export type ValueKind = "string" | "number" | "boolean";

export type ScalarValue = string | number | boolean;

export interface TypedValue {
  /** The text as typed. */
  value: string;
  kind: ValueKind;
}

export const VALUE_KINDS: readonly (readonly [ValueKind, string])[] = [
  ["string", "Text"],
  ["number", "Number"],
  ["boolean", "Yes/no"],
];

export const isScalarValue = (value: unknown): value is ScalarValue =>
  VALUE_KINDS.some(([kind]) => kind === typeof value);

/** Returns the form's value for a stored value. */
export const toTypedValue = (value: ScalarValue): TypedValue => ({
  value: String(value),
  kind: typeof value as ValueKind,
});

/** Returns the value to store. Check it with valueFault() first. */
export function toScalar({ value, kind }: TypedValue): ScalarValue {
  if (kind === "number") return Number(value);
  return kind === "boolean" ? value === "true" : value;
}

/** True if the text is a number that can be stored without loss. Numbers above 2^53 are valid only in JavaScript's own notation. */
function isNumber(text: string): boolean {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return false;
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER || String(value) === text;
}

/** Returns a message about the first value that does not have its type, or null. */
export function findValueFault(values: readonly TypedValue[]): string | null {
  const at = values.findIndex(({ kind, value }) => kind === "number" && !isNumber(value));
  return at < 0
    ? null
    : `Value ${at + 1} must be a number (got "${values[at]!.value}"). Your change is not saved until you correct it.`;
}
