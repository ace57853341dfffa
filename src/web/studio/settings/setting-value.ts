/** Converts the value of a setting to text that a person can edit, and back. A string is plain text; any other value is JSON. */

export interface TypedValue {
  /** True if `text` is the string itself; false if `text` is JSON. */
  plain: boolean;
  text: string;
}

export type Tier = "public" | "private" | "protected";

/** Returns the tier of a setting by the prefix of its key: `__` is protected, `_` is private, and no prefix is public. */
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
