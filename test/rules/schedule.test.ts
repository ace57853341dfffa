/** Which cron expressions and time zones are accepted, and the ticks that follow, also across clock changes. */
import { expect } from "chai";
import fc from "fast-check";
import { parseCron } from "../../src/rules/cron-grammar.js";
import { checkFrequency, checkTimezone, describeFrequency, nextRuns } from "../../src/rules/schedule.js";
import { refusal } from "./refusal.js";

const BAD_FREQUENCIES: unknown[] = [
  ...[
    "",
    " ",
    "*",
    "* *",
    "* * *",
    "* * * *",
    "* * * * * *",
    "0 * * * * *",
    "0 0 9 * * * 2027",
    "0 9 * *",
    "0 9 * * * *",
  ],
  ...["@daily", "@hourly", "@yearly", "@annually", "@monthly", "@weekly", "@midnight", "@reboot", "@every 5m", "daily"],
  ...["60 * * * *", "99 * * * *", "-1 * * * *", "* 24 * * *", "* -1 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 * 0 *"],
  ...["0 0 * 13 *", "0 0 * * 7", "0 0 * * 8", "0 0 * * -1", "0 0 * * 0-7", "0 0 * * 1,7", "0 100 * * *", "005 * * * *"],
  ...["*/0 * * * *", "0 */0 * * *", "0-30/0 * * * *", "*/60 * * * *", "*/61 * * * *", "0 */24 * * *", "0 0 */32 * *"],
  ...[
    "0 0 * */13 *",
    "0 0 * * */7",
    "*/ * * * *",
    "/5 * * * *",
    "*/-5 * * * *",
    "*/1.5 * * * *",
    "*/5/5 * * * *",
    "*/* * * * *",
  ],
  ...["5/15 * * * *", "0 9/2 * * *", "10-5 * * * *", "0 17-9 * * *", "0 0 20-10 * *", "0 0 * 12-1 *", "0 0 * * 5-1"],
  ...[
    "1- * * * *",
    "-5 * * * *",
    "1-2-3 * * * *",
    "1..5 * * * *",
    "1,,2 * * * *",
    ",1 * * * *",
    "1, * * * *",
    ", * * * *",
  ],
  ...[
    "0 0 * * MON",
    "0 0 * * mon",
    "0 0 * * SUN-SAT",
    "0 0 * * MON-FRI",
    "0 0 * JAN *",
    "0 0 * jan-mar *",
    "0 0 * * Monday",
  ],
  ...[
    "0 0 L * *",
    "0 0 * * L",
    "0 0 * * 5L",
    "0 0 LW * *",
    "0 0 15W * *",
    "0 0 W * *",
    "0 0 * * 5#2",
    "0 0 * * 1#1",
    "0 0 L-3 * *",
  ],
  ...[
    "0 0 ? * *",
    "0 0 * * ?",
    "? * * * *",
    "0 0 * * +1",
    "0 0 1 * +MON",
    "+5 * * * *",
    "H * * * *",
    "H/15 * * * *",
    "~ 0 * * *",
  ],
  ...[
    " 0 9 * * *",
    "0 9 * * * ",
    "0  9 * * *",
    "0\t9 * * *",
    "0 9 * * *\n",
    "0 9\n* * *",
    "0\u00a09 * * *",
    "\u20030 9 * * *",
  ],
  ...[
    "a b c d e",
    "x * * * *",
    "* * * * x",
    "0x5 * * * *",
    "1e1 * * * *",
    "5.0 * * * *",
    "٥ * * * *",
    "５ * * * *",
    "½ * * * *",
  ],
  ...[
    "2026-01-01T00:00:00Z",
    "2026-01-01 00:00:00",
    "every minute",
    "* * * * * UTC",
    "CRON_TZ=UTC 0 9 * * *",
    "0 9 * * *;",
    "null",
  ],
  ...[
    "0 9 * * *#comment",
    "(0) 9 * * *",
    "[0] 9 * * *",
    "{0} 9 * * *",
    "0|1 9 * * *",
    "!5 * * * *",
    "\0 * * * *",
    "0 9 * * \ud800",
  ],
  ...[
    "0 0 31 2 *",
    "0 0 30 2 *",
    "0 0 30,31 2 *",
    "0 0 31 4,6,9,11 *",
    "*/5 * 31 2,4 *",
    "* * 30-31 2 *",
    "0 0 31 */2 2,",
    "0 0 31 6 *",
  ],
  ...[null, undefined, 5, true, {}, [], ["0 9 * * *"], `0${",0".repeat(300)} * * * *`, "* ".repeat(100_000)],
];

