/** When a scheduled action runs: cron expression, its meaning in words, time zone. Shown where there is a schedule. */
import cronstrue from "cronstrue";
import { Field } from "./field.js";
import type { FieldsProps } from "./fields-props.js";

const ZONES = Intl.supportedValuesOf("timeZone");

function inWords(frequency: string): string {
  if (frequency.trim() === "") return "Minute, hour, day of month, month, day of week.";
  try {
    return cronstrue.toString(frequency, { use24HourTimeFormat: true, verbose: false });
  } catch {
    return "Five fields: minute, hour, day of month, month, day of week.";
  }
}

export function ScheduleFields({ draft, fault, change }: FieldsProps) {
  const { frequency, timezone, triggers } = draft;
  const scheduled = triggers.some(({ trigger }) => trigger === "schedule");
  if (!scheduled && frequency === "" && timezone === "") return null;
  return (
    <div className="schedule">
      <Field name="frequency" label="Frequency" fault={fault} hint={inWords(frequency)}>
        {(tied) => (
          <input
            {...tied}
            className="mono"
            placeholder="0 9 * * 1-5"
            value={frequency}
            onChange={(event) => change({ frequency: event.target.value })}
          />
        )}
      </Field>
      <Field
        name="timezone"
        label="Time zone"
        fault={fault}
        hint={scheduled ? "Only the production copy runs on schedule." : "No schedule trigger: this has no effect."}
      >
        {(tied) => (
          <>
            <input
              {...tied}
              list="time-zones"
              placeholder="the server's"
              value={timezone}
              onChange={(event) => change({ timezone: event.target.value })}
            />
            <datalist id="time-zones">
              {ZONES.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
      </Field>
    </div>
  );
}
