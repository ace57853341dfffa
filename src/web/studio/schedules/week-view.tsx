/** Week view of the schedules: the runs on each of the next days, in the time zone of each action. */
import { formatTimeInZone } from "../shared/format.js";
import type { ScheduleWeek } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";
import { type ActionRunTimes, groupRunTimesByDay } from "./week-days.js";

const BROWSER_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const TIME_FORMAT = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

type ScheduledAction = ScheduleWeek["scheduled"][number];

/** Maximum number of run times that the view lists per action and day. Further runs are only counted. */
const MAX_TIMES_SHOWN = 4;

/** Returns the run times of an action on one day as text, in the action's time zone. */
function formatTimes({ action: { timezone }, runTimes }: ActionRunTimes<ScheduledAction>): string {
  const zoneFormat = new Intl.DateTimeFormat(undefined, { ...TIME_FORMAT, timeZone: timezone });
  const shownTimes = runTimes.slice(0, MAX_TIMES_SHOWN).map((time) => zoneFormat.format(new Date(time)));
  const hiddenCount = runTimes.length - shownTimes.length;
  return hiddenCount > 0 ? `${shownTimes.join(", ")} and ${hiddenCount} more` : shownTimes.join(", ");
}

export function WeekView({ week, appId }: { week: ScheduleWeek; appId: number }) {
  const actionsWithMore = week.scheduled.filter(({ hasMore }) => hasMore);
  return (
    <section aria-labelledby="schedule-week">
      <h3 id="schedule-week">Today and the next 7 days</h3>
      <div className="week">
        {groupRunTimesByDay(week, BROWSER_TIME_ZONE).map(({ isoDate, label, actionTimes }) => (
          <section key={isoDate} className="day" aria-label={label}>
            <h4>{label}</h4>
            <ul>
              {actionTimes.map((line) => {
                const { action } = line;
                return (
                  <li key={action.actionId} className="due">
                    <span className="times">
                      {formatTimes(line)} {action.timezone}
                    </span>
                    <a
                      href={createHref({ appId, view: "actions", item: String(action.masterId) })}
                      title={`${action.description}, ${action.timezone}`}
                    >
                      {action.name}
                    </a>
                  </li>
                );
              })}
            </ul>
            {actionTimes.length === 0 && <p className="hint">–</p>}
          </section>
        ))}
      </div>
      {actionsWithMore.map(({ actionId, name, description, ticks, timezone }) => (
        <p key={actionId} className="hint">
          {name} continues after {formatTimeInZone(ticks.at(-1)!, timezone)} {timezone}: {description}.
        </p>
      ))}
      {week.hasMore && <p className="hint">Only the {week.scheduled.length} actions that run next are listed.</p>}
    </section>
  );
}