const TOO_FREQUENT = [
  "* * * * *",
  "*/1 * * * *",
  "0-59 * * * *",
  "*,5 * * * *",
  "0-59/1 0-23 1-31 1-12 0-6",
  "0-29,30-59 * * * *",
  "*/2,1-59/2 * * * *",
  "* */1 * * *",
  "* 0-11,12-23 * * *",
  "* * 1-31 * *",
  "* * */1 * *",
  "* * * 1-12 *",
  "* * * */1 *",
  "* * * * 0-6",
  "* * * * */1",
  "* * * * 0,1,2,3,4,5,6",
  "* * 1 * 0-6",
  "* * 1-31 * 1",
  "* * */1 * 5",
];

const BAD_TIMEZONES: unknown[] = [
  ...[
    "",
    " ",
    "EST",
    "MST",
    "HST",
    "CET",
    "EET",
    "WET",
    "MET",
    "PST",
    "CST",
    "IST",
    "BST",
    "CEST",
    "EDT",
    "JST",
    "GMT",
    "Z",
    "UCT",
  ],
  ...[
    "utc",
    "Utc",
    "gmt",
    "UTC+1",
    "UTC+01:00",
    "UTC-5",
    "GMT+5",
    "GMT-0",
    "GMT+0",
    "GMT0",
    "+05:00",
    "-08:00",
    "+0530",
    "05:00",
    "+00:00",
  ],
  ...[
    "EST5EDT",
    "CST6CDT",
    "PST8PDT",
    "MST7MDT",
    "Japan",
    "Cuba",
    "Egypt",
    "Iran",
    "Israel",
    "Turkey",
    "GB",
    "NZ",
    "PRC",
    "ROK",
    "Zulu",
  ],
  ...[
    "europe/berlin",
    "EUROPE/BERLIN",
    "Europe/berlin",
    "europe/Berlin",
    "america/new_york",
    "America/new_york",
    "US/eastern",
    "asia/kolkata",
  ],
  ...[
    "etc/utc",
    "Etc/Utc",
    "Etc/gmt+5",
    "Europe/Atlantis",
    "Mars/Olympus",
    "Europe",
    "Europe/",
    "/Berlin",
    "Europe/Berlin/",
    "Europe//Berlin",
  ],
  ...[
    " Europe/Berlin",
    "Europe/Berlin ",
    "Europe/Berlin\n",
    "Europe/Berlin\0",
    "Europe\\Berlin",
    "Europe.Berlin",
    "Europe Berlin",
    "New York",
  ],
  ...[
    "America/New York",
    "America/NewYork",
    "Berlin",
    "Etc/Unknown",
    "Etc/GMT-15",
    "Etc/GMT+13",
    "posix/Europe/Berlin",
    "right/UTC",
    "localtime",
  ],
  ...[
    "SystemV/EST5",
    "SystemV/PST8PDT",
    "Factory",
    "local",
    "system",
    "constructor",
    "__proto__",
    "toString",
    "\ud800",
    "../etc/passwd",
  ],
  ...[null, undefined, 0, 60, true, {}, [], ["UTC"], "Europe/Berlin".repeat(1000)],
];

const shown = (value: unknown) => String(JSON.stringify(value)).slice(0, 50);

describe("schedule: what is refused", () => {
  it("counts at least 150 bad frequencies and time zones, each once", () => {
    expect(new Set(BAD_FREQUENCIES).size).to.equal(BAD_FREQUENCIES.length);
    expect(new Set(BAD_TIMEZONES).size).to.equal(BAD_TIMEZONES.length);
    expect(BAD_FREQUENCIES.length + TOO_FREQUENT.length + BAD_TIMEZONES.length).to.be.at.least(150);
  });
  for (const frequency of BAD_FREQUENCIES) {
    it(`FREQUENCY_INVALID: ${shown(frequency)}`, () => {
      expect(refusal("FREQUENCY_INVALID", () => checkFrequency(frequency))).to.have.length.below(300);
    });
  }
  for (const frequency of TOO_FREQUENT) {
    it(`FREQUENCY_TOO_FREQUENT: ${frequency}`, () => {
      refusal("FREQUENCY_TOO_FREQUENT", () => checkFrequency(frequency));
    });
  }
  for (const timezone of BAD_TIMEZONES) {
    it(`TIMEZONE_INVALID: ${shown(timezone)}`, () => {
      expect(refusal("TIMEZONE_INVALID", () => checkTimezone(timezone))).to.have.length.below(300);
    });
  }
});

