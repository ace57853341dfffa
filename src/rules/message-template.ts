/** Replaces placeholders such as `{{name}}` in a message by values from the message's data. A name is any text without braces. */
import { ActionError } from "../errors.js";

const PLACEHOLDER_PATTERN = /\{\{([^{}]+)\}\}/g;
const HTML_ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Maximum length in characters of a filled text. Otherwise, a long value that occurs a thousand times could fill the memory. */
const RESULT_MAX_CHARACTERS = 2 * 1024 * 1024;

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => HTML_ENTITIES[character]!);

/** Returns a property of `data` as text, or "" for a missing value, an object or a list. Dots in `path` lead to nested properties. */
function readTextAtPath(data: object, path: string): string {
  if (Object.hasOwn(data, path)) return toText((data as Record<string, unknown>)[path]);
  let value: unknown = data;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return "";
    value = (value as Record<string, unknown>)[key];
  }
  return toText(value);
}

const toText = (value: unknown): string =>
  ["string", "number", "boolean"].includes(typeof value) ? String(value) : "";

export const listPlaceholderNames = (text: string): string[] =>
  Array.from(text.matchAll(PLACEHOLDER_PATTERN), ([, name]) => name!.trim());

/**
 * Replaces the placeholders in `text` by values of `data`. If `html` is true, escapes the values. Changes nothing if `data` is null.
 * @throws ActionError REQUEST_INVALID if the result is longer than RESULT_MAX_CHARACTERS
 */
export function fillMessageTemplate(
  text: string,
  data: object | null,
  field: string,
  { html }: { html: boolean },
): string {
  if (data === null) return text;
  const parts: string[] = [];
  let length = 0;
  let from = 0;
  const appendPart = (part: string) => {
    length += part.length;
    if (length > RESULT_MAX_CHARACTERS) {
      throw new ActionError(
        "REQUEST_INVALID",
        `${field} is longer than ${RESULT_MAX_CHARACTERS} characters after its placeholders are replaced`,
      );
    }
    parts.push(part);
  };
  for (const match of text.matchAll(PLACEHOLDER_PATTERN)) {
    const value = readTextAtPath(data, match[1]!.trim());
    appendPart(text.slice(from, match.index));
    appendPart(html ? escapeHtml(value) : value);
    from = match.index + match[0].length;
  }
  appendPart(text.slice(from));
  return parts.join("");
}
