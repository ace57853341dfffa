/** Table of scheduled runs of the past week that were skipped or failed. */
import { RunState } from "../runs/run-words.js";
import { formatExactTime } from "../shared/format.js";
import type { Week } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function MissedRuns({ week, appId }: { week: Week; appId: number }) {
  return (
    <section aria-labelledby="schedule-missed">
      <h3 id="schedule-missed">Skipped and failed in the past week</h3>
      {week.missed.length === 0 && <p className="hint">No scheduled run was skipped or failed.</p>}
      <ul className="missed">
        {week.missed.map(({ actionId, name, state, reason, from, to, count, runId }) => (
          <li key={`${runId} ${state}`} className={`run-row ${state}`}>
            <a className="missed-line" href={hrefOf({ appId, view: "runs", item: String(runId) })}>
              <RunState state={state} />
              <time dateTime={to}>{formatExactTime(to)}</time>
              <b>{name ?? `action ${actionId}`}</b>
              <span className="gist">
                {[reason, count > 1 && `${count} ticks since ${timeFormat.format(new Date(from))}`]
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
