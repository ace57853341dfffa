/**
 * Describes a cron expression in English, such as "At 09:30, Monday through Friday". First writes each field as a list of values: cronstrue
 * would describe `0 0 *\/1 * 1`, which fires daily, as "only on Monday".
 */
import cronstrue from "cronstrue";
import { type CronFields, firesEveryDay, parseCron } from "./cron-grammar.js";

/** Returns the description of a schedule. @param frequency cron expression that `checkFrequency` accepts */
export function describeFrequency(frequency: string): string {
  const fields = parseCron(frequency);
  if ("fault" in fields) throw new Error(`frequency ${fields.fault}`);
  const minutes = formatStep(fields.minutes, 60, 2) ?? formatList(fields.minutes, 60);
  const everyFewHours = fields.minutes.size === 1 ? formatStep(fields.hours, 24, 3) : null;
  const time = `${minutes} ${everyFewHours ?? formatList(fields.hours, 24)}`;
  const sentence = describeCron(`${time} * * *`);
  /** Describes the last three cron fields, without the time of day. */
  const describeDateFields = (dateFields: string) => describeCron(`${time} ${dateFields}`).slice(sentence.length);
  return (
    sentence + describeDays(fields, describeDateFields) + describeDateFields(`* ${formatList(fields.months, 12)} *`)
  );
}

/** Returns the text for the days of a schedule. If both day fields are restricted, cron runs on days that match one of them. */
function describeDays(fields: CronFields, describeDateFields: (days: string) => string): string {
  if (firesEveryDay(fields)) return "";
  const days = describeDateFields(`${formatList(fields.days, 31)} * *`);
  const weekdays = describeDateFields(`* * ${formatList(fields.weekdays, 7)}`);
  if (fields.isAnyDay || fields.isAnyWeekday) return days + weekdays;
  return `${days}, or ${weekdays.replace(/^, (only )?/, "")}`;
}

const describeCron = (expression: string) =>
  cronstrue.toString(expression, { use24HourTimeFormat: true, verbose: false });

/**
 * Returns the step `*\/n` if the values are exactly the multiples of n below `size`; otherwise null.
 * @param countMin minimum number of values
 */
function formatStep(values: ReadonlySet<number>, size: number, countMin: number): string | null {
  const step = size / values.size;
  const isEvenlySpaced =
    values.size >= countMin && step > 1 && Number.isInteger(step) && [...values].every((value) => value % step === 0);
  return isEvenlySpaced ? `*/${step}` : null;
}

/** Returns the values of a cron field as numbers and ranges; `*` if the field has all values. */
function formatList(values: ReadonlySet<number>, size: number): string {
  if (values.size === size) return "*";
  const sorted = [...values].sort((a, b) => a - b);
  const items: string[] = [];
  for (let first = 0; first < sorted.length; ) {
    let last = first;
    while (sorted[last + 1] === sorted[last]! + 1) last += 1;
    if (last - first >= 2) items.push(`${sorted[first]}-${sorted[last]}`);
    else items.push(...sorted.slice(first, last + 1).map(String));
    first = last + 1;
  }
  return items.join(",");
}
