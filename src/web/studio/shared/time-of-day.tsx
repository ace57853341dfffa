/**
 * Selects for the hour and the minute of a time of day, on a clock of 24 hours. The browser's own time field depends on the browser's
 * language, and shows "02:30 AM" for some people.
 */
const HOUR_OPTIONS = Array.from({ length: 24 }, (_, hour) => hour);
const MINUTE_OPTIONS = Array.from({ length: 60 }, (_, minute) => minute);

export interface TimeOfDay {
  hour: number;
  minute: number;
}

export const padToTwoDigits = (value: number): string => String(value).padStart(2, "0");

interface TwoDigitSelectProps {
  label: string;
  value: number;
  options: readonly number[];
  onChoose: (value: number) => void;
}

function TwoDigitSelect({ label, value, options, onChoose }: TwoDigitSelectProps) {
  return (
    <select aria-label={label} value={value} onChange={({ target }) => onChoose(Number(target.value))}>
      {options.map((option) => (
        <option key={option} value={option}>
          {padToTwoDigits(option)}
        </option>
      ))}
    </select>
  );
}

export function TimeOfDayFields({
  hour,
  minute,
  changeTime,
}: TimeOfDay & { changeTime: (part: Partial<TimeOfDay>) => void }) {
  return (
    <fieldset className="time-of-day">
      <legend className="unseen">Time of day</legend>
      <span className="row">
        at
        <TwoDigitSelect
          label="Hour"
          value={hour}
          options={HOUR_OPTIONS}
          onChoose={(next) => changeTime({ hour: next })}
        />
        :
      </span>
      <TwoDigitSelect
        label="Minute"
        value={minute}
        options={MINUTE_OPTIONS}
        onChoose={(next) => changeTime({ minute: next })}
      />
    </fieldset>
  );
}
