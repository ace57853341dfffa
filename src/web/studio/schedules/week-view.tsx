/** Week view of the schedules: what runs on each of the next days, in the time zone of each action. */
import { exact } from "../shared/format.js";
import type { Week } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "short" });
/** The date that a zone's calendar shows, such as 2026-01-31. */
const dayIn = (date: Date, timeZone: string) => new Intl.DateTimeFormat("en-CA", { timeZone }).format(date);

/** More times of one action on one day are counted. */
const TIMES_SHOWN = 4;

interface Line {
  action: Week["scheduled"][number];
  times: string[];
}

/** Days from today, each with its actions in the order of their first time. */
function daysOf({ from, scheduled }: Week): { day: string; label: string; lines: Line[] }[] {
  return Array.from({ length: 8 }, (_, ahead) => {
    const date = new Date(from);
    date.setDate(date.getDate() + ahead);
    const day = dayIn(date, HERE);
    const lines = scheduled
      .map((action) => ({
        action,
        times: action.ticks.filter((tick) => dayIn(new Date(tick), action.timezone) === day),
      }))
      .filter(({ times }) => times.length > 0)
      .sort((a, b) => a.times[0]!.localeCompare(b.times[0]!));
    return { day, label: ahead === 0 ? "Today" : ahead === 1 ? "Tomorrow" : dayName.format(date), lines };
  });
}

/** Times of an action on one day, in its time zone. */
function timesOf({ action: { timezone }, times }: Line): string {
  const inZone = new Intl.DateTimeFormat(undefined, { ...CLOCK, timeZone: timezone });
  const shown = times.slice(0, TIMES_SHOWN).map((time) => inZone.format(new Date(time)));
  const more = times.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

export function WeekView({ week, appId }: { week: Week; appId: number }) {
  const endless = week.scheduled.filter(({ hasMore }) => hasMore);
  return (
    <section aria-labelledby="schedule-week">
      <h3 id="schedule-week">Next 7 days</h3>
      <div className="week">
        {daysOf(week).map(({ day, label, lines }) => (
          <section key={day} className="day" aria-label={label}>
            <h4>{label}</h4>
            <ul>
              {lines.map((line) => {
                const { action } = line;
                return (
                  <li key={action.actionId} className="due">
                    <span className="times">
                      {timesOf(line)} {action.timezone}
                    </span>
                    <a
                      href={hrefOf({ appId, view: "actions", item: String(action.masterId) })}
                      title={`${action.description}, ${action.timezone}`}
                    >
                      {action.name}
                    </a>
                  </li>
                );
              })}
            </ul>
            {lines.length === 0 && <p className="hint">–</p>}
          </section>
        ))}
      </div>
      {endless.map(({ actionId, name, description, ticks }) => (
        <p key={actionId} className="hint">
          {name} continues after {exact(ticks.at(-1)!)}: {description}.
        </p>
      ))}
      {week.hasMore && <p className="hint">Only the 200 actions that run next are listed.</p>}
    </section>
  );
}
