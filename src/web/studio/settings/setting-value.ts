/** Converts the value of a setting between JSON and the typed text: strings are plain text, other values are JSON. */

export interface TypedValue {
  /** True if `text` is the string itself; false if it is JSON. */
  plain: boolean;
  text: string;
}

export type Tier = "public" | "private" | "protected";

/** Returns the tier of a setting by its key: `__` is protected, `_` is private, other keys are public. */
export function tierOf(key: string): Tier {
  if (key.startsWith("__")) return "protected";
  return key.startsWith("_") ? "private" : "public";
}

export function typedValueOf(value: unknown): TypedValue {
  return typeof value === "string"
    ? { plain: true, text: value }
    : { plain: false, text: JSON.stringify(value, null, 2) };
}

export function parseTypedValue({ plain, text }: TypedValue): { value: unknown } | { fault: string } {
  if (plain) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: `The value is not valid JSON: ${(error as Error).message}` };
  }
}
