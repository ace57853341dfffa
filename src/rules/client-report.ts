/**
 * Parses the text of a large client run report. The result stays JSON text: parsing it could create two million objects.
 * Runs in a worker thread.
 */
import { JSON_MAX_DEPTH } from "../limits.js";
import { holdsInfinity, isObject } from "./described.js";
import { jsonFault, memberTexts } from "./json-scan.js";

/** Maximum lengths of an error's texts; longer ones are truncated. */
export const ERROR_CHARACTERS = { name: 255, message: 10_000, stack: 50_000 } as const;

/** Members of a report that stay JSON text, because they are data of the run. */
const DATA_MEMBERS = ["payload", "result"];

/** Maximum number of fields of `error` that are read. With an unknown field, the report is rejected. */
const ERROR_FIELDS_MAX = 20;

/** Matches every text that can contain a number above the range of a double; other texts need no further check. */
const MAY_BE_HUGE = /[eE]\+?\d{3}|\d{100}/;

export type LargeReport =
  | { fault: "invalid" | "deep" | "huge" }
  | { fault: null; texts: [name: string, json: string][]; fields: Record<string, unknown> };

/** An error with its texts truncated to the stored length. */
function truncateError(error: unknown): unknown {
  if (!isObject(error)) return error;
  const fields = Object.entries(error).slice(0, ERROR_FIELDS_MAX);
  return Object.fromEntries(
    fields.map(([name, value]) => {
      if (typeof value === "string") return [name, value.slice(0, ERROR_CHARACTERS.stack)];
      return [name, typeof value === "object" && value !== null ? {} : value];
    }),
  );
}

/** Returns the members of the report: payload and result as JSON texts, the others as values. */
export function readLargeReport(text: string): LargeReport {
  // The report itself is one level.
  const fault = jsonFault(text, JSON_MAX_DEPTH + 1);
  if (fault !== null) return { fault };
  if (MAY_BE_HUGE.test(text) && holdsInfinity(JSON.parse(text))) return { fault: "huge" };
  const texts: [string, string][] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, json] of memberTexts(text)) {
    if (DATA_MEMBERS.includes(name)) texts.push([name, json]);
    else Object.defineProperty(fields, name, { value: truncateError(JSON.parse(json)), enumerable: true });
  }
  return { fault: null, texts, fields };
}
