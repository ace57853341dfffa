/**
 * JSON that is passed on as stored text or UTF-8 bytes, never parsed and printed again: a result of 6 MB may be two million objects.
 * Responses are written with `writeJson`.
 */
import { randomUUID } from "node:crypto";

/** Texts of the current response, and the random marks in their places, which no text can contain on purpose. */
class TextPlaceholders {
  readonly mark = randomUUID();
  readonly texts: (string | Buffer)[] = [];
}

/** Set while one response is written, synchronously. */
let currentWrite: { places: TextPlaceholders | null } | null = null;

/** Returns JSON text from its UTF-8 bytes, which another thread may share. */
export const textOfJson = (source: string | Uint8Array): string =>
  typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString();

/** Value as JSON text, which must be valid. A long text may be its UTF-8 bytes. */
export class JsonText {
  constructor(readonly source: string | Buffer) {}

  get text(): string {
    return textOfJson(this.source);
  }

  /** Returns the mark of the text during `writeJson`; otherwise the value itself. */
  toJSON(): unknown {
    if (!currentWrite) return JSON.parse(this.text);
    currentWrite.places ??= new TextPlaceholders();
    currentWrite.places.texts.push(this.source);
    return currentWrite.places.mark;
  }
}

/** JSON text of a value that may contain `JsonText` anywhere, in parts: joining megabytes takes a while. */
export function jsonParts(value: unknown): (string | Buffer)[] {
  const outerWrite = currentWrite;
  const ownPlaces: { places: TextPlaceholders | null } = { places: null };
  currentWrite = ownPlaces;
  let jsonShell: string;
  try {
    jsonShell = JSON.stringify(value);
  } finally {
    currentWrite = outerWrite;
  }
  if (!ownPlaces.places) return [jsonShell];
  const { mark, texts } = ownPlaces.places;
  return jsonShell.split(`"${mark}"`).flatMap((part, index) => (index < texts.length ? [part, texts[index]!] : [part]));
}

/** The same as one string. */
export const writeJson = (value: unknown): string => jsonParts(value).join("");
