/** Parses times in ISO 8601, and rejects days that do not exist. */
import { isCalendarDay } from "./csv-types.js";

/** Matches a time with a time zone. Seconds can be missing; fractions of a second have at most nine digits. */
const ISO_TIME_PATTERN = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Returns the Unix time in milliseconds of a text such as `2026-11-21T12:00:00Z`; NaN for any other value. */
export function parseIsoTime(value: unknown): number {
  const match = typeof value === "string" ? ISO_TIME_PATTERN.exec(value) : null;
  return match && isCalendarDay(match[1]!) ? Date.parse(match[0]) : Number.NaN;
}
