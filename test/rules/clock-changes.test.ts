/** Tests the times of schedules around clock changes, in zones whose changes differ in size, hour and direction. */
import { expect } from "chai";
import fc from "fast-check";
import { parseCron } from "../../src/rules/cron-grammar.js";
import { computeNextTicks } from "../../src/rules/schedule.js";
import { caseCount, sampleOf } from "../harness/samples.js";

/** Title, frequency, time zone, start time, and the expected ticks (UTC, to the minute). */
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
  // Apia skipped 30 December 2011: from 29 December 24:00 (10:00Z on the 30th) directly to the 31st.
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
  // Nuuk and Ittoqqortoormiit skip the last hour of a day: 28 March 2026, 23:00 to 24:00 at 01:00Z.
  [
    "a skipped time before midnight fires at midnight",
    "30 23 * * *",
    "America/Nuuk",
    "2026-03-27T12:00Z",
    ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
  ],
  [
    "the hour itself, too",
    "0 23 * * *",
    "America/Scoresbysund",
    "2026-03-27T12:00Z",
    ["2026-03-28T01:00Z", "2026-03-29T01:00Z", "2026-03-30T00:00Z"],
  ],
  ["also where its weekday is named", "59 23 * * 6", "America/Nuuk", "2026-03-27T12:00Z", ["2026-03-29T01:00Z"]],
];

describe("schedule: clock changes", () => {
  for (const [title, frequency, timezone, from, expected] of CLOCK_CHANGES) {
    it(`${timezone}: ${title} (${frequency})`, () => {
      const ticks = computeNextTicks(frequency, timezone, new Date(from), expected.length);
      expect(ticks.map((tick) => `${tick.toISOString().slice(0, 16)}Z`)).to.deep.equal(expected);
    });
  }

  it("gives the same ticks if each is computed from the previous one", () => {
    for (const [, frequency, timezone, from, expected] of CLOCK_CHANGES) {
      let at = new Date(from);
      for (const tick of expected) {
        at = computeNextTicks(frequency, timezone, at, 1)[0]!;
        expect(`${at.toISOString().slice(0, 16)}Z`, `${frequency} ${timezone}`).to.equal(tick);
      }
    }
  });

  it("fires at the same minutes as a simulation of the zone's clock, around every clock change of 2026", () => {
    const changes = sampleOf(Intl.supportedValuesOf("timeZone"), 0, 5).flatMap((zone) => findClockChanges(zone));
    expect(changes.length).to.be.above(20);
    const number = (size: number) => fc.nat(size - 1).map(String);
    const minutes = fc.oneof(number(60), fc.constantFrom("*/20", "0,30", "59"));
    const hours = fc.oneof(number(24), fc.constantFrom("*", "23", "0", "1,2", "22-23"));
    const cases = fc.tuple(fc.constantFrom(...changes), minutes, hours, fc.constantFrom("*", "6", "0"), fc.nat(2_879));
    const property = fc.property(cases, ([change, minute, hour, weekday, before]) => {
      const frequency = `${minute} ${hour} * * ${weekday}`;
      const from = change.at - before * 60_000;
      const expected = findTicksByWalking(frequency, change.zone, from);
      const ticks = computeNextTicks(frequency, change.zone, new Date(from), expected.length + 1).map((tick) =>
        tick.getTime(),
      );
      const until = from + WALK_MINUTES * 60_000;
      expect(
        ticks.filter((tick) => tick <= until),
        `${frequency} ${change.zone} from ${new Date(from).toISOString()}`,
      ).to.deep.equal(expected);
    });
    fc.assert(property, { numRuns: caseCount(150) });
  });
});

const WALK_MINUTES = 3 * 24 * 60;
const QUARTER_MS = 15 * 60_000;
const WEEK_MS = 7 * 86_400_000;
const clocks = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, number>();

/** Returns the ms by which the zone's clock is ahead of UTC. Cached for each quarter of an hour, within which no clock changes. */
function computeOffset(zone: string, at: number): number {
  const quarter = Math.floor(at / QUARTER_MS) * QUARTER_MS;
  const key = `${zone} ${quarter}`;
  const found = offsets.get(key);
  if (found !== undefined) return found;
  const known = clocks.get(zone);
  const clock = known ?? new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  clocks.set(zone, clock);
  const offset = Date.parse(`${clock.format(quarter).replace(" ", "T")}:00Z`) - quarter;
  offsets.set(key, offset);
  return offset;
}

/** Returns the time on a wall clock in the zone, as text that sorts by time: "2026-03-28 23:30". */
function formatWallClock(zone: string, at: number): string {
  return new Date(at + computeOffset(zone, at)).toISOString().slice(0, 16).replace("T", " ");
}

/** Returns the first moment after each clock change of 2026. No zone has two changes in one week. */
function findClockChanges(zone: string): { zone: string; at: number }[] {
  const changes: { zone: string; at: number }[] = [];
  for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += WEEK_MS) {
    let [before, after] = [at, at + WEEK_MS];
    if (computeOffset(zone, before) === computeOffset(zone, after)) continue;
    while (after - before > QUARTER_MS) {
      const middle = before + Math.floor((after - before) / 2 / QUARTER_MS) * QUARTER_MS;
      if (computeOffset(zone, middle) === computeOffset(zone, before)) before = middle;
      else after = middle;
    }
    changes.push({ zone, at: after });
  }
  return changes;
}

/** Finds the ticks minute by minute, by the rule in the comment of `computeNextTicks`. */
function findTicksByWalking(frequency: string, zone: string, from: number): number[] {
  const fields = parseCron(frequency);
  if ("fault" in fields) throw new Error(fields.fault);
  const isDaily = fields.minutes.size === 1 && fields.hours.size === 1;
  const onDay = (date: string) => fields.weekdays.has(new Date(`${date}T00:00Z`).getUTCDay());
  const time = `${String([...fields.hours][0]).padStart(2, "0")}:${String([...fields.minutes][0]).padStart(2, "0")}`;
  const ticks: number[] = [];
  const fired = new Set<string>();
  const dates = new Set<string>();
  for (let minute = -24 * 60; minute <= WALK_MINUTES; minute += 1) {
    const at = from + minute * 60_000;
    const [date, clock] = formatWallClock(zone, at).split(" ") as [string, string];
    let fires = false;
    if (isDaily) {
      dates.add(date);
      for (const day of dates) {
        if (fired.has(day) || !onDay(day) || `${date} ${clock}` < `${day} ${time}`) continue;
        fired.add(day);
        fires = true;
      }
    } else
      fires = onDay(date) && fields.hours.has(Number(clock.slice(0, 2))) && fields.minutes.has(Number(clock.slice(3)));
    if (fires && minute > 0) ticks.push(at);
  }
  return ticks;
}
