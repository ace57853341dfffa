import { expect } from "chai";
import {
  COUNTED_MISSED_TICKS_MAX,
  computeDueTicks,
  computeJitterDelayMs,
  LISTED_MISSED_TICKS_MAX,
} from "../../src/rules/ticks.js";
import { formatLocalTime } from "../../src/rules/zone-clock.js";

const at = (text: string) => new Date(`2026-03-02T${text}Z`);
const iso = (dates: Date[]) => dates.map((date) => date.toISOString().slice(11, 19));

describe("ticks that are due", () => {
  it("are the next one that was awaited, and the next after now", () => {
    const { missed, current, next } = computeDueTicks("*/2 * * * *", "UTC", at("12:00:00"), at("12:00:01"));
    expect(missed).to.deep.equal([]);
    expect(iso(current)).to.deep.equal(["12:00:00"]);
    expect(iso([next])).to.deep.equal(["12:02:00"]);
  });

  it("are missed if they are more than 60 s late, and in time at exactly 60 s", () => {
    const sharp = computeDueTicks("1-59 * * * *", "UTC", at("12:01:00"), at("12:02:00"));
    expect(iso(sharp.current)).to.deep.equal(["12:01:00", "12:02:00"]);
    const late = computeDueTicks("1-59 * * * *", "UTC", at("12:01:00"), at("12:02:00.001"));
    expect(iso(late.missed.map(({ tick }) => tick))).to.deep.equal(["12:01:00"]);
    expect(iso(late.current)).to.deep.equal(["12:02:00"]);
  });

  it("of a long pause are all counted: some one by one, the rest by their number", () => {
    const waiting = at("00:00:00");
    const now = new Date(waiting.getTime() + 1_000 * 120_000);
    const { missed, current, next } = computeDueTicks("*/2 * * * *", "UTC", waiting, now);
    expect(missed).to.have.length(LISTED_MISSED_TICKS_MAX + 1);
    expect(missed.reduce((sum, { count }) => sum + count, 0) + current.length).to.equal(1_001);
    expect(missed.at(-1)).to.deep.include({ count: 900, isMinimum: false });
    expect(missed.map(({ isMinimum }) => isMinimum)).to.not.include(true);
    expect(next.getTime()).to.equal(now.getTime() + 120_000);
  });

  it("are listed one by one up to the maximum, and those beyond it in one entry", () => {
    const waiting = at("00:00:00");
    const late = (ticks: number) => new Date(waiting.getTime() + (ticks - 1) * 120_000 + 60_001);
    const listed = computeDueTicks("*/2 * * * *", "UTC", waiting, late(LISTED_MISSED_TICKS_MAX)).missed;
    expect(listed.map(({ count }) => count)).to.deep.equal(Array(LISTED_MISSED_TICKS_MAX).fill(1));
    const more = computeDueTicks("*/2 * * * *", "UTC", waiting, late(LISTED_MISSED_TICKS_MAX + 1)).missed;
    expect(more).to.have.length(LISTED_MISSED_TICKS_MAX + 1);
    expect(more.at(-1)!.tick.getTime()).to.equal(waiting.getTime() + LISTED_MISSED_TICKS_MAX * 120_000);
    const exact = computeDueTicks(
      "*/2 * * * *",
      "UTC",
      waiting,
      late(LISTED_MISSED_TICKS_MAX + COUNTED_MISSED_TICKS_MAX),
    ).missed.at(-1);
    expect(exact).to.deep.include({ count: 1_000, isMinimum: false });
    const beyond = computeDueTicks(
      "*/2 * * * *",
      "UTC",
      waiting,
      late(LISTED_MISSED_TICKS_MAX + COUNTED_MISSED_TICKS_MAX + 1),
    ).missed.at(-1);
    expect(beyond).to.deep.include({ count: COUNTED_MISSED_TICKS_MAX, isMinimum: true });
  });

  it("are not missed at exactly 60 s, however many were before", () => {
    const waiting = at("00:00:00");
    for (const [ticks, shared] of [
      [LISTED_MISSED_TICKS_MAX, []],
      [500, [400]],
      [LISTED_MISSED_TICKS_MAX + COUNTED_MISSED_TICKS_MAX, [1_000]],
    ] as const) {
      const due = new Date(waiting.getTime() + ticks * 120_000);
      const dueTicks = computeDueTicks("*/2 * * * *", "UTC", waiting, new Date(due.getTime() + 60_000));
      expect(dueTicks.missed.slice(LISTED_MISSED_TICKS_MAX).map(({ count }) => count)).to.deep.equal(shared);
      expect(dueTicks.missed.map(({ isMinimum }) => isMinimum)).to.not.include(true);
      expect(dueTicks.current).to.deep.equal([due]);
    }
  });

  it("are counted up to a maximum after months, and the current tick still fires", () => {
    const waiting = at("00:00:00");
    const now = new Date(waiting.getTime() + 100_000 * 120_000);
    const { missed, current } = computeDueTicks("*/2 * * * *", "UTC", waiting, now);
    expect(missed.at(-1)).to.deep.include({ count: COUNTED_MISSED_TICKS_MAX, isMinimum: true });
    expect(current.map((tick) => tick.getTime())).to.deep.equal([now.getTime()]);
    const sharp = computeDueTicks("*/2 * * * *", "UTC", waiting, new Date(now.getTime() + 60_000));
    expect(sharp.current).to.deep.equal([now]);
    const late = computeDueTicks("*/2 * * * *", "UTC", waiting, new Date(now.getTime() + 60_001));
    expect([late.current, late.next.getTime()]).to.deep.equal([[], now.getTime() + 120_000]);
  });
});

describe("the offset of an action's runs", () => {
  it("is zero without jitter, the same each time, and spread over the whole jitter", () => {
    expect([computeJitterDelayMs(1, 0), computeJitterDelayMs(1, null)]).to.deep.equal([0, 0]);
    const offsets = Array.from({ length: 5_000 }, (_, id) => computeJitterDelayMs(id, 10));
    expect(offsets).to.deep.equal(Array.from({ length: 5_000 }, (_, id) => computeJitterDelayMs(id, 10)));
    expect(Math.min(...offsets)).to.be.within(0, 100);
    expect(Math.max(...offsets)).to.be.within(9_900, 10_000);
    const low = offsets.filter((ms) => ms < 5_000).length;
    expect(low).to.be.within(2_300, 2_700);
    expect(computeJitterDelayMs(1, 10)).to.equal(5_510);
  });
});

describe("the local time of a tick", () => {
  it("has the current UTC offset", () => {
    expect(formatLocalTime(new Date("2026-11-01T05:30:00Z"), "America/New_York")).to.equal("2026-11-01T01:30:00-04:00");
    expect(formatLocalTime(new Date("2026-11-01T06:30:00Z"), "America/New_York")).to.equal("2026-11-01T01:30:00-05:00");
    expect(formatLocalTime(new Date("2026-11-01T00:00:00Z"), "UTC")).to.equal("2026-11-01T00:00:00+00:00");
  });
});