describe("schedule: what is accepted", () => {
  it("takes each name that the IANA database has as Area/Place, links too, and UTC", () => {
    const links = [
      "Europe/Kiev",
      "Asia/Calcutta",
      "Asia/Kolkata",
      "US/Eastern",
      "Etc/UTC",
      "Etc/GMT+5",
      "America/Port-au-Prince",
    ];
    for (const name of [...Intl.supportedValuesOf("timeZone"), ...links, "Europe/Kyiv", "Asia/Ho_Chi_Minh", "UTC"]) {
      checkTimezone(name);
      expect(nextRuns("0 12 * * *", name, new Date("2026-06-01T00:00:00Z"), 1), name).to.have.length(1);
    }
  });

  it("takes nearly every minute, a minute of one hour, and a day that comes every four years", () => {
    for (const frequency of [
      "1-59 * * * *",
      "* 9 * * *",
      "* * * * 1",
      "* * 31 * *",
      "0 0 29 2 *",
      "0 0 31 2 1",
      "05 09 * * *",
    ]) {
      checkFrequency(frequency);
      expect(nextRuns(frequency, "UTC", new Date("2026-01-01T00:00:00Z"), 2), frequency).to.have.length(2);
    }
  });

  it("means either day field where both are restricted", () => {
    const ticks = nextRuns("0 0 13 * 5", "UTC", new Date("2026-01-01T00:00:00Z"), 4);
    expect(ticks.map((tick) => tick.getUTCDate())).to.deep.equal([2, 9, 13, 16]);
  });

  it("says what an expression means in a plain sentence", () => {
    expect(describeFrequency("30 9 * * 1-5")).to.equal("At 09:30, Monday through Friday");
  });

  it("runs by croner exactly the minutes that the checked fields name", () => {
    fc.assert(fc.property(expressions, fc.integer({ min: 0, max: 40_000_000 }), sameMinutes), { numRuns: 400 });
  });
});

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

/** Walks minute by minute from a moment of 1970 to 2046 and compares with croner, as far as three days. */
function sameMinutes(frequency: string, minute: number): void {
  const fields = parseCron(frequency);
  if ("fault" in fields) throw new Error(`${frequency}: ${fields.fault}`);
  expect(describeFrequency(frequency)).to.be.a("string").and.not.equal("");
  const matches = (at: Date): boolean => {
    const day = fields.days.has(at.getUTCDate());
    const weekday = fields.weekdays.has(at.getUTCDay());
    const either = fields.anyDay || fields.anyWeekday ? day && weekday : day || weekday;
    const time = fields.minutes.has(at.getUTCMinutes()) && fields.hours.has(at.getUTCHours());
    return either && time && fields.months.has(at.getUTCMonth() + 1);
  };
  const from = minute * 60_000;
  const expected: number[] = [];
  for (let at = from + 60_000; at <= from + 3 * 86_400_000 && expected.length < 5; at += 60_000) {
    if (matches(new Date(at))) expected.push(at);
  }
  const ticks = nextRuns(frequency, "UTC", new Date(from), 5).map((tick) => tick.getTime());
  expect(ticks.slice(0, expected.length), frequency).to.deep.equal(expected);
  if (expected.length < 5) expect(ticks[expected.length] ?? Infinity).to.be.above(from + 3 * 86_400_000);
}

