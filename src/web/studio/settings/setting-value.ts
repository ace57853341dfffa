/** A setting's value between its JSON and what a person types: plain text for strings, JSON for the rest. */

export interface TypedValue {
  /** Whether `text` is the string itself; else it is JSON. */
  plain: boolean;
  text: string;
}

export type Tier = "public" | "private" | "protected";

/** The same rule as the service's (specification, App settings object). */
export function tierOf(key: string): Tier {
  if (key.startsWith("__")) return "protected";
  return key.startsWith("_") ? "private" : "public";
}

export function typed(value: unknown): TypedValue {
  return typeof value === "string"
    ? { plain: true, text: value }
    : { plain: false, text: JSON.stringify(value, null, 2) };
}

export function parsed({ plain, text }: TypedValue): { value: unknown } | { fault: string } {
  if (plain) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: `This is no JSON: ${(error as Error).message}` };
  }
}
