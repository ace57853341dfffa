/** Formats times, durations and values for people. */

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const TIME_OF_DAY = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;
const clock = new Intl.DateTimeFormat(undefined, {
  ...TIME_OF_DAY,
});

/** @param iso ISO 8601 */
export function ago(iso: string): string {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : "just now";
}

/** Returns a number with its noun. @param many plural of the noun */
export const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const exact = (iso: string): string => absolute.format(new Date(iso));

/** Returns the time of day. For another day than today, the date is in front of it. */
export function moment(iso: string): string {
  const date = new Date(iso);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : absolute.format(date);
}

const dayClock = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  ...TIME_OF_DAY,
});

/** Returns the time for a table column, without the year if it is the current one. */
export function stamp(iso: string): string {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  return isThisYear && date.toDateString() !== new Date().toDateString() ? dayClock.format(date) : moment(iso);
}

const wallClock = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  year: "numeric",
  month: "short",
  day: "numeric",
  ...TIME_OF_DAY,
  timeZone: "UTC",
});

/** Returns the local time in a time zone. @param local ISO 8601 with the zone's offset from UTC */
export function wallTime(local: string): string {
  const wall = local.slice(0, "2026-01-01T00:00:00".length);
  return `${wallClock.format(new Date(`${wall}Z`))} (UTC${local.slice(-"+00:00".length)})`;
}

/** Returns day and time in a time zone, such as "Fri, Nov 27, 03:00". The caller shows the name of the zone. */
export function inZone(iso: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat(undefined, {
    weekday: "short",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZone,
  });
  return format.format(new Date(iso));
}

export function lasted(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** Returns formatted JSON; `undefined` becomes words. */
export function shown(value: unknown): string {
  return value === undefined ? "undefined" : JSON.stringify(value, null, 2);
}

/** Returns a size in the largest unit in which the number is at least 1. */
export function sized(bytes: number): string {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${["B", "KB", "MB", "GB", "TB"][power]}`;
}

const isName = (value: unknown) => typeof value !== "object";

const valueInWords = (value: unknown): string => {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.every(isName) ? value.join(", ") : JSON.stringify(value);
};

/** Returns the details of an audit log entry without null values: `{"keys": ["a", "b"]}` becomes `keys a, b`. */
export function inWords(data: unknown): string {
  if (typeof data !== "object" || data === null) return "";
  return Object.entries(data)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${valueInWords(value)}`)
    .join(" · ");
}
