/** Form that composes a schedule, such as "every weekday at 9:00", and converts it to a cron expression. */
import { TimeOfDayFields } from "../shared/time-of-day.js";
import {
  cronToPlan,
  DEFAULT_SCHEDULE_PLAN,
  planToCron,
  REPEAT_OPTIONS,
  type RepeatKind,
  SCHEDULE_MINUTE_STEPS,
  type SchedulePlan,
  WEEKDAY_NAMES,
} from "./schedule-plan.js";

const CUSTOM_SCHEDULE = "custom";

interface PlanInputProps {
  plan: SchedulePlan;
  changePlan: (plan: Partial<SchedulePlan>) => void;
}

interface NumberSelectProps extends PlanInputProps {
  label: string;
  /** Field of the schedule plan that this select changes. */
  planField: "intervalMinutes" | "minute" | "dayOfMonth";
  options: readonly number[];
  textBefore?: string;
  textAfter?: string;
}

function NumberSelect(props: NumberSelectProps) {
  const { label, planField, options, textBefore, textAfter, plan, changePlan } = props;
  return (
    <span className="row">
      {textBefore}
      <select
        aria-label={label}
        value={plan[planField]}
        onChange={({ target }) => changePlan({ [planField]: Number(target.value) })}
      >
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
      {textAfter}
    </span>
  );
}

const MINUTE_OPTIONS = Array.from({ length: 60 }, (_, minute) => minute);
const DAY_OPTIONS = Array.from({ length: 31 }, (_, day) => day + 1);

function WeekdayInput({ plan: { weekdays }, changePlan }: PlanInputProps) {
  const toggleDay = (day: number, isOn: boolean) => {
    const next = isOn ? [...weekdays, day] : weekdays.filter((weekday) => weekday !== day);
    // A weekly schedule needs at least one day, so the person cannot deselect the only selected day.
    if (next.length > 0) changePlan({ weekdays: next });
  };
  return (
    <fieldset className="weekdays">
      <legend className="unseen">Days of the week</legend>
      {[1, 2, 3, 4, 5, 6, 0].map((day) => (
        <label key={day}>
          <input
            type="checkbox"
            checked={weekdays.includes(day)}
            onChange={(event) => toggleDay(day, event.target.checked)}
          />
          {WEEKDAY_NAMES[day]}
        </label>
      ))}
    </fieldset>
  );
}

function ScheduleDetails(props: PlanInputProps) {
  const { repeat } = props.plan;
  if (repeat === "minutes")
    return (
      <NumberSelect
        {...props}
        textBefore="every"
        label="Minutes"
        planField="intervalMinutes"
        options={SCHEDULE_MINUTE_STEPS}
        textAfter="min"
      />
    );
  if (repeat === "hourly")
    return (
      <NumberSelect
        {...props}
        textBefore="at minute"
        label="Minute of the hour"
        planField="minute"
        options={MINUTE_OPTIONS}
      />
    );
  return (
    <>
      {repeat === "weekly" && <WeekdayInput {...props} />}
      {repeat === "monthly" && (
        <NumberSelect
          {...props}
          textBefore="on day"
          label="Day of the month"
          planField="dayOfMonth"
          options={DAY_OPTIONS}
        />
      )}
      <TimeOfDayFields hour={props.plan.hour} minute={props.plan.minute} changeTime={props.changePlan} />
    </>
  );
}

interface ScheduleBuilderProps {
  frequency: string;
  changeFrequency: (frequency: string) => void;
}

export function ScheduleBuilder({ frequency, changeFrequency }: ScheduleBuilderProps) {
  const plan = cronToPlan(frequency);
  const changePlan = (part: Partial<SchedulePlan>) =>
    changeFrequency(planToCron({ ...(plan ?? DEFAULT_SCHEDULE_PLAN), ...part }));
  const isEmpty = frequency.trim() === "";
  return (
    <div className="schedule-builder">
      <span className="field-label" aria-hidden="true">
        Repeats
      </span>
      <select
        aria-label="Repeats"
        value={plan ? plan.repeat : isEmpty ? "" : CUSTOM_SCHEDULE}
        onChange={(event) => changePlan({ repeat: event.target.value as RepeatKind })}
      >
        {isEmpty && (
          <option value="" disabled>
            Choose when it runs…
          </option>
        )}
        {REPEAT_OPTIONS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
        {!plan && !isEmpty && (
          <option value={CUSTOM_SCHEDULE} disabled>
            By the expression below
          </option>
        )}
      </select>
      {plan && <ScheduleDetails {...{ plan, changePlan }} />}
    </div>
  );
}
