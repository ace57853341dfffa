/** Tests the descriptions of schedules: parses them back into minutes and days, and compares these with the expression. */
import { expect } from "chai";
import fc from "fast-check";
import { type CronFields, firesEveryDay, parseCron } from "../../src/rules/cron-grammar.js";
import { describeFrequency } from "../../src/rules/schedule-text.js";
import { caseCount } from "../harness/samples.js";

const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

describe("the description of a schedule", () => {
  const sentences: [string, string][] = [
    ["30 9 * * 1-5", "At 09:30, Monday through Friday"],
    ["0 0 */1 * 1", "At 00:00"],
    ["0 9 15 * */1", "At 09:00"],
    ["0 9 15 * 1", "At 09:00, on day 15 of the month, or on Monday"],
    ["*/15 * * * *", "Every 15 minutes"],
    ["*/30 * * * *", "Every 30 minutes"],
    ["0 */12 * * *", "At 00:00 and 12:00"],
    ["0 */6 * * *", "On the hour, every 6 hours"],
    ["0 0 1 */3 *", "At 00:00, on day 1 of the month, only in January, April, July, and October"],
    ["*/7 9 * * *", "At 0, 7, 14, 21, 28, 35, 42, 49, and 56 minutes past the hour, at 09:00"],
  ];
  for (const [frequency, sentence] of sentences) {
    it(`of ${frequency} is "${sentence}"`, () => {
      expect(describeFrequency(frequency)).to.equal(sentence);
    });
  }

  it("states exactly the minutes, hours, days and months of the expression, however it is written", () => {
    fc.assert(
      fc.property(expressions, (frequency) => {
        const fields = parseCron(frequency);
        if ("fault" in fields) throw new Error(`${frequency}: ${fields.fault}`);
        const sentence = describeFrequency(frequency);
        expect(readBack(sentence), `${frequency}: ${sentence}`).to.deep.equal(statement(fields));
      }),
      { numRuns: caseCount(2_000) },
    );
  });
});

interface ParsedSentence {
  times: string[];
  days: number[] | null;
  weekdays: number[] | null;
  isEitherDay: boolean;
  months: number[] | null;
}

const all = (size: number, first = 0) => Array.from({ length: size }, (_, index) => index + first);
const ordered = (values: Iterable<number>) => [...values].sort((a, b) => a - b);

function statement(fields: CronFields): ParsedSentence {
  const everyDay = firesEveryDay(fields);
  return {
    times: timesOf(ordered(fields.minutes), ordered(fields.hours)),
    days: everyDay || fields.isAnyDay || fields.days.size === 31 ? null : ordered(fields.days),
    weekdays: everyDay || fields.isAnyWeekday || fields.weekdays.size === 7 ? null : ordered(fields.weekdays),
    isEitherDay: !(everyDay || fields.isAnyDay || fields.isAnyWeekday),
    months: fields.months.size === 12 ? null : ordered(fields.months),
  };
}

const timesOf = (minutes: number[], hours: number[]) =>
  hours.flatMap((hour) => minutes.map((minute) => `${hour}:${minute}`));

function readList(text: string, names: string[] = []): number[] {
  const value = (word: string) => (names.includes(word) ? names.indexOf(word) : Number.parseInt(word, 10));
  return ordered(
    text.split(/,? and |, /).flatMap((item) => {
      const [first, last] = item.split(" through ").map(value) as [number, number?];
      return all((last ?? first) - first + 1, first);
    }),
  );
}

function readBack(sentence: string): ParsedSentence {
  let rest = sentence;
  const take = (pattern: RegExp): string[] | null => {
    const match = pattern.exec(rest);
    if (match !== null) rest = rest.slice(match[0].length);
    return match;
  };
  const times = readTimes(take);
  const days =
    take(/^, on day ([\d, andthroug]+?) of the month/) ?? take(/^, (between day )(\d+) and (\d+) of the month/);
  const dayText = days?.[3] === undefined ? days?.[1] : `${days[2]} through ${days[3]}`;
  const isEitherDay = take(/^, or /) !== null;
  if (isEitherDay) rest = `, ${rest}`;
  const [, weekdayText] =
    take(
      /^, (?:only )?(?:on )?((?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day(?:(?: through |,? and |, )(?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day)*)/,
    ) ?? [];
  const months = take(/^, (?:only in )?(.+)$/);
  expect(rest, sentence).to.equal("");
  return {
    times,
    days: dayText === undefined ? null : readList(dayText),
    weekdays: weekdayText === undefined ? null : readList(weekdayText, WEEKDAYS),
    isEitherDay,
    months: months === null ? null : readList(months[1]!, MONTHS).map((month) => month + 1),
  };
}

function readTimes(take: (pattern: RegExp) => string[] | null): string[] {
  const clock = take(/^At (\d\d:\d\d(?:(?:,? and |, )\d\d:\d\d)*)/);
  if (clock !== null) {
    return clock[1]!.split(/,? and |, /).map((time) => `${Number(time.slice(0, 2))}:${Number(time.slice(3))}`);
  }
  const span = take(/^Every minute between (\d\d):(\d\d) and \d\d:(\d\d)/);
  if (span !== null) return timesOf(readList(`${span[2]} through ${span[3]}`), [Number(span[1])]);
  const minutes = readMinutes(take);
  const every = take(/^, every (\d+) hours/);
  if (every !== null)
    return timesOf(
      minutes,
      all(24).filter((hour) => hour % Number(every[1]) === 0),
    );
  const between = take(/^, between (\d\d):00 and (\d\d):(?:59|00)/);
  if (between !== null) return timesOf(minutes, readList(`${between[1]} through ${between[2]}`));
  const at = take(/^, at (\d\d:00(?: through \d\d:(?:59|00))?(?:(?:,? and |, )\d\d:00(?: through \d\d:(?:59|00))?)*)/);
  return timesOf(minutes, at === null ? all(24) : readList(at[1]!));
}

function readMinutes(take: (pattern: RegExp) => string[] | null): number[] {
  if (take(/^Every minute/) !== null) return all(60);
  if (take(/^(Every hour|On the hour)/) !== null) return [0];
  const step = take(/^Every (\d+) minutes/);
  if (step !== null) return all(60).filter((minute) => minute % Number(step[1]) === 0);
  const list =
    take(/^(?:Minutes|At) ([\d, andthroug]+?) minutes? past the hour/) ??
    take(/^Minutes (\d+ through \d+) past the hour/);
  return readList(list![1]!);
}

const item = (min: number, max: number) =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }), fc.integer({ min: 1, max }), fc.nat(4))
    .map(([a, b, step, form]) => {
      const range = `${Math.min(a, b)}-${Math.max(a, b)}`;
      return ["*", `*/${step}`, `${a}`, range, `${range}/${step}`][form]!;
    });
const field = (min: number, max: number) =>
  fc.array(item(min, max), { minLength: 1, maxLength: 3 }).map((items) => items.join(","));
const expressions = fc
  .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
  .map((fields) => fields.join(" "));
