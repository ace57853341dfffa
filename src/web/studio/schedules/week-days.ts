/** Groups the times of scheduled runs into the days of the week view, by the date in the action's time zone. Pure functions. */

interface ScheduledTimes {
  timezone: string;
  ticks: readonly string[];
}

export interface ActionRunTimes<Action> {
  action: Action;
  runTimes: string[];
}

interface WeekDay<Action> {
  isoDate: string;
  label: string;
  actionTimes: ActionRunTimes<Action>[];
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
/** Last day that the week view shows, counted in days from today (0) in the person's time zone. */
const LAST_SHOWN_DAY = 7;
/**
 * First day for which run times are grouped, counted in days from today (0) in the person's time zone. It is two days earlier than today,
 * because the date in an action's time zone can differ by up to two days.
 */
const FIRST_COMPUTED_DAY = -2;
const LAST_COMPUTED_DAY = LAST_SHOWN_DAY + 2;

/**
 * Returns the days from today (in the person's time zone) to LAST_SHOWN_DAY, and the other days on which an action runs. Sorts the actions
 * of a day by their first run.
 */
export function groupRunTimesByDay<Action extends ScheduledTimes>(
  { from, scheduled }: { from: string; scheduled: readonly Action[] },
  personTimeZone: string,
): WeekDay<Action>[] {
  const today = createDateFormat(personTimeZone).format(new Date(from));
  const timesByDay = scheduled.map((action) => {
    const format = createDateFormat(action.timezone);
    return { action, times: Map.groupBy(action.ticks, (tick) => format.format(new Date(tick))) };
  });
  const days = Array.from({ length: LAST_COMPUTED_DAY - FIRST_COMPUTED_DAY + 1 }, (_, dayIndex) => {
    const dayOffset = FIRST_COMPUTED_DAY + dayIndex;
    const date = new Date(`${today}T12:00:00Z`);
    date.setUTCDate(date.getUTCDate() + dayOffset);
    const isoDate = date.toISOString().slice(0, 10);
    const actionTimes = timesByDay
      .map(({ action, times }) => ({ action, runTimes: times.get(isoDate) ?? [] }))
      .filter(({ runTimes }) => runTimes.length > 0)
      .sort((a, b) => a.runTimes[0]!.localeCompare(b.runTimes[0]!));
    return { dayOffset, isoDate, label: DAY_LABELS[dayOffset] ?? dayFormat.format(date), actionTimes };
  });
  return days.filter(
    ({ dayOffset, actionTimes }) => actionTimes.length > 0 || (dayOffset >= 0 && dayOffset <= LAST_SHOWN_DAY),
  );
}
