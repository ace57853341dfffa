/** Parses cron expressions with five fields. The result has a set of numbers for each field. */
import { describeValue } from "./describe-value.js";

type NumberSet = ReadonlySet<number>;

/** Values of each field of a cron expression. `isAnyDay` and `isAnyWeekday` are true if the text of the field is just `*`. */
export interface CronFields {
  minutes: NumberSet;
  hours: NumberSet;
  days: NumberSet;
  months: NumberSet;
  weekdays: NumberSet;
  isAnyDay: boolean;
  isAnyWeekday: boolean;
}

type CronSets = [NumberSet, NumberSet, NumberSet, NumberSet, NumberSet];

interface FieldRange {
  name: string;
  min: number;
  max: number;
}

const CRON_FIELD_RANGES: readonly FieldRange[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12 },
  { name: "day of week", min: 0, max: 6 },
];

const TEXT_MAX_CHARACTERS = 255;

/**
 * Matches one item of a cron field: a number, a range or `*`. A range or `*` can have a step. A number cannot, because cron programs
 * interpret `5/15` differently.
 */
const FIELD_ITEM_PATTERN = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/;

const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Parses a cron expression (specification, Create parameters).
 * @returns the fields, or a `fault`: the second half of an error message, which the caller puts after "frequency"
 */
export function parseCron(text: string): CronFields | { fault: string } {
  if (text.length > TEXT_MAX_CHARACTERS) return { fault: `is longer than ${TEXT_MAX_CHARACTERS} characters` };
  const parts = text.split(" ");
  if (parts.length !== CRON_FIELD_RANGES.length) {
    return {
      fault: "must have five fields with one space between them: minute, hour, day of month, month, day of week",
    };
  }
  const valueSets = CRON_FIELD_RANGES.map((field, index) => parseField(parts[index]!, field));
  const fault = valueSets.find((values) => typeof values === "string");
  if (fault !== undefined) return { fault };
  const [minutes, hours, days, months, weekdays] = valueSets as CronSets;
  return { minutes, hours, days, months, weekdays, isAnyDay: parts[2] === "*", isAnyWeekday: parts[4] === "*" };
}

function parseField(text: string, field: FieldRange): NumberSet | string {
  const values = new Set<number>();
  for (const item of text.split(",")) {
    const firstFault = addItem(values, item, field);
    if (firstFault !== null) return `has ${describeValue(item)} for ${field.name}: ${firstFault}`;
  }
  return values;
}

function addItem(values: Set<number>, item: string, { min, max }: FieldRange): string | null {
  const match = FIELD_ITEM_PATTERN.exec(item);
  if (match === null) return "only numbers, *, lists, ranges and steps of ranges are allowed";
  const [, first, last, stepText] = match;
  if (first !== undefined && last === undefined && stepText !== undefined) return "a step needs a range or *";
  const firstValue = first === undefined ? min : Number(first);
  const lastValue = first === undefined ? max : Number(last ?? first);
  const stepValue = Number(stepText ?? 1);
  if (firstValue < min || lastValue > max || firstValue > lastValue)
    return `values must be ${min} to ${max}, and a range must start with the lower number`;
  if (stepValue < 1 || stepValue > max) return `a step must be 1 to ${max}`;
  for (let value = firstValue; value <= lastValue; value += stepValue) values.add(value);
  return null;
}

/**
 * True if the schedule includes every day of its months. If neither the day nor the weekday field is `*`, cron runs on days that match one
 * of the two.
 */
export function firesEveryDay({ days, weekdays, isAnyDay, isAnyWeekday }: CronFields): boolean {
  const hasAllDays = days.size === 31;
  const hasAllWeekdays = weekdays.size === 7;
  return isAnyDay || isAnyWeekday ? hasAllDays && hasAllWeekdays : hasAllDays || hasAllWeekdays;
}

export function firesEveryMinute(fields: CronFields): boolean {
  return fields.minutes.size === 60 && fields.hours.size === 24 && fields.months.size === 12 && firesEveryDay(fields);
}

/** True if the schedule ever starts a run: `0 0 31 2 *` never does, `0 0 29 2 *` does in leap years. */
export function canEverFire({ days, months, isAnyWeekday }: CronFields): boolean {
  if (!isAnyWeekday) return true;
  return [...months].some((month) => [...days].some((day) => day <= DAYS_OF_MONTH[month - 1]!));
}
