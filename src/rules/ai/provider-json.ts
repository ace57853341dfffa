/** Parses JSON and event streams of an AI provider. Checks every value, because a provider may send anything. */
import { isObject } from "../describe-value.js";
import { AiError } from "./failure.js";

export const createMalformedResponseError = (missing: string): AiError =>
  new AiError("TRANSPORT", `the response of the AI provider has no ${missing}`);

export const createIncompleteStreamError = (missing: string): AiError =>
  new AiError("TRANSPORT", `the stream of the AI provider ended before the response was complete (no ${missing})`);

export const createReportedFailureError = (): AiError =>
  new AiError("TRANSPORT", "the AI provider reported an error while it sent the response");

export function parseJsonObject(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (isObject(value)) return value;
  } catch {
    // Ignores the error: for a body that is not JSON, the next statement throws another error.
  }
  throw createMalformedResponseError("JSON object");
}

export const toTextOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

export const toCountOrZero = (value: unknown): number =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;

/** Maximum index of a part of an answer. An array with a much larger index would take seconds to read. */
const INDEX_MAX = 1_000;

/** Returns the index; 0 if the value is no positive whole number. @throws AiError TRANSPORT if the index exceeds INDEX_MAX */
export function parseAnswerPartIndex(value: unknown): number {
  const index = toCountOrZero(value);
  if (index > INDEX_MAX)
    throw new AiError(
      "TRANSPORT",
      `in the response of the AI provider, the index of a part must be at most ${INDEX_MAX} (got ${index})`,
    );
  return index;
}

/** Returns the value at a path of keys and indexes; undefined if there is none. */
export function getValueAtPath(value: unknown, ...path: (string | number)[]): unknown {
  let innerValue = value;
  for (const step of path) {
    if (typeof step === "number") innerValue = Array.isArray(innerValue) ? innerValue[step] : undefined;
    else innerValue = isObject(innerValue) && Object.hasOwn(innerValue, step) ? innerValue[step] : undefined;
  }
  return innerValue;
}

/** Parses the arguments of a tool call; an empty text means `{}`. Returns the text itself if it is not JSON. */
export function parseToolArguments(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}

/** Parses a stream of server-sent events, whose data are JSON. */
export class ServerSentEventReader {
  private readonly decoder = new TextDecoder();
  private rest = "";
  private data: string[] = [];

  /** Parses the next bytes. Returns the data of the events that end in them. @throws AiError TRANSPORT for data that is not JSON */
  push(bytes: Uint8Array): unknown[] {
    const text = this.decoder.decode(bytes, { stream: true });
    this.rest += text;
    if (!text.includes("\n")) return [];
    const lines = this.rest.split("\n");
    this.rest = lines.pop()!;
    return lines.flatMap((line) => this.parseEvents(line));
  }

  /** Must be called at the end of the stream. Returns the last event if no empty line followed it. */
  finish(): unknown[] {
    const last = this.rest + this.decoder.decode();
    this.rest = "";
    return [...this.parseEvents(last), ...this.parseEvents("")];
  }

  private parseEvents(input: string): unknown[] {
    const line = input.replace(/\r$/, "");
    if (line.startsWith("data:")) this.data.push(line.slice("data:".length).replace(/^ /, ""));
    if (line !== "") return [];
    const data = this.data.join("\n");
    this.data = [];
    if (data === "" || data === "[DONE]") return [];
    try {
      return [JSON.parse(data)];
    } catch {
      throw createMalformedResponseError("JSON in its stream");
    }
  }
}
