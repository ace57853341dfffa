/**
 * Writes JSON responses that contain stored JSON texts. Does not parse these texts, because a run's result of 6 MB may
 * be two million objects. Callers wrap each stored text in `JsonText`, and write the response with `serializeJson`.
 */
import { randomUUID } from "node:crypto";

/**
 * Stored JSON texts in one response. While the response is serialized, a random placeholder stands for each of them.
 */
class JsonTextPlaceholders {
  readonly mark = randomUUID();
  readonly texts: (string | Buffer)[] = [];
}

/**
 * State of the response that `serializeJsonParts` is serializing now; null if there is none. One variable is enough for all
 * responses, because `serializeJsonParts` is synchronous.
 */
let currentWrite: { placeholders: JsonTextPlaceholders | null } | null = null;

/**
 * Returns a JSON text as a string. `source` is a string, or UTF-8 bytes, which may be in memory that several threads
 * share.
 */
export const decodeJsonText = (source: string | Uint8Array): string =>
  typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString();

/**
 * Wraps a valid JSON text, so that a response can contain the text without parsing it. For a long text, pass a buffer
 * with its UTF-8 bytes.
 */
export class JsonText {
  constructor(readonly source: string | Buffer) {}

  get text(): string {
    return decodeJsonText(this.source);
  }

  /** Returns a placeholder while `serializeJsonParts` serializes a response. At other times, returns the parsed value. */
  toJSON(): unknown {
    if (!currentWrite) return JSON.parse(this.text);
    currentWrite.placeholders ??= new JsonTextPlaceholders();
    currentWrite.placeholders.texts.push(this.source);
    return currentWrite.placeholders.mark;
  }
}

/**
 * Serializes a value that may contain `JsonText` objects anywhere. Returns the text in several parts, because joining
 * megabytes takes time.
 */
export function serializeJsonParts(value: unknown): (string | Buffer)[] {
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

/** Serializes a value that may contain `JsonText` objects anywhere. Returns one string. */
export const serializeJson = (value: unknown): string => serializeJsonParts(value).join("");
