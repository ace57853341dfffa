/**
 * Parses the text of a large client run report. The result stays JSON text: parsing it could create two million objects.
 * Runs in a worker thread.
 */
import { JSON_MAX_DEPTH } from "../limits.js";
import { holdsInfinity, isObject } from "./described.js";
import { jsonFault, memberTexts } from "./json-scan.js";

/** Maximum lengths of an error's texts. Longer texts are truncated. */
export const ERROR_CHARACTERS = { name: 255, message: 10_000, stack: 50_000 } as const;

/** Members of a report that stay JSON text, because they can be large. */
const DATA_MEMBERS = ["payload", "result"];

/** Number of fields of `error` that are read. A report with more is rejected anyway, because it has an unknown field. */
const ERROR_FIELDS_MAX = 20;

/** Matches every text that can contain a number above the range of a double. Only such texts are parsed for a check. */
const MAY_BE_HUGE = /[eE]\+?\d{3}|\d{100}/;

export type LargeReport =
  | { fault: "invalid" | "deep" | "huge" }
  | { fault: null; texts: [name: string, json: string][]; fields: Record<string, unknown> };

/** Returns the error with its texts truncated, and without nested values. */
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
  // The limit is for the payload and the result, which are one level below the report.
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
