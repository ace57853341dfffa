/**
 * Writes responses that contain stored JSON texts, without parsing them, because a run's result of 6 MB may be two million objects. Wrap a
 * stored text in `JsonText`, and write the response with `writeJson`.
 */
import { randomUUID } from "node:crypto";

/** JSON texts of the current response. A random placeholder stands for each of them while the response is serialized. */
class JsonTextPlaceholders {
  readonly mark = randomUUID();
  readonly texts: (string | Buffer)[] = [];
}

/**
 * State of the response that `writeJsonParts` serializes at the moment; null at all other times. One variable is enough for all responses,
 * because `writeJsonParts` is synchronous.
 */
let currentWrite: { placeholders: JsonTextPlaceholders | null } | null = null;

/** Returns the JSON text as a string. `source` may be its UTF-8 bytes, also in memory that several threads share. */
export const decodeJsonText = (source: string | Uint8Array): string =>
  typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString();

/** Wraps valid JSON text, so that a response can contain it without parsing it. A long text can be a buffer with UTF-8 bytes. */
export class JsonText {
  constructor(readonly source: string | Buffer) {}

  get text(): string {
    return decodeJsonText(this.source);
  }

  /** Returns a placeholder while `writeJsonParts` serializes a response; otherwise the parsed value. */
  toJSON(): unknown {
    if (!currentWrite) return JSON.parse(this.text);
    currentWrite.placeholders ??= new JsonTextPlaceholders();
    currentWrite.placeholders.texts.push(this.source);
    return currentWrite.placeholders.mark;
  }
}

/** Serializes a value that may contain `JsonText` anywhere. Returns several parts of one text, because joining megabytes takes time. */
export function writeJsonParts(value: unknown): (string | Buffer)[] {
  const outerWrite = currentWrite;
  const thisWrite: { placeholders: JsonTextPlaceholders | null } = { placeholders: null };
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
export const writeJson = (value: unknown): string => writeJsonParts(value).join("");
