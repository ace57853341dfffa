/** Validates the payload of a call, and reads the outcome of a run from its log entry. */
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import { containsInfinity, nestsDeeperThan } from "../../rules/describe-value.js";
import { readJsonFieldText, readJsonFieldTexts } from "../../rules/json-scan.js";
import type { JsonText } from "../../rules/json-text.js";
import type { LogEntry, RunOutcome, ScriptError } from "../records/execution-logs.js";

/** Returns the payload as JSON text; `{}` if the caller sent none. @throws PAYLOAD_INVALID */
export function toPayloadText(payload: unknown): string {
  if (payload === undefined || payload === null) return "{}";
  if (nestsDeeperThan(payload, JSON_MAX_DEPTH)) {
    throw new ActionError("PAYLOAD_INVALID", `payload must not nest deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (containsInfinity(payload))
    throw new ActionError("PAYLOAD_INVALID", "payload must not contain a number above 1.8e308 or below -1.8e308");
  if (typeof payload === "object" && !Array.isArray(payload)) return JSON.stringify(payload);
  const received = Array.isArray(payload) ? "an array" : `a ${typeof payload}`;
  throw new ActionError("PAYLOAD_INVALID", `payload must be a JSON object (got ${received})`);
}

export const readScriptError = (data: JsonText): ScriptError =>
  JSON.parse(readJsonFieldText(data.text, "error") ?? "{}") as ScriptError;

export function readRunOutcome({ type, data }: LogEntry): RunOutcome {
  if (type !== "app.task.completed") return { ok: false, error: readScriptError(data) };
  const members = readJsonFieldTexts(data.text);
  const result = readJsonFieldText(members.get("result") ?? "", "data");
  return { ok: true, data: result, ...(members.get("httpResponse") === "true" && { isResponse: true as const }) };
}
