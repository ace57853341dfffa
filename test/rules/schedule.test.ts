/** Tests which cron expressions and time zones are valid, and that croner follows them exactly. */
import { expect } from "chai";
import fc from "fast-check";
import { parseCron } from "../../src/rules/cron-grammar.js";
import { checkFrequency, checkTimezone, computeNextTicks } from "../../src/rules/schedule.js";
import { caseCount } from "../harness/samples.js";
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

describe("schedule: rejected values", () => {
  it("has at least 150 invalid frequencies and time zones, each once", () => {
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

describe("schedule: accepted values", () => {
  it("accepts each name that the IANA database has as Area/Place, also links, and UTC", () => {
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
      expect(computeNextTicks("0 12 * * *", name, new Date("2026-06-01T00:00:00Z"), 1), name).to.have.length(1);
    }
  });

  it("accepts nearly every minute, a minute of one hour, and a day that occurs every four years", () => {
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
      expect(computeNextTicks(frequency, "UTC", new Date("2026-01-01T00:00:00Z"), 2), frequency).to.have.length(2);
    }
  });

  it("matches either day field if both are restricted", () => {
    const ticks = computeNextTicks("0 0 13 * 5", "UTC", new Date("2026-01-01T00:00:00Z"), 4);
    expect(ticks.map((tick) => tick.getUTCDate())).to.deep.equal([2, 9, 13, 16]);
  });

  it("runs with croner at exactly the minutes of the checked fields", () => {
    fc.assert(fc.property(expressions, fc.integer({ min: 0, max: 40_000_000 }), expectSameMinutes), {
      numRuns: caseCount(400),
    });
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

/** Compares croner's next due times with those of a search minute by minute: up to five, within three days after `minute`. */
function expectSameMinutes(frequency: string, minute: number): void {
  const fields = parseCron(frequency);
  if ("fault" in fields) throw new Error(`${frequency}: ${fields.fault}`);
  const matches = (at: Date): boolean => {
    const day = fields.days.has(at.getUTCDate());
    const weekday = fields.weekdays.has(at.getUTCDay());
    const either = fields.isAnyDay || fields.isAnyWeekday ? day && weekday : day || weekday;
    const time = fields.minutes.has(at.getUTCMinutes()) && fields.hours.has(at.getUTCHours());
    return either && time && fields.months.has(at.getUTCMonth() + 1);
  };
  const from = minute * 60_000;
  const expected: number[] = [];
  for (let at = from + 60_000; at <= from + 3 * 86_400_000 && expected.length < 5; at += 60_000) {
    if (matches(new Date(at))) expected.push(at);
  }
  const ticks = computeNextTicks(frequency, "UTC", new Date(from), 5).map((tick) => tick.getTime());
  expect(ticks.slice(0, expected.length), frequency).to.deep.equal(expected);
  if (expected.length < 5) expect(ticks[expected.length] ?? Infinity).to.be.above(from + 3 * 86_400_000);
}
