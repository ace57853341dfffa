/** Home page of an app: failed runs, current and next runs, firing alerts, and the usage of the last 24 hours. */
import MailWarning from "icon:mail-warning";
import Siren from "icon:siren";
import type { ReactNode } from "react";
import { RunLine } from "../runs/run-line.js";
import { formatCount, formatDuration, formatExactTime, formatTimeInZone } from "../shared/format.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { createHref } from "../shell/studio-route.js";
import { Checklist } from "./checklist.js";
import { DAY_MS, type HomeData } from "./read-home.js";
import { Sparkline } from "./sparkline.js";
import { useHomeData } from "./use-home.js";

const NEXT_RUNS_SHOWN = 5;
const HOUR_MS = 60 * 60 * 1000;

interface HomeCardProps {
  id: string;
  title: string;
  moreLink?: { label: string; href: string };
  children: ReactNode;
}

function HomeCard({ id, title, moreLink, children }: HomeCardProps) {
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{title}</h2>
        {moreLink && <a href={moreLink.href}>{moreLink.label}</a>}
      </div>
      {children}
    </section>
  );
}

/** Returns three values for each of the last 24 hours, oldest hour first: runs, failed runs, and the 95th percentile of the duration. */
function getHourlyValues(periods: HomeData["statistics"]["periods"]) {
  const now = Date.now();
  const hours = Array.from({ length: DAY_MS / HOUR_MS }, () => ({ runs: 0, failed: 0, p95: 0 }));
  for (const { start, runs, failed, p95 } of periods) {
    const hour = hours[hours.length - 1 - Math.floor((now - Date.parse(start)) / HOUR_MS)];
    if (hour) Object.assign(hour, { runs, failed, p95: p95 ?? 0 });
  }
  return hours;
}

function UsageCard({ statistics: { periods } }: HomeData) {
  const hours = getHourlyValues(periods);
  const sumPeriods = (key: "runs" | "failed") => periods.reduce((sum, period) => sum + period[key], 0);
  const maxP95Ms = Math.max(0, ...periods.map(({ p95 }) => p95 ?? 0));
  const figures = [
    { label: "Runs", value: sumPeriods("runs").toLocaleString("en"), key: "runs", tone: "accent" },
    { label: "Failed", value: sumPeriods("failed").toLocaleString("en"), key: "failed", tone: "bad" },
    {
      label: "Duration, p95 of the slowest hour",
      value: maxP95Ms === 0 ? "–" : formatDuration(maxP95Ms),
      key: "p95",
      tone: "soft",
    },
  ] as const;
  return (
    <section className="usage" aria-label="Usage in the last 24 hours">
      {figures.map(({ label, value, key, tone }) => (
        <div key={key} className="card figure">
          <p className="hint">{label}</p>
          <p className="figure-value">{value}</p>
          <Sparkline values={hours.map((hour) => hour[key])} colorName={tone} />
        </div>
      ))}
    </section>
  );
}

function NoticeList({ home: { editorData }, appId }: { home: HomeData; appId: number }) {
  const firingAlerts = (editorData?.alerts ?? []).filter((alert) => alert.firing.length > 0);
  const hasUnsentMessages = (editorData?.kept.messages.length ?? 0) > 0;
  return (
    <>
      {firingAlerts.map(({ id, name, firing: reasons }) => (
        <p key={id} className="home-notice bad">
          <Siren size={16} aria-hidden />
          <span className="grow">
            <b>{name}</b> is firing: {reasons[0]!.reason}
          </span>
          <a href={createHref({ appId, view: "alerts" })}>Open alerts</a>
        </p>
      ))}
      {hasUnsentMessages && (
        <p className="home-notice">
          <MailWarning size={16} aria-hidden />
          <span className="grow">Messages are stored, not sent: no e-mail server or SMS provider is configured.</span>
          <a href={createHref({ appId, view: "outbox" })}>Open the outbox</a>
          <a href={createHref({ appId, view: "outbox", item: "email" })}>Set up e-mail</a>
        </p>
      )}
    </>
  );
}

function findNextRuns({ week }: HomeData) {
  return week.scheduled
    .flatMap(({ ticks, ...action }) => ticks.slice(0, NEXT_RUNS_SHOWN).map((tick) => ({ ...action, tick })))
    .filter(({ tick }) => Date.parse(tick) > Date.now())
    .sort((a, b) => a.tick.localeCompare(b.tick))
    .slice(0, NEXT_RUNS_SHOWN);
}

function RunCards({ home, appId }: { home: HomeData; appId: number }) {
  const { failed, unfinished } = home;
  const nextRuns = findNextRuns(home);
  const { total, totalIsExact } = failed.pagination;
  const renderRuns = (runs: HomeData["failed"]["runs"]) => (
    <ul className="home-runs">
      {runs.map((run) => (
        <li key={run.id} className={`run-row ${run.state}`}>
          <RunLine run={run} appId={appId} />
        </li>
      ))}
    </ul>
  );
  const failedRunsRoute = { view: "runs", query: { state: "failed", range: "24h" } } as const;
  return (
    <>
      <HomeCard
        id="home-failed"
        title="Failed in the last 24 hours"
        {...(total > 0 && {
          moreLink: {
            label: `${formatCount(total, "failure", "failures")}${totalIsExact ? "" : " or more"}`,
            href: createHref({ appId, ...failedRunsRoute }),
          },
        })}
      >
        {failed.runs.length === 0 ? <p className="hint">No run has failed.</p> : renderRuns(failed.runs)}
      </HomeCard>
      <HomeCard
        id="home-running"
        title="Running now"
        moreLink={{ label: "All runs", href: createHref({ appId, view: "runs" }) }}
      >
        {unfinished.runs.length === 0 ? (
          <p className="hint">No run is running or queued.</p>
        ) : (
          renderRuns(unfinished.runs.slice(0, NEXT_RUNS_SHOWN))
        )}
      </HomeCard>
      <HomeCard
        id="home-next"
        title="Next runs"
        moreLink={{ label: "All schedules", href: createHref({ appId, view: "schedule" }) }}
      >
        {nextRuns.length === 0 ? (
          <p className="hint">No run is scheduled in the next 7 days.</p>
        ) : (
          <ul className="home-next">
            {nextRuns.map(({ actionId, masterId, name, tick, description, timezone }) => (
              <li key={`${actionId} ${tick}`}>
                <time dateTime={tick} title={`${formatExactTime(tick)} here`}>
                  {formatTimeInZone(tick, timezone)} {timezone}
                </time>
                <a
                  href={createHref({ appId, view: "actions", item: String(masterId) })}
                  title={`${description}, ${timezone}`}
                >
                  {name}
                </a>
              </li>
            ))}
          </ul>
        )}
      </HomeCard>
    </>
  );
}

export function HomePage({ api, app, appId, actions, role }: PageProps) {
  const { value: home, fault } = useHomeData(api, appId, mayEdit(role), actions.logSubscription);
  return (
    <div className="home">
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      {!home && !fault && <p className="hint">Loading…</p>}
      {home && (
        <>
          <NoticeList {...{ home, appId }} />
          <UsageCard {...home} />
          <div className="home-columns">
            <div className="home-column">
              <RunCards {...{ home, appId }} />
            </div>
            {actions.actionList && mayEdit(role) && <Checklist {...{ app, home }} list={actions.actionList} />}
          </div>
        </>
      )}
    </div>
  );
}
