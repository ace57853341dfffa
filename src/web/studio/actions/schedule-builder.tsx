/** Form that builds a schedule, such as "every weekday at 9:00", and writes the cron expression. */
import {
  cronOf,
  FIRST_PLAN,
  MINUTE_STEPS,
  planOf,
  REPEATS,
  type Repeat,
  type SchedulePlan,
  WEEKDAYS,
} from "./schedule-plan.js";

const CUSTOM = "custom";
const twoDigits = (value: number): string => String(value).padStart(2, "0");

interface PartProps {
  plan: SchedulePlan;
  put: (part: Partial<SchedulePlan>) => void;
}

function Time({ plan: { hour, minute }, put }: PartProps) {
  return (
    <label>
      at{" "}
      <input
        type="time"
        aria-label="Time of day"
        value={`${twoDigits(hour)}:${twoDigits(minute)}`}
        onChange={({ target: { value } }) => {
          // The field can be empty while the person types.
          if (value !== "") put({ hour: Number(value.slice(0, 2)), minute: Number(value.slice(3, 5)) });
        }}
      />
    </label>
  );
}

interface NumberChoiceProps extends PartProps {
  label: string;
  /** Field of the plan that this number changes. */
  of: "every" | "minute" | "dayOfMonth";
  options: readonly number[];
  before: string;
  after?: string;
}

function NumberChoice({ label, of, options, before, after, plan, put }: NumberChoiceProps) {
  return (
    <span className="row">
      {before}
      <select aria-label={label} value={plan[of]} onChange={({ target }) => put({ [of]: Number(target.value) })}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
      {after}
    </span>
  );
}

const MINUTES = Array.from({ length: 60 }, (_, minute) => minute);
const DAYS = Array.from({ length: 31 }, (_, day) => day + 1);

function Weekdays({ plan: { weekdays }, put }: PartProps) {
  const toggle = (day: number, isOn: boolean) => {
    const next = isOn ? [...weekdays, day] : weekdays.filter((one) => one !== day);
    // The last selected day cannot be removed.
    if (next.length > 0) put({ weekdays: next });
  };
  return (
    <fieldset className="weekdays">
      <legend className="unseen">Days of the week</legend>
      {[1, 2, 3, 4, 5, 6, 0].map((day) => (
        <label key={day}>
          <input
            type="checkbox"
            checked={weekdays.includes(day)}
            onChange={(event) => toggle(day, event.target.checked)}
          />
          {WEEKDAYS[day]}
        </label>
      ))}
    </fieldset>
  );
}

function Details(part: PartProps) {
  const { repeat } = part.plan;
  if (repeat === "minutes")
    return <NumberChoice {...part} before="every" label="Minutes" of="every" options={MINUTE_STEPS} after="min" />;
  if (repeat === "hourly")
    return <NumberChoice {...part} before="at minute" label="Minute of the hour" of="minute" options={MINUTES} />;
  return (
    <>
      {repeat === "weekly" && <Weekdays {...part} />}
      {repeat === "monthly" && (
        <NumberChoice {...part} before="on day" label="Day of the month" of="dayOfMonth" options={DAYS} />
      )}
      <Time {...part} />
    </>
  );
}

interface ScheduleBuilderProps {
  frequency: string;
  change: (frequency: string) => void;
}

export function ScheduleBuilder({ frequency, change }: ScheduleBuilderProps) {
  const plan = planOf(frequency);
  const put = (part: Partial<SchedulePlan>) => change(cronOf({ ...(plan ?? FIRST_PLAN), ...part }));
  const isEmpty = frequency.trim() === "";
  return (
    <div className="schedule-builder">
      <select
        aria-label="Repeats"
        value={plan ? plan.repeat : isEmpty ? "" : CUSTOM}
        onChange={(event) => put({ repeat: event.target.value as Repeat })}
      >
        {isEmpty && (
          <option value="" disabled>
            Choose when it runs…
          </option>
        )}
        {REPEATS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
        {!plan && !isEmpty && (
          <option value={CUSTOM} disabled>
            By the expression below
          </option>
        )}
      </select>
      {plan && <Details {...{ plan, put }} />}
    </div>
  );
}
