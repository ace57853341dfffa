/**
 * Writes responses that contain stored JSON texts, without parsing these texts: a result of 6 MB may be two million
 * objects. Wrap such a text in `JsonText`, and write the response with `writeJson`.
 */
import { randomUUID } from "node:crypto";

/** JSON texts of the current response, and the placeholder that stands for each of them. It is random, so that no text contains it. */
class TextPlaceholders {
  readonly mark = randomUUID();
  readonly texts: (string | Buffer)[] = [];
}

/** State of the response that is being written; null at all other times. Writing is synchronous. */
let currentWrite: { placeholders: TextPlaceholders | null } | null = null;

/** Returns a JSON text from a string or its UTF-8 bytes, which may be in memory that threads share. */
export const textOfJson = (source: string | Uint8Array): string =>
  typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString();

/** Value as valid JSON text. A long text can be a buffer with its UTF-8 bytes. */
export class JsonText {
  constructor(readonly source: string | Buffer) {}

  get text(): string {
    return textOfJson(this.source);
  }

  /** Returns the placeholder of the text while a response is written; otherwise the parsed value. */
  toJSON(): unknown {
    if (!currentWrite) return JSON.parse(this.text);
    currentWrite.placeholders ??= new TextPlaceholders();
    currentWrite.placeholders.texts.push(this.source);
    return currentWrite.placeholders.mark;
  }
}

/** Serializes a value that may contain `JsonText` anywhere. Returns the text in parts, because joining megabytes takes time. */
export function jsonParts(value: unknown): (string | Buffer)[] {
  const outerWrite = currentWrite;
  const thisWrite: { placeholders: TextPlaceholders | null } = { placeholders: null };
  currentWrite = thisWrite;
  let jsonShell: string;
  try {
    jsonShell = JSON.stringify(value);
  } finally {
    currentWrite = outerWrite;
  }
  if (!thisWrite.placeholders) return [jsonShell];
  const { mark, texts } = thisWrite.placeholders;
  return jsonShell.split(`"${mark}"`).flatMap((part, index) => (index < texts.length ? [part, texts[index]!] : [part]));
}

/** Serializes a value that may contain `JsonText` anywhere, as one string. */
export const writeJson = (value: unknown): string => jsonParts(value).join("");
