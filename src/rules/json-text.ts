/**
 * JSON that is passed on as stored text, never parsed and printed again: a result of 6 MB may be two million objects. Knows no transport;
 * answers are written with `writeJson`.
 */
import { randomUUID } from "node:crypto";

/** The texts of one answer so far, and the mark that stands in their places. No author of a text can know the mark. */
class Places {
  readonly mark = randomUUID();
  readonly texts: string[] = [];
}

/** Set for as long as one answer is written, which nothing interrupts. */
let writing: { places: Places | null } | null = null;

/** A value that is there as JSON text; the text must be valid JSON. */
export class JsonText {
  constructor(readonly text: string) {}

  /** Its place in an answer that `writeJson` writes; the value itself for other callers. */
  toJSON(): unknown {
    if (!writing) return JSON.parse(this.text);
    writing.places ??= new Places();
    writing.places.texts.push(this.text);
    return writing.places.mark;
  }
}

/**
 * JSON text of a value that may hold `JsonText` anywhere, in the parts that it consists of: put together they are copied, which for
 * megabytes takes a while.
 */
export function jsonParts(value: unknown): string[] {
  const outer = writing;
  const own: { places: Places | null } = { places: null };
  writing = own;
  let shell: string;
  try {
    shell = JSON.stringify(value);
  } finally {
    writing = outer;
  }
  if (!own.places) return [shell];
  const { mark, texts } = own.places;
  return shell.split(`"${mark}"`).flatMap((part, index) => (index < texts.length ? [part, texts[index]!] : [part]));
}

/** The same as one text. */
export const writeJson = (value: unknown): string => jsonParts(value).join("");
