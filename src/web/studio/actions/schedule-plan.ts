/** Converts cron expressions of common schedules to the values of the schedule builder's form, and back. Pure functions. */

export const REPEAT_OPTIONS = [
  ["minutes", "Every few minutes"],
  ["hourly", "Every hour"],
  ["daily", "Every day"],
  ["weekdays", "Every weekday"],
  ["weekly", "On days of the week"],
  ["monthly", "On a day of the month"],
] as const;

export type RepeatKind = (typeof REPEAT_OPTIONS)[number][0];

export interface SchedulePlan {
  repeat: RepeatKind;
  /** Minutes between two runs. Used only if `repeat` is "minutes". */
  intervalMinutes: number;
  minute: number;
  hour: number;
  /** Days of the week; 0 is Sunday. */
  weekdays: readonly number[];
  dayOfMonth: number;
}

/**
 * Intervals between runs, in minutes, from which a person can choose. Each number divides 60, so that runs are evenly spread.
 * The list does not contain 1, because the service rejects a schedule that is due every minute.
 */
export const SCHEDULE_MINUTE_STEPS = [2, 3, 4, 5, 6, 10, 12, 15, 20, 30] as const;

export const WEEKDAY_NAMES = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

export const DEFAULT_SCHEDULE_PLAN: SchedulePlan = {
  repeat: "weekdays",
  intervalMinutes: 15,
  minute: 0,
  hour: 9,
  weekdays: [1],
  dayOfMonth: 1,
};

export function planToCron({ repeat, intervalMinutes, minute, hour, weekdays, dayOfMonth }: SchedulePlan): string {
  if (repeat === "minutes") return `*/${intervalMinutes} * * * *`;
  if (repeat === "hourly") return `${minute} * * * *`;
  if (repeat === "daily") return `${minute} ${hour} * * *`;
  if (repeat === "weekdays") return `${minute} ${hour} * * 1-5`;
  if (repeat === "weekly") return `${minute} ${hour} * * ${weekdays.toSorted((a, b) => a - b).join(",")}`;
  return `${minute} ${hour} ${dayOfMonth} * *`;
}

const parseNumberBetween = (text: string, min: number, max: number): number | null =>
  /^\d{1,2}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null;

function parseWeekdays(text: string): number[] | null {
  const days = text.split(",").map((day) => parseNumberBetween(day, 0, 6));
  return days.every((day) => day !== null) ? days : null;
}

/** Returns the plan for a cron expression, or null if the schedule builder cannot show this expression. */
export function cronToPlan(cron: string): SchedulePlan | null {
  const [minutes = "", hours = "", days = "", months = "", weekdays = "", ...otherParts] = cron.trim().split(/\s+/);
  if (otherParts.length > 0 || months !== "*") return null;
  const isEveryDay = days === "*" && weekdays === "*";
  const stepMinutes = minutes.startsWith("*/") ? parseNumberBetween(minutes.slice(2), 2, 30) : null;
  if (stepMinutes !== null) {
    const isSelectableStep = SCHEDULE_MINUTE_STEPS.some((step) => step === stepMinutes);
    return hours === "*" && isEveryDay && isSelectableStep
      ? { ...DEFAULT_SCHEDULE_PLAN, repeat: "minutes", intervalMinutes: stepMinutes }
      : null;
  }
  const minute = parseNumberBetween(minutes, 0, 59);
  if (minute === null) return null;
  if (hours === "*") return isEveryDay ? { ...DEFAULT_SCHEDULE_PLAN, repeat: "hourly", minute } : null;
  const hour = parseNumberBetween(hours, 0, 23);
  if (hour === null) return null;
  const timeOfDayPlan = { ...DEFAULT_SCHEDULE_PLAN, minute, hour };
  if (isEveryDay) return { ...timeOfDayPlan, repeat: "daily" };
  if (weekdays === "*") {
    const dayOfMonth = parseNumberBetween(days, 1, 31);
    return dayOfMonth === null ? null : { ...timeOfDayPlan, repeat: "monthly", dayOfMonth };
  }
  if (days !== "*") return null;
  if (weekdays === "1-5") return { ...timeOfDayPlan, repeat: "weekdays" };
  const chosenWeekdays = parseWeekdays(weekdays);
  return chosenWeekdays && { ...timeOfDayPlan, repeat: "weekly", weekdays: chosenWeekdays };
}
