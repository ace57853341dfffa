/** Reads JSON and streams of events that a provider has sent: nothing of their shape is certain. */
import { isObject } from "../described.js";
import { AiError } from "./failure.js";

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
