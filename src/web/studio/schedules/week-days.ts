/** Groups the times of scheduled runs into the days of the week view, by the date in the action's time zone. Pure functions. */

interface ScheduledTimes {
  timezone: string;
  ticks: readonly string[];
}

/** Times at which one action runs on one day. */
export interface DayLine<Action> {
  action: Action;
  times: string[];
}

interface WeekDay<Action> {
  day: string;
  label: string;
  lines: DayLine<Action>[];
}

const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});
/** Returns a formatter for dates in a time zone. The locale en-CA writes dates as 2026-01-31. */
const createDateFormat = (timeZone: string) => new Intl.DateTimeFormat("en-CA", { timeZone });

const DAY_LABELS: Readonly<Record<number, string>> = { [-1]: "Yesterday", 0: "Today", 1: "Tomorrow" };
/** Last day that is always shown, counted from today (0) in the viewer's time zone. */
const LAST_SHOWN_DAY = 7;
/**
 * First day that is computed, counted from today (0). Time zones differ by up to 26 hours, so a date of an action can be outside of the
 * viewer's days.
 */
const FIRST_COMPUTED_DAY = -2;
const LAST_COMPUTED_DAY = LAST_SHOWN_DAY + 2;

/** Returns the days from today on in the viewer's time zone, with the actions of each day sorted by their first run. */
export function groupByDay<Action extends ScheduledTimes>(
  { from, scheduled }: { from: string; scheduled: readonly Action[] },
  viewerTimeZone: string,
): WeekDay<Action>[] {
  const today = createDateFormat(viewerTimeZone).format(new Date(from));
  const timesByDay = scheduled.map((action) => {
    const format = createDateFormat(action.timezone);
    return { action, times: Map.groupBy(action.ticks, (tick) => format.format(new Date(tick))) };
  });
  const days = Array.from({ length: LAST_COMPUTED_DAY - FIRST_COMPUTED_DAY + 1 }, (_, at) => {
    const dayOffset = FIRST_COMPUTED_DAY + at;
    const date = new Date(`${today}T12:00:00Z`);
    date.setUTCDate(date.getUTCDate() + dayOffset);
    const day = date.toISOString().slice(0, 10);
    const lines = timesByDay
      .map(({ action, times }) => ({ action, times: times.get(day) ?? [] }))
      .filter(({ times }) => times.length > 0)
      .sort((a, b) => a.times[0]!.localeCompare(b.times[0]!));
    return { ahead: dayOffset, day, label: DAY_LABELS[dayOffset] ?? dayFormat.format(date), lines };
  });
  return days.filter(
    ({ ahead: dayOffset, lines }) => lines.length > 0 || (dayOffset >= 0 && dayOffset <= LAST_SHOWN_DAY),
  );
}
