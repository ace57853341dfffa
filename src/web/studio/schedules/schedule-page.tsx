/** A week of the app's schedules, day by day: what will run, and what was skipped or failed in the week before. */
import { useEffect, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { ReadWeek } from "../documents.js";
import { RunState } from "../runs/run-words.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Week } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { hrefOf } from "../shell/place.js";

/** What is due moves on. */
const READ_AGAIN_MS = 60_000;
const GATHER_MS = 1_000;
/** More times of one action on one day are counted. */
const TIMES_SHOWN = 4;

function useWeek(api: Api, appId: number, { onEntry }: Tail) {
  const [week, setWeek] = useState<Week | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);
  useEffect(() => {
    let isOver = false;
    let due: ReturnType<typeof setTimeout> | undefined;
    const read = () =>
      api.ask(ReadWeek, { appId }).then(
        (answer) => {
          if (isOver) return;
          setWeek(answer.week);
          setFault(null);
        },
        (error) => isOver || setFault(asApiError(error)),
      );
    void read();
    const timer = setInterval(() => document.hidden || void read(), READ_AGAIN_MS);
    const end = onEntry((entry) => {
      if (entry.mode !== "scheduled") return;
      due ??= setTimeout(() => {
        due = undefined;
        void read();
      }, GATHER_MS);
    });
    return () => {
      isOver = true;
      clearTimeout(due);
      clearInterval(timer);
      end();
    };
  }, [api, appId, onEntry]);
  return { week, fault };
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "short" });
const dayOf = (iso: string) => new Date(iso).toDateString();

interface Line {
  action: Week["scheduled"][number];
  times: string[];
}

/** The days of the week that comes, each with its actions by their first time. */
function daysOf({ from, scheduled }: Week): { day: string; label: string; lines: Line[] }[] {
  return Array.from({ length: 8 }, (_, ahead) => {
    const date = new Date(from);
    date.setDate(date.getDate() + ahead);
    const day = date.toDateString();
    const lines = scheduled
      .map((action) => ({ action, times: action.ticks.filter((tick) => dayOf(tick) === day) }))
      .filter(({ times }) => times.length > 0)
      .sort((a, b) => a.times[0]!.localeCompare(b.times[0]!));
    return { day, label: ahead === 0 ? "Today" : ahead === 1 ? "Tomorrow" : dayName.format(date), lines };
  });
}

const timesOf = (times: string[]) => {
  const shown = times.slice(0, TIMES_SHOWN).map((time) => clock.format(new Date(time)));
  const more = times.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
};

function Coming({ week, appId }: { week: Week; appId: number }) {
  const endless = week.scheduled.filter(({ hasMore }) => hasMore);
  return (
    <section aria-label="The coming week">
      <h3>The coming week</h3>
      <div className="week">
        {daysOf(week).map(({ day, label, lines }) => (
          <section key={day} className="day" aria-label={label}>
            <h4>{label}</h4>
            <ul>
              {lines.map(({ action, times }) => (
                <li key={action.actionId} className="due">
                  <span className="times">{timesOf(times)}</span>
                  <a
                    href={hrefOf({ appId, view: "actions", item: String(action.masterId) })}
                    title={`${action.description}, ${action.timezone}`}
                  >
                    {action.name}
                  </a>
                </li>
              ))}
            </ul>
            {lines.length === 0 && <p className="hint">nothing</p>}
          </section>
        ))}
      </div>
      {endless.map(({ actionId, name, description, ticks }) => (
        <p key={actionId} className="hint">
          {name} goes on like this after {new Date(ticks.at(-1)!).toLocaleString()}: {description}.
        </p>
      ))}
      {week.hasMore && <p className="hint">The 200 actions that run next; the app has more.</p>}
    </section>
  );
}

function Past({ week, appId }: { week: Week; appId: number }) {
  return (
    <section aria-label="Skipped and failed in the past week">
      <h3>Skipped and failed in the past week</h3>
      {week.missed.length === 0 && <p className="hint">Everything ran when it was due, and nothing failed.</p>}
      <ul className="missed">
        {week.missed.map(({ actionId, name, state, reason, from, to, count, runId }) => (
          <li key={`${runId} ${state}`} className={`run-row ${state}`}>
            <a className="missed-line" href={hrefOf({ appId, view: "runs", item: String(runId) })}>
              <RunState state={state} />
              <time dateTime={to}>
                {new Date(to).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}
              </time>
              <b>{name ?? `action ${actionId}`}</b>
              <span className="gist">
                {[reason, count > 1 && `${count} ticks since ${clock.format(new Date(from))}`]
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

/** Says so before ticks are skipped, and how to avoid it. */
function Crowded({ week: { crowded } }: { week: Week }) {
  const [first] = crowded;
  if (!first) return null;
  const at = new Date(first.tick).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return (
    <p className="banner" role="status">
      {first.count} scheduled runs start in the same second, {at}. Runs that do not begin within a minute are skipped.
      Set “Spread over, seconds” on actions that need not start exactly then, or ask the operator for more runners.
    </p>
  );
}

export function SchedulePage({ api, app, appId, actions }: PageProps) {
  const { week, fault } = useWeek(api, appId, actions.tail);
  return (
    <div className="schedule-page">
      <h2>Schedule</h2>
      {!app.isPublished && week !== null && week.scheduled.length > 0 && (
        <p className="banner" role="status">
          The app is not published: every tick is skipped until it is.
        </p>
      )}
      {fault && (
        <p className="fault" role="alert">
          {fault.message}
        </p>
      )}
      {!week && !fault && <p className="hint">Loading…</p>}
      {week && week.scheduled.length === 0 && (
        <p className="hint">Nothing is scheduled. An action runs by itself once it has a schedule and is published.</p>
      )}
      {week && <Crowded week={week} />}
      {week && week.scheduled.length > 0 && <Coming week={week} appId={appId} />}
      {week && <Past week={week} appId={appId} />}
    </div>
  );
}
