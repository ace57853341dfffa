/** Groups scheduled times into the days of the week view, by the date in the action's time zone. Pure functions. */

interface Scheduled {
  timezone: string;
  ticks: readonly string[];
}

/** Times of one action on one day. */
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
/** Returns a formatter for dates of a time zone, such as 2026-01-31. */
const dateIn = (timeZone: string) => new Intl.DateTimeFormat("en-CA", { timeZone });

const LABELS: Readonly<Record<number, string>> = { [-1]: "Yesterday", 0: "Today", 1: "Tomorrow" };
/** Number of days, from the viewer's today, that are always shown. */
const LAST_SHOWN = 7;
/** Extra days at each end. Time zones differ by up to 26 hours, so an action's date can be outside of the viewer's days. */
const FIRST = -2;
const LAST = LAST_SHOWN + 2;

/** Returns the days from today in the viewer's time zone. The actions of a day are sorted by their first time. */
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
