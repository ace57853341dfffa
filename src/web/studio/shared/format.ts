/** Formats times, durations, sizes and values for people. */

const TIME_UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

const relativeFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const absoluteFormat = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
  hourCycle: "h23",
});
const TIME_OF_DAY_FORMAT = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;
const timeFormat = new Intl.DateTimeFormat(undefined, {
  ...TIME_OF_DAY_FORMAT,
});

/**
 * Returns the distance of a time from now, such as "5 min. ago" or "in 3 days".
 * @param iso time in ISO 8601 @param nearText text for a time that is less than a minute away
 */
export function formatAge(iso: string, nearText = "just now"): string {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  const unit = TIME_UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit ? relativeFormat.format(Math.round(seconds / unit[1]), unit[0]) : nearText;
}

export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns a number with its noun in singular or plural, such as "3 runs". */
export const formatCount = (count: number, singular: string, plural: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? singular : plural}`;

export const formatExactTime = (iso: string): string => absoluteFormat.format(new Date(iso));

/** Returns the time of day, with the date before it if it is not today. */
export function formatTime(iso: string): string {
  const date = new Date(iso);
  return date.toDateString() === new Date().toDateString() ? timeFormat.format(date) : absoluteFormat.format(date);
}

const dayAndTimeFormat = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  ...TIME_OF_DAY_FORMAT,
});

/** Returns the time for a table column: without the year if it is the current year, and without the date if it is today. */
export function formatColumnTime(iso: string): string {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  return isThisYear && date.toDateString() !== new Date().toDateString()
    ? dayAndTimeFormat.format(date)
    : formatTime(iso);
}

const localTimeFormat = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  year: "numeric",
  month: "short",
  day: "numeric",
  ...TIME_OF_DAY_FORMAT,
  timeZone: "UTC",
});

/** Formats a time as the clocks of its time zone show it, followed by that zone's offset. @param local ISO 8601 with an offset from UTC */
export function formatTimeWithZoneOffset(local: string): string {
  const localText = local.slice(0, "2026-01-01T00:00:00".length);
  return `${localTimeFormat.format(new Date(`${localText}Z`))} (UTC${local.slice(-"+00:00".length)})`;
}

/** Returns the time in this time zone, such as "Fri, Nov 27, 03:00". The text does not contain the zone, so the caller must show it. */
export function formatTimeInZone(iso: string, timeZone: string): string {
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

export function formatDuration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** Returns a value as indented JSON text. Returns "undefined" for undefined, which JSON cannot represent. */
export function formatJson(value: unknown): string {
  return value === undefined ? "undefined" : JSON.stringify(value, null, 2);
}

/** Returns a size in the largest unit in which the number is at least 1, such as "1.5 MB". */
export function formatBytes(bytes: number): string {
  const unitIndex = Math.min(4, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** unitIndex;
  return `${unitIndex === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${["B", "KB", "MB", "GB", "TB"][unitIndex]}`;
}
