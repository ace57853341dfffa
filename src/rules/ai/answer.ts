/** What `Svc.AI` answers, whichever provider was asked. Types, and readers of JSON that a provider sent. */
import { isObject } from "../described.js";
import { AiError } from "./failure.js";
import type { ToolCall } from "./options.js";

export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

export interface Completion {
  message: { role: "assistant"; content: string };
  toolCalls: ToolCall[];
  usage: Usage;
  model: string;
  finishReason: string;
}

export type AiAnswer =
  | Completion
  | { parts: string[]; completion: Completion }
  | { vectors: number[][]; usage: Usage }
  | { images: { contentType: string; data: string }[] }
  | { text: string };

/** A request to a provider. `path` stands after the base URL. */
export interface ProviderRequest {
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

/** A provider's API: how a call is asked and its answer read. */
export interface ProviderApi {
  /** @throws AiError POLICY for what the provider does not offer */
  request(options: object, model: string, key: string): ProviderRequest;
  /** @throws AiError TRANSPORT for an answer of another form */
  read(options: object, model: string, body: Buffer): AiAnswer;
}

export const malformed = (what: string): AiError => new AiError("TRANSPORT", `the provider's answer has no ${what}`);

export function objectOf(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (isObject(value)) return value;
  } catch {
    // Falls through.
  }
  throw malformed("JSON object");
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const countOf = (value: unknown): number =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;

/** A member of a JSON value along a path; undefined where there is none. */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof step === "number") found = Array.isArray(found) ? found[step] : undefined;
    else found = isObject(found) && Object.hasOwn(found, step) ? found[step] : undefined;
  }
  return found;
}

/** Arguments of a tool call, which providers send as JSON text; the text itself where it is none. */
export function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return text;
  }
}

/** The data of each event of a stream (server-sent events). */
export function eventsOf(body: Buffer): unknown[] {
  const events: unknown[] = [];
  for (const block of body.toString("utf8").replaceAll("\r\n", "\n").split("\n\n")) {
    const lines = block.split("\n").filter((line) => line.startsWith("data:"));
    const data = lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    if (data === "" || data === "[DONE]") continue;
    try {
      events.push(JSON.parse(data));
    } catch {
      throw malformed("JSON in its stream");
    }
  }
  return events;
}

export const jsonRequest = (path: string, headers: Record<string, string>, body: object): ProviderRequest => ({
  path,
  headers: { ...headers, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});
