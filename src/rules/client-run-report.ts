/**
 * Parses a large report that a browser sends about a run, in a worker thread. The payload and the result of the run stay JSON text, because
 * parsing them could create two million objects.
 */
import { JSON_MAX_DEPTH } from "../limits.js";
import { containsInfinity, isObject, mayContainInfinity } from "./describe-value.js";
import { findJsonFault, readJsonFieldTexts } from "./json-scan.js";

/** Maximum numbers of characters in the name, message and stack of a run's error. Longer texts are truncated. */
export const CLIENT_RUN_ERROR_MAX_CHARACTERS = { name: 255, message: 10_000, stack: 50_000 } as const;

/** Fields of a report that stay JSON text, because their values can be large. */
const UNPARSED_FIELDS = ["payload", "result"];

/** Maximum number of fields of `error` that are read. An error with more fields is invalid anyway. */
const ERROR_FIELDS_MAX = 20;

/** Result of the parsing. `fault` is "invalid" for invalid JSON, "deep" if the JSON nests too deeply, "huge" if a number is too large. */
export type ParsedClientRunReport =
  | { fault: "invalid" | "deep" | "huge" }
  | { fault: null; texts: [name: string, json: string][]; fields: Record<string, unknown> };

/** Truncates the texts in the value of a field if it is an object, such as `error`. Nested objects become {}. */
function truncateObjectTexts(value: unknown): unknown {
  if (!isObject(value)) return value;
  const fields = Object.entries(value).slice(0, ERROR_FIELDS_MAX);
  return Object.fromEntries(
    fields.map(([name, value]) => {
      if (typeof value === "string") return [name, value.slice(0, CLIENT_RUN_ERROR_MAX_CHARACTERS.stack)];
      return [name, typeof value === "object" && value !== null ? {} : value];
    }),
  );
}

/** Parses a report. `texts` contains the payload and the result as JSON text, `fields` the values of all other fields. */
export function parseLargeClientRunReport(text: string): ParsedClientRunReport {
  // The payload and the result are one level below the report. Their limit is JSON_MAX_DEPTH, so the report may have one level more.
  const fault = findJsonFault(text, JSON_MAX_DEPTH + 1);
  if (fault !== null) return { fault };
  if (mayContainInfinity(text) && containsInfinity(JSON.parse(text))) return { fault: "huge" };
  const texts: [string, string][] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, json] of readJsonFieldTexts(text)) {
    if (UNPARSED_FIELDS.includes(name)) texts.push([name, json]);
    else Object.defineProperty(fields, name, { value: truncateObjectTexts(JSON.parse(json)), enumerable: true });
  }
  return { fault: null, texts, fields };
}
