/** Converts between instants and the local time of an IANA time zone. Read this file if a schedule fails when the clock changes. */

const DAY_MS = 86_400_000;

/** Formatters by time zone. Creating one takes 50 times as long as formatting a time. */
const formatterByZone = new Map<string, Intl.DateTimeFormat>();

/** Returns the zone's UTC offset at an instant, in milliseconds. It is positive if the local time is ahead of UTC. */
export function getUtcOffsetMs(timeZone: string, instant: number): number {
  let formatter = formatterByZone.get(timeZone);
  if (formatter === undefined) {
    formatter = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
    formatterByZone.set(timeZone, formatter);
  }
  const wholeSecond = Math.floor(instant / 1000) * 1000;
  return Date.parse(`${formatter.format(wholeSecond).replace(" ", "T")}Z`) - wholeSecond;
}

/**
 * Returns the instants at which the zone's clock shows a local time, in order. There are two if the clock repeats this time, and none if
 * the clock skips it.
 * @param localMs local time, as the Unix time in milliseconds that it would be in UTC
 */
export function findInstantsOfLocalTime(timeZone: string, localMs: number): number[] {
  const offsets = new Set([getUtcOffsetMs(timeZone, localMs - DAY_MS), getUtcOffsetMs(timeZone, localMs + DAY_MS)]);
  const instants = [...offsets].map((offset) => localMs - offset);
  return instants.filter((instant) => getUtcOffsetMs(timeZone, instant) === localMs - instant).sort((a, b) => a - b);
}

/**
 * Returns the instant at which the clock continues after it has skipped this local time. Returns null if it has skipped the whole day, as
 * in Apia on 30 December 2011.
 * @param localMs local time for which {@link findInstantsOfLocalTime} returns no instant
 */
export function findInstantAfterSkippedTime(timeZone: string, localMs: number): number | null {
  const offsetBefore = getUtcOffsetMs(timeZone, localMs - DAY_MS);
  let earlier = localMs - DAY_MS - offsetBefore;
  let later = localMs + DAY_MS - getUtcOffsetMs(timeZone, localMs + DAY_MS);
  if (getUtcOffsetMs(timeZone, later) - offsetBefore >= DAY_MS) return null;
  while (later - earlier > 1000) {
    const middleTime = Math.floor((earlier + later) / 2000) * 1000;
    if (getUtcOffsetMs(timeZone, middleTime) === offsetBefore) earlier = middleTime;
    else later = middleTime;
  }
  return later;
}

/** Formats an instant as the zone's local time with its UTC offset: 2026-11-01T01:30:00-04:00. */
export function formatLocalTime(moment: Date, timeZone: string): string {
  const clockTime = new Date(moment.getTime() + getUtcOffsetMs(timeZone, moment.getTime())).toISOString().slice(0, 19);
  const zone = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" }).formatToParts(moment);
  const offset = zone.find(({ type }) => type === "timeZoneName")?.value.slice("GMT".length) || "+00:00";
  return `${clockTime}${offset}`;
}