/** Title, frequency, time zone, the moment asked from, the ticks that follow (UTC, to the minute). */
const CLOCK_CHANGES: [string, string, string, string, string[]][] = [
  // New York: 8 March 2026, 02:00 to 03:00 at 07:00Z; 1 November 2026, 02:00 back to 01:00 at 06:00Z.
  [
    "a skipped time fires as the clock goes on",
    "30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00Z",
    ["2026-03-08T07:00Z", "2026-03-09T06:30Z"],
  ],
  [
    "half-hourly goes on without the skipped hour",
    "*/30 * * * *",
    "America/New_York",
    "2026-03-08T06:10Z",
    ["2026-03-08T06:30Z", "2026-03-08T07:00Z", "2026-03-08T07:30Z"],
  ],
  [
    "of two hours the skipped one is dropped",
    "0 2,3 * * *",
    "America/New_York",
    "2026-03-07T12:00Z",
    ["2026-03-08T07:00Z", "2026-03-09T06:00Z"],
  ],
  [
    "two times in the skipped hour are dropped",
    "0,30 2 * * *",
    "America/New_York",
    "2026-03-07T12:00Z",
    ["2026-03-09T06:00Z", "2026-03-09T06:30Z"],
  ],
  [
    "a repeated time fires the first time only",
    "30 1 * * *",
    "America/New_York",
    "2026-10-31T12:00Z",
    ["2026-11-01T05:30Z", "2026-11-02T06:30Z"],
  ],
  [
    "and not again when asked between the two",
    "30 1 * * *",
    "America/New_York",
    "2026-11-01T05:30Z",
    ["2026-11-02T06:30Z"],
  ],
  [
    "half-hourly fires in both repeated hours",
    "*/30 * * * *",
    "America/New_York",
    "2026-11-01T04:40Z",
    ["2026-11-01T05:00Z", "2026-11-01T05:30Z", "2026-11-01T06:00Z", "2026-11-01T06:30Z", "2026-11-01T07:00Z"],
  ],
  [
    "a list of hours fires both times",
    "0 1,2 * * *",
    "America/New_York",
    "2026-10-31T12:00Z",
    ["2026-11-01T05:00Z", "2026-11-01T06:00Z", "2026-11-01T07:00Z", "2026-11-02T06:00Z"],
  ],
  // Lord Howe moves by half an hour: 4 October 2026, 02:00 to 02:30 at 15:30Z; 5 April 2026, 02:00 back to 01:30 at 15:00Z.
  [
    "a time in the skipped half hour fires at its end",
    "15 2 * * *",
    "Australia/Lord_Howe",
    "2026-10-02T20:00Z",
    ["2026-10-03T15:30Z", "2026-10-04T15:15Z"],
  ],
  [
    "the first time after it is its own",
    "30 2 * * *",
    "Australia/Lord_Howe",
    "2026-10-02T20:00Z",
    ["2026-10-03T15:30Z", "2026-10-04T15:30Z"],
  ],
  [
    "a time in the repeated half hour fires once",
    "45 1 * * *",
    "Australia/Lord_Howe",
    "2026-04-03T20:00Z",
    ["2026-04-04T14:45Z", "2026-04-05T15:15Z"],
  ],
  [
    "quarter-hourly goes through both half hours",
    "*/15 * * * *",
    "Australia/Lord_Howe",
    "2026-04-04T14:20Z",
    ["2026-04-04T14:30Z", "2026-04-04T14:45Z", "2026-04-04T15:00Z", "2026-04-04T15:15Z"],
  ],
  // Cairo changes at midnight: 24 April 2026, 00:00 to 01:00 at 22:00Z; 29 October 2026, 24:00 back to 23:00 at 21:00Z.
  [
    "a midnight that is skipped fires at one",
    "0 0 * * *",
    "Africa/Cairo",
    "2026-04-22T12:00Z",
    ["2026-04-22T22:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"],
  ],
  ["also where its date is named", "0 0 24 4 *", "Africa/Cairo", "2026-04-22T12:00Z", ["2026-04-23T22:00Z"]],
  [
    "half past eleven in the repeated hour fires once",
    "30 23 * * *",
    "Africa/Cairo",
    "2026-10-28T22:00Z",
    ["2026-10-29T20:30Z", "2026-10-30T21:30Z"],
  ],
  [
    "midnight after the repeated hour fires once",
    "0 0 * * *",
    "Africa/Cairo",
    "2026-10-28T12:00Z",
    ["2026-10-28T21:00Z", "2026-10-29T22:00Z", "2026-10-30T22:00Z"],
  ],
  // Apia left out 30 December 2011: from 29 December 24:00 (10:00Z on the 30th) straight to the 31st.
  [
    "a day that does not exist has no noon",
    "0 12 * * *",
    "Pacific/Apia",
    "2011-12-28T12:00Z",
    ["2011-12-28T22:00Z", "2011-12-29T22:00Z", "2011-12-30T22:00Z"],
  ],
  [
    "a date that does not exist waits for next year",
    "0 12 30 12 *",
    "Pacific/Apia",
    "2011-12-28T00:00Z",
    ["2012-12-29T22:00Z"],
  ],
  [
    "its Friday is left out",
    "0 0 * * 5",
    "Pacific/Apia",
    "2011-12-20T00:00Z",
    ["2011-12-23T10:00Z", "2012-01-05T10:00Z"],
  ],
  [
    "six-hourly goes on across it",
    "0 */6 * * *",
    "Pacific/Apia",
    "2011-12-30T03:00Z",
    ["2011-12-30T04:00Z", "2011-12-30T10:00Z", "2011-12-30T16:00Z"],
  ],
];

describe("schedule: clock changes", () => {
  for (const [title, frequency, timezone, from, expected] of CLOCK_CHANGES) {
    it(`${timezone}: ${title} (${frequency})`, () => {
      const ticks = nextRuns(frequency, timezone, new Date(from), expected.length);
      expect(ticks.map((tick) => `${tick.toISOString().slice(0, 16)}Z`)).to.deep.equal(expected);
    });
  }

  it("gives the same ticks when each is asked from the one before", () => {
    for (const [, frequency, timezone, from, expected] of CLOCK_CHANGES) {
      let at = new Date(from);
      for (const tick of expected) {
        at = nextRuns(frequency, timezone, at, 1)[0]!;
        expect(`${at.toISOString().slice(0, 16)}Z`, `${frequency} ${timezone}`).to.equal(tick);
      }
    }
  });
});
