/** Table of scheduled runs of the past week that were skipped or failed. */
import { RunStateLabel } from "../runs/run-words.js";
import { formatExactTime, formatTimeInZone } from "../shared/format.js";
import type { ScheduleWeek } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";

export function MissedRunsTable({ week, appId }: { week: ScheduleWeek; appId: number }) {
  return (
    <section aria-labelledby="schedule-missed">
      <h3 id="schedule-missed">Skipped and failed in the past week</h3>
      {week.missed.length === 0 && <p className="hint">No scheduled run was skipped or failed.</p>}
      <ul className="missed">
        {week.missed.map(({ actionId, name, state, reason, timezone, from, to, count, runId }) => (
          <li key={`${runId} ${state}`} className={`run-row ${state}`}>
            <a className="missed-line" href={createHref({ appId, view: "runs", item: String(runId) })}>
              <RunStateLabel state={state} />
              <time dateTime={to} title={`${formatExactTime(to)} here`}>
                {formatTimeInZone(to, timezone)} {timezone}
              </time>
              <b>{name ?? `action ${actionId}`}</b>
              <span className="gist">
                {[reason, count > 1 && `${count} ticks since ${formatTimeInZone(from, timezone)}`]
                  .filter(Boolean)
                  .join(", ")}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
