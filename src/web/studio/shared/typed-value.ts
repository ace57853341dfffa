/** Value in a condition as a form edits it: the typed text, and the type of the value. value-fields.tsx renders the inputs. */

/** Type of a value in a condition. It matters, because the service distinguishes the text "3" from the number 3. */
export type ValueKind = "string" | "number" | "boolean";

export type ScalarValue = string | number | boolean;

export interface TypedValue {
  /** Text that the person has typed. */
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

/** Converts a stored value to the typed text and type of the form. */
export const toTypedValue = (value: ScalarValue): TypedValue => ({
  value: String(value),
  kind: typeof value as ValueKind,
});

/** Converts the typed text to the value to store. Call `findValueFault` before, because the text may be invalid. */
export function toScalar({ value, kind }: TypedValue): ScalarValue {
  if (kind === "number") return Number(value);
  return kind === "boolean" ? value === "true" : value;
}

/**
 * True if the text is a number that JavaScript can store without loss. For numbers above 2^53, the text must be JavaScript's own notation
 * of the number.
 */
function isNumber(text: string): boolean {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return false;
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER || String(value) === text;
}

/** Returns an error message about the first text that is not a value of its type, or null if all are valid. */
export function findValueFault(values: readonly TypedValue[]): string | null {
  const at = values.findIndex(({ kind, value }) => kind === "number" && !isNumber(value));
  return at < 0
    ? null
    : `Value ${at + 1} must be a number (got "${values[at]!.value}"). Your change is not saved until you correct it.`;
}
