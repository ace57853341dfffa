/**
 * Writes JSON responses that contain stored JSON texts without parsing them: a run's result of 6 MB may be two million objects. Callers
 * wrap each stored text in `JsonText`, and write the response with `serializeJson`.
 */
import { randomUUID } from "node:crypto";

/** Stored JSON texts of one response, in order. While the response is serialized, `placeholder` stands in place of each of them. */
class JsonTextPlaceholders {
  readonly placeholder = randomUUID();
  readonly texts: (string | Buffer)[] = [];
}

/** The response that is being serialized; null if none is. One variable is enough, because `serializeJsonParts` is synchronous. */
let currentSerialization: { placeholders: JsonTextPlaceholders | null } | null = null;

/** Returns a JSON text as a string. `source` is a string, or its UTF-8 bytes. */
export const decodeJsonText = (source: string | Uint8Array): string =>
  typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString();

/** Wraps a valid JSON text, so that a response can contain it without parsing. For a long text, pass a buffer with its UTF-8 bytes. */
export class JsonText {
  constructor(readonly source: string | Buffer) {}

  get text(): string {
    return decodeJsonText(this.source);
  }

  /** Returns a placeholder while `serializeJsonParts` runs, otherwise the parsed value. */
  toJSON(): unknown {
    if (!currentSerialization) return JSON.parse(this.text);
    currentSerialization.placeholders ??= new JsonTextPlaceholders();
    currentSerialization.placeholders.texts.push(this.source);
    return currentSerialization.placeholders.placeholder;
  }
}

/** Serializes a value that may contain `JsonText` objects. Returns the text in parts, because joining megabytes takes time. */
export function serializeJsonParts(value: unknown): (string | Buffer)[] {
  const outerSerialization = currentSerialization;
  const newSerialization: { placeholders: JsonTextPlaceholders | null } = { placeholders: null };
  currentSerialization = newSerialization;
  let jsonTemplate: string;
  try {
    jsonTemplate = JSON.stringify(value);
  } finally {
    currentSerialization = outerSerialization;
  }
  if (!newSerialization.placeholders) return [jsonTemplate];
  const { placeholder, texts } = newSerialization.placeholders;
  return jsonTemplate
    .split(`"${placeholder}"`)
    .flatMap((part, index) => (index < texts.length ? [part, texts[index]!] : [part]));
}

export const serializeJson = (value: unknown): string => serializeJsonParts(value).join("");
