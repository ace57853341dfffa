/**
 * JSON that is passed on as stored text, never parsed and printed again: a result of 6 MB may be two million objects.
 * Responses are written with `writeJson`.
 */
import { randomUUID } from "node:crypto";

/** Texts of the current response, and the random mark in their places, which no text can contain by intent. */
class Places {
  readonly mark = randomUUID();
  readonly texts: string[] = [];
}

/** Set while one response is written, synchronously. */
let writing: { places: Places | null } | null = null;

/** A value as JSON text, which must be valid. */
export class JsonText {
  constructor(readonly text: string) {}

  /** Returns its mark during `writeJson`; otherwise the value itself. */
  toJSON(): unknown {
    if (!writing) return JSON.parse(this.text);
    writing.places ??= new Places();
    writing.places.texts.push(this.text);
    return writing.places.mark;
  }
}

/** JSON text of a value that may contain `JsonText` anywhere, in parts: joining megabytes takes a while. */
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

/** The same as one string. */
export const writeJson = (value: unknown): string => jsonParts(value).join("");
