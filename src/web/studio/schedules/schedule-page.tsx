/** A week of the app's schedules, day by day: what will run, and what was skipped or failed in the week before. */
import { useEffect, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { ReadWeek } from "../documents.js";
import { RunState } from "../runs/run-words.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import { exact } from "../shared/format.js";
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

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const clock = new Intl.DateTimeFormat(undefined, CLOCK);
const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "short" });
/** The date that a zone's calendar shows, such as 2026-01-31. */
const dayIn = (date: Date, timeZone: string) => new Intl.DateTimeFormat("en-CA", { timeZone }).format(date);

interface Line {
  action: Week["scheduled"][number];
  times: string[];
}

/** The days of the week that comes, each with its actions by their first time. */
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

/** Times of an action on one day, by the clock of its zone. */
function timesOf({ action: { timezone }, times }: Line): string {
  const inZone = new Intl.DateTimeFormat(undefined, { ...CLOCK, timeZone: timezone });
  const shown = times.slice(0, TIMES_SHOWN).map((time) => inZone.format(new Date(time)));
  const more = times.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

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
              {lines.map((line) => {
                const { action } = line;
                return (
                  <li key={action.actionId} className="due">
                    <span className="times">
                      {timesOf(line)}
                      {action.timezone !== HERE && ` ${action.timezone}`}
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
            {lines.length === 0 && <p className="hint">nothing</p>}
          </section>
        ))}
      </div>
      {endless.map(({ actionId, name, description, ticks }) => (
        <p key={actionId} className="hint">
          {name} goes on like this after {exact(ticks.at(-1)!)}: {description}.
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
      {week.missed.length === 0 && <p className="hint">No scheduled run was skipped or failed.</p>}
      <ul className="missed">
        {week.missed.map(({ actionId, name, state, reason, from, to, count, runId }) => (
          <li key={`${runId} ${state}`} className={`run-row ${state}`}>
            <a className="missed-line" href={hrefOf({ appId, view: "runs", item: String(runId) })}>
              <RunState state={state} />
              <time dateTime={to}>{exact(to)}</time>
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
  const at = exact(first.tick);
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
      <h2>Schedules</h2>
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
