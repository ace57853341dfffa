/** Days of the week view: each tick is on the day that its own time zone shows. Pure. */

interface Scheduled {
  timezone: string;
  ticks: readonly string[];
}

/** One action on one day. */
export interface Line<Action> {
  action: Action;
  times: string[];
}

interface Day<Action> {
  day: string;
  label: string;
  lines: Line<Action>[];
}

const dayName = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
/** Format of the date that a zone's calendar shows, such as 2026-01-31. */
const dateIn = (timeZone: string) => new Intl.DateTimeFormat("en-CA", { timeZone });

const LABELS: Readonly<Record<number, string>> = { [-1]: "Yesterday", 0: "Today", 1: "Tomorrow" };
/** Days from the viewer's today that are always shown. */
const LAST_SHOWN = 7;
/** Zones are up to 26 hours apart: an action's zone can show up to two days before or after these. */
const FIRST = -2;
const LAST = LAST_SHOWN + 2;

/** Days from today in the viewer's zone, each with its actions in the order of their first time. */
export function daysOf<Action extends Scheduled>(
  { from, scheduled }: { from: string; scheduled: readonly Action[] },
  here: string,
): Day<Action>[] {
  const today = dateIn(here).format(new Date(from));
  const byDay = scheduled.map((action) => {
    const format = dateIn(action.timezone);
    return { action, times: Map.groupBy(action.ticks, (tick) => format.format(new Date(tick))) };
  });
  const days = Array.from({ length: LAST - FIRST + 1 }, (_, at) => {
    const ahead = FIRST + at;
    const date = new Date(`${today}T12:00:00Z`);
    date.setUTCDate(date.getUTCDate() + ahead);
    const day = date.toISOString().slice(0, 10);
    const lines = byDay
      .map(({ action, times }) => ({ action, times: times.get(day) ?? [] }))
      .filter(({ times }) => times.length > 0)
      .sort((a, b) => a.times[0]!.localeCompare(b.times[0]!));
    return { ahead, day, label: LABELS[ahead] ?? dayName.format(date), lines };
  });
  return days.filter(({ ahead, lines }) => lines.length > 0 || (ahead >= 0 && ahead <= LAST_SHOWN));
}
