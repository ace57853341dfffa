/**
 * When an action fires: which expressions and zones are accepted, and the ticks that follow. Keeps no time and no row.
 *
 * The rule for clock changes, which is croner 11's. An expression is matched against the wall clock of its time zone.
 * - A single time of day (`30 2 * * *`) fires once on every day that the zone has: one that the clock skips when it goes
 *   forward fires as soon as the clock goes on (03:00), one that the clock repeats when it goes back fires the first time.
 * - Every other expression (`0,30 * * * *`, `0 1,2 * * *`) fires whenever the clock shows a match: not at all in a
 *   skipped span, twice in a repeated one.
 * - A day that a zone leaves out (Apia, 30 December 2011) has no ticks.
 */
import { Cron } from "croner";
import cronstrue from "cronstrue";
import { ActionError, type Status } from "../errors.js";
import { everFires, firesEveryMinute, parseCron } from "./cron-grammar.js";
import { described } from "./described.js";
import links from "./time-zone-links.json" with { type: "json" };

export interface ScheduleFault {
  status: Extract<Status, "FREQUENCY_INVALID" | "FREQUENCY_TOO_FREQUENT" | "TIMEZONE_INVALID">;
  message: string;
}

/**
 * Intl takes abbreviations, any case and ICU's own inventions, and answers with another name than it was asked for, so
 * it cannot say whether a name is spelled rightly: `time-zone-links.json` has the IANA names beside its own.
 */
const TIME_ZONES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf("timeZone"), ...links, "UTC"]);

/** Why a frequency is refused (specification, Validation; contract, section 4), or null. */
export function frequencyFault(value: unknown): ScheduleFault | null {
  const invalid = (why: string): ScheduleFault => ({
    status: "FREQUENCY_INVALID",
    message: `frequency must be a cron expression of five fields; ${described(value)} ${why}`,
  });
  if (typeof value !== "string") return invalid("came");
  const fields = parseCron(value);
  if ("fault" in fields) return invalid(fields.fault);
  if (firesEveryMinute(fields)) {
    const message = `frequency must not fire every minute; ${described(value)} does`;
    return { status: "FREQUENCY_TOO_FREQUENT", message };
  }
  return everFires(fields) ? null : invalid("names days that no month of its has");
}

/** Why a time zone is refused (specification, Create parameters: a full IANA name), or null. */
export function timezoneFault(value: unknown): ScheduleFault | null {
  if (typeof value === "string" && TIME_ZONES.has(value) && isKnownToIntl(value)) return null;
  const message = `timezone must be a full IANA name such as Europe/Berlin, or UTC; ${described(value)} came`;
  return { status: "TIMEZONE_INVALID", message };
}

/** @throws ActionError FREQUENCY_INVALID or FREQUENCY_TOO_FREQUENT */
export function checkFrequency(value: unknown): asserts value is string {
  raise(frequencyFault(value));
}

/** @throws ActionError TIMEZONE_INVALID */
export function checkTimezone(value: unknown): asserts value is string {
  raise(timezoneFault(value));
}

/**
 * The next ticks strictly after `from`, soonest first: fewer than `count` only past the year 3000.
 * @param frequency and @param timezone as checked by {@link checkFrequency} and {@link checkTimezone}
 */
export function nextRuns(frequency: string, timezone: string, from: Date, count: number): Date[] {
  // A fresh options object each time: croner writes into it.
  return new Cron(frequency, { timezone, mode: "5-part" }).nextRuns(count, from);
}

/** The expression as a plain English sentence: "At 09:30, Monday through Friday". */
export function describeFrequency(frequency: string): string {
  return cronstrue.toString(frequency, { use24HourTimeFormat: true, verbose: false });
}

/** A moment on the wall clock of a zone, with its offset: 2026-11-01T01:30:00-04:00. */
export function localTime(moment: Date, timeZone: string): string {
  const clock = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(moment);
  const zone = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" }).formatToParts(moment);
  const offset = zone.find(({ type }) => type === "timeZoneName")?.value.slice("GMT".length) || "+00:00";
  return `${clock.replace(" ", "T")}${offset}`;
}

function isKnownToIntl(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

function raise(fault: ScheduleFault | null): void {
  if (fault !== null) throw new ActionError(fault.status, fault.message);
}
