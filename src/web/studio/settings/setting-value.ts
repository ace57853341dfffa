/** Converts the value of a setting to text that a person can edit, and back. A string is plain text; any other value is JSON. */

export interface EditableSettingText {
  /** True if `text` is the string itself; false if `text` is JSON. */
  isPlainText: boolean;
  text: string;
}

export type SettingTier = "public" | "private" | "protected";

/** Returns the tier of a setting by the prefix of its key: `__` is protected, `_` is private, and no prefix is public. */
export function getSettingTier(key: string): SettingTier {
  if (key.startsWith("__")) return "protected";
  return key.startsWith("_") ? "private" : "public";
}

export function formatSettingText(value: unknown): EditableSettingText {
  return typeof value === "string"
    ? { isPlainText: true, text: value }
    : { isPlainText: false, text: JSON.stringify(value, null, 2) };
}

export function parseSettingText({ isPlainText, text }: EditableSettingText): { value: unknown } | { fault: string } {
  if (isPlainText) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: `The value is not valid JSON: ${(error as Error).message}` };
  }
}
