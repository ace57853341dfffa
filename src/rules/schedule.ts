/**
 * Validates cron expressions and time zones, and computes ticks: the times at which a schedule starts a run. Uses croner only in UTC. With
 * a time zone, croner omits a daily start in the last hour of a day if the clock skips this hour (Nuuk, 23:00 to 24:00).
 */
import { Cron } from "croner";
import { ActionError, type Status } from "../errors.js";
import { canEverFire, firesEveryMinute, parseCron } from "./cron-grammar.js";
import { describeValue } from "./describe-value.js";
import timeZoneLinks from "./time-zone-links.json" with { type: "json" };
import { findInstantAfterSkippedTime, findInstantsOfLocalTime, getUtcOffsetMs } from "./zone-clock.js";

export interface ScheduleFault {
  status: Extract<Status, "FREQUENCY_INVALID" | "FREQUENCY_TOO_FREQUENT" | "TIMEZONE_INVALID">;
  message: string;
}

/** Valid names of time zones. `supportedValuesOf` omits some IANA names; time-zone-links.json contains them. */
const TIME_ZONES: ReadonlySet<string> = new Set([...Intl.supportedValuesOf("timeZone"), ...timeZoneLinks, "UTC"]);

/** Returns the reason why a cron expression is invalid (specification, Validation); null if it is valid. */
export function findFrequencyFault(value: unknown): ScheduleFault | null {
  const createFault = (reason: string): ScheduleFault => ({
    status: "FREQUENCY_INVALID",
    message: `frequency must be a cron expression of five fields${reason} (got ${describeValue(value)})`,
  });
  if (typeof value !== "string") return createFault("");
  const fields = parseCron(value);
  if ("fault" in fields) return createFault(`, but it ${fields.fault}`);
  if (firesEveryMinute(fields)) {
    const message = `frequency must not fire every minute (got ${describeValue(value)})`;
    return { status: "FREQUENCY_TOO_FREQUENT", message };
  }
  return canEverFire(fields) ? null : createFault(", but none of its months has one of its days");
}

/** Returns the reason why a time zone is invalid (specification: it must be a full IANA name); null if it is valid. */
export function findTimezoneFault(value: unknown): ScheduleFault | null {
  if (typeof value === "string" && TIME_ZONES.has(value) && isKnownToIntl(value)) return null;
  const message = `timezone must be a full IANA name such as Europe/Berlin, or UTC (got ${describeValue(value)})`;
  return { status: "TIMEZONE_INVALID", message };
}

/** @throws ActionError FREQUENCY_INVALID or FREQUENCY_TOO_FREQUENT */
export function checkFrequency(value: unknown): asserts value is string {
  throwFault(findFrequencyFault(value));
}

/** @throws ActionError TIMEZONE_INVALID */
export function checkTimezone(value: unknown): asserts value is string {
  throwFault(findTimezoneFault(value));
}

/**
 * Returns the next `count` start times of a schedule after `from`, in order; fewer if there are no more before the year 3000. A schedule
 * with one time of day starts at most once a day. If the clock skips this time, the schedule starts when the clock continues. Any other
 * schedule starts whenever the clock shows a matching time: not in a skipped hour, and twice in a repeated hour.
 */
export function computeNextTicks(frequency: string, timezone: string, from: Date, count: number): Date[] {
  const start = from.getTime();
  const cron = new Cron(frequency, { timezone: "UTC", mode: "5-part" });
  const isDaily = firesOncePerDay(frequency);
  const ticks: number[] = [];
  let wallTime = cron.nextRun(new Date(start + getSmallerOffsetNear(timezone, start)));
  for (; wallTime !== null; wallTime = cron.nextRun(wallTime)) {
    const instants = isDaily
      ? findInstantsOfDailyTime(timezone, wallTime.getTime())
      : findInstantsOfLocalTime(timezone, wallTime.getTime());
    // If the clock repeats an hour, the loop does not find its ticks in order. So it ends only at a tick after the last one to return.
    if (ticks.length >= count && instants.length > 0 && instants[0]! > ticks[count - 1]!) break;
    ticks.push(...instants.filter((instant) => instant > start));
    ticks.sort((a, b) => a - b);
  }
  return ticks.slice(0, count).map((tick) => new Date(tick));
}

/**
 * Returns the smaller of two UTC offsets of the zone in milliseconds: at `start`, and a day later. With the larger offset,
 * `computeNextTicks` would begin at a later local time. If the clock repeats an hour, it would then miss ticks.
 */
function getSmallerOffsetNear(timezone: string, start: number): number {
  return Math.min(getUtcOffsetMs(timezone, start), getUtcOffsetMs(timezone, start + 86_400_000));
}

function firesOncePerDay(frequency: string): boolean {
  const fields = parseCron(frequency);
  return !("fault" in fields) && fields.minutes.size === 1 && fields.hours.size === 1;
}

function findInstantsOfDailyTime(timezone: string, wallTime: number): number[] {
  const [first] = findInstantsOfLocalTime(timezone, wallTime);
  const instant = first ?? findInstantAfterSkippedTime(timezone, wallTime);
  return instant === null ? [] : [instant];
}

function isKnownToIntl(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

function throwFault(fault: ScheduleFault | null): void {
  if (fault !== null) throw new ActionError(fault.status, fault.message);
}
