/**
 * Form fields of a schedule: the schedule builder, the cron expression with its next run times, and the time zone. Studio shows them if the
 * action has a schedule trigger.
 */
import { useEffect, useState } from "react";
import { PreviewSchedule, type PreviewScheduleQuery } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import { FormField } from "../shared/field.js";
import { formatExactTime, formatTimeWithZoneOffset } from "../shared/format.js";
import { type FieldError, toFieldError } from "./field-error.js";
import type { ActionFieldsProps } from "./fields-props.js";
import { ScheduleBuilder } from "./schedule-builder.js";

const TIME_ZONES = Intl.supportedValuesOf("timeZone");
/** Delay after the last key press before Studio requests the next run times. */
const PREVIEW_DELAY_MS = 300;

type SchedulePreview = PreviewScheduleQuery["preview"];

/** Hook that returns the next run times of the typed schedule, from the service. `fault` is the error message for an invalid schedule. */
function useSchedulePreview(api: ApiClient, appId: number, frequency: string, timezone: string) {
  const [preview, setPreview] = useState<SchedulePreview | null>(null);
  const [fault, setFault] = useState<FieldError | null>(null);
  useEffect(() => {
    setPreview(null);
    setFault(null);
    if (frequency.trim() === "") return;
    let isOver = false;
    const timer = setTimeout(() => {
      const request = { appId, frequency: frequency.trim(), timezone: timezone.trim() || null };
      api.request(PreviewSchedule, request).then(
        (answer) => isOver || setPreview(answer.preview),
        (error: unknown) => isOver || setFault(toFieldError(asApiError(error))),
      );
    }, PREVIEW_DELAY_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [api, appId, frequency, timezone]);
  return { preview, fault };
}

function NextRuns({ preview: { description, ticks, timezone } }: { preview: SchedulePreview }) {
  return (
    <>
      {description}. Next, in {timezone}:
      <ol className="ticks">
        {ticks.map(({ utc, local }) => (
          <li key={utc}>
            <time dateTime={utc} title={`${formatExactTime(utc)} here`}>
              {formatTimeWithZoneOffset(local)}
            </time>
          </li>
        ))}
      </ol>
    </>
  );
}

export function ScheduleFields({ api, appId, draft, fault, changeDraft }: ActionFieldsProps) {
  const { frequency, timezone, triggers, jitterSeconds } = draft;
  const hasSchedule = triggers.some(({ trigger }) => trigger === "schedule");
  const { preview, fault: previewError } = useSchedulePreview(api, appId, frequency, timezone);
  if (!hasSchedule && frequency === "" && timezone === "" && jitterSeconds === "") return null;
  const isMissing = hasSchedule && frequency.trim() === "";
  const shownFault = previewError?.field === "frequency" || previewError?.field === "timezone" ? previewError : fault;
  return (
    <div className="schedule">
      <ScheduleBuilder frequency={frequency} changeFrequency={(next) => changeDraft({ frequency: next })} />
      <FormField
        name="frequency"
        label="Frequency (cron expression)"
        fault={shownFault}
        hint={preview ? <NextRuns preview={preview} /> : "Minute, hour, day of month, month, day of week."}
      >
        {(fieldAttributes) => (
          <>
            <input
              {...fieldAttributes}
              className="mono"
              placeholder="0 9 * * 1-5"
              value={frequency}
              onChange={(event) => changeDraft({ frequency: event.target.value })}
            />
            {isMissing && <p className="notice">Without a frequency it never runs on schedule.</p>}
          </>
        )}
      </FormField>
      <FormField
        name="timezone"
        label="Time zone"
        fault={shownFault}
        hint={hasSchedule ? "Only the live version runs on schedule." : "No schedule trigger: this has no effect."}
      >
        {(fieldAttributes) => (
          <>
            <input
              {...fieldAttributes}
              list="time-zones"
              placeholder="the server's"
              value={timezone}
              onChange={(event) => changeDraft({ timezone: event.target.value })}
            />
            <datalist id="time-zones">
              {TIME_ZONES.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
      </FormField>
      <FormField
        name="jitterSeconds"
        label="Spread over, seconds"
        fault={fault}
        hint="Every run of the action starts with the same delay, of up to this many seconds, so that not all actions start in the same second."
      >
        {(fieldAttributes) => (
          <input
            {...fieldAttributes}
            type="number"
            min={0}
            max={300}
            step={1}
            placeholder="0, at the tick"
            value={jitterSeconds}
            onChange={(event) => changeDraft({ jitterSeconds: event.target.value })}
          />
        )}
      </FormField>
    </div>
  );
}
