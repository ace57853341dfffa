/**
 * Table of the actions with a schedule. Each row has the schedule in words, its time zone, the next and the last run, and the state.
 * Buttons run or pause the action.
 */
import { useState } from "react";
import { RunAction } from "../documents.js";
import { asApiError } from "../shared/api.js";
import { formatAge, formatExactTime, formatTimeInZone } from "../shared/format.js";
import type { ActionSummary, ScheduleWeek } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { ForEditors, ForOperators } from "../shell/role.js";
import { createHref } from "../shell/studio-route.js";
import { PauseButton } from "./pause-action.js";

type ScheduledAction = ScheduleWeek["scheduled"][number];

interface ScheduleRow {
  action: ActionSummary;
  /** Schedule and next runs of the live version; undefined if it has no schedule, or if `week` does not list the action. */
  scheduledAction: ScheduledAction | undefined;
  lastRunAt: string | null;
  state: { words: string; tone: "live" | "failed" | "" };
}

interface ScheduleListProps extends Pick<PageProps, "api" | "app" | "appId" | "actions" | "confirm"> {
  week: ScheduleWeek;
  /** True if the schedules of the whole app are paused. */
  isPaused: boolean;
}

function describeScheduleState(
  action: ActionSummary,
  scheduledAction: ScheduledAction | undefined,
  listProps: ScheduleListProps,
): ScheduleRow["state"] {
  const { actions, app, isPaused } = listProps;
  const liveVersion = actions.findLiveVersion(action.id);
  if (!liveVersion) return { words: "not published", tone: "" };
  if (!liveVersion.active) return { words: "inactive", tone: "" };
  // `week` lists only the actions that run next. If the app has more scheduled actions, this action may have a schedule
  // that `week` does not list.
  if (!scheduledAction) return { words: listProps.week.hasMore ? "next run not listed" : "no live schedule", tone: "" };
  if (!app.isPublished) return { words: "app not published", tone: "" };
  if (isPaused) return { words: "paused", tone: "" };
  return actions.hasFailed(action.id) ? { words: "last run failed", tone: "failed" } : { words: "on", tone: "live" };
}

/** Returns the actions whose draft or live version has a schedule trigger, sorted by their next run. */
function createScheduleRows(listProps: ScheduleListProps): ScheduleRow[] {
  const scheduledActionsById = new Map(
    listProps.week.scheduled.map((scheduledAction) => [scheduledAction.masterId, scheduledAction]),
  );
  const rows = (listProps.actions.actionList?.actions ?? [])
    .filter(
      ({ id, triggers }) => scheduledActionsById.has(id) || triggers.some(({ trigger }) => trigger === "schedule"),
    )
    .map((action) => {
      const scheduledAction = scheduledActionsById.get(action.id);
      const lastRunAt = listProps.actions.findLiveVersion(action.id)?.lastRunAt ?? null;
      return { action, scheduledAction, lastRunAt, state: describeScheduleState(action, scheduledAction, listProps) };
    });
  const getNextTick = ({ scheduledAction }: ScheduleRow) => scheduledAction?.ticks[0] ?? "~";
  return rows.sort(
    (a, b) => getNextTick(a).localeCompare(getNextTick(b)) || a.action.name.localeCompare(b.action.name),
  );
}

function formatNextRun({ ticks, timezone }: ScheduledAction): { iso: string; words: string } | null {
  const iso = ticks.find((tick) => Date.parse(tick) > Date.now());
  if (!iso) return null;
  return { iso, words: formatTimeInZone(iso, timezone) };
}

function RunNowButton({ api, appId, action }: Pick<ScheduleListProps, "api" | "appId"> & { action: ActionSummary }) {
  const [outcome, setOutcome] = useState<{ runId: number } | { fault: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const isManual = action.triggers.some(({ trigger }) => trigger === "manual");
  const startRun = async () => {
    setBusy(true);
    await api.request(RunAction, { appId, id: action.id, payload: {}, copy: "production" }).then(
      ({ run: { runId } }) => setOutcome({ runId }),
      (error: unknown) => setOutcome({ fault: asApiError(error).message }),
    );
    setBusy(false);
  };
  return (
    <>
      <button
        type="button"
        aria-label={`Run now: ${action.name}`}
        title={isManual ? undefined : "The action has no manual trigger."}
        disabled={busy || !isManual}
        onClick={() => void startRun()}
      >
        Run now
      </button>
      {outcome && "runId" in outcome && (
        <a href={createHref({ appId, view: "runs", item: String(outcome.runId) })}>Run {outcome.runId}</a>
      )}
      {outcome && "fault" in outcome && (
        <span className="fault" role="alert">
          {outcome.fault}
        </span>
      )}
    </>
  );
}

function ScheduleTableRow({ row, listProps }: { row: ScheduleRow; listProps: ScheduleListProps }) {
  const { action, scheduledAction, lastRunAt, state } = row;
  const { api, appId } = listProps;
  const liveVersion = listProps.actions.findLiveVersion(action.id);
  const nextRun = scheduledAction && formatNextRun(scheduledAction);
  return (
    <tr>
      <th scope="row">
        <a href={createHref({ appId, view: "actions", item: String(action.id) })} title={action.name}>
          {action.name}
        </a>
      </th>
      <td>
        {scheduledAction?.description ?? "–"}
        <code>{scheduledAction?.frequency ?? action.frequency}</code>
      </td>
      <td className="next-run" data-head="Next run">
        {nextRun ? (
          <>
            <time dateTime={nextRun.iso} title={`${formatExactTime(nextRun.iso)} here`}>
              {nextRun.words}
            </time>
            <span className="hint">{scheduledAction.timezone}</span>
          </>
        ) : (
          "–"
        )}
      </td>
      <td data-head="Last run">
        {lastRunAt ? (
          <time dateTime={lastRunAt} title={formatExactTime(lastRunAt)}>
            {formatAge(lastRunAt)}
          </time>
        ) : (
          "never"
        )}
      </td>
      <td>
        <span className={`chip ${state.tone}`}>{state.words}</span>
      </td>
      <ForOperators>
        <td>
          {liveVersion && (
            <div className="row">
              <RunNowButton {...{ api, appId, action }} />
              <ForEditors>
                <PauseButton {...listProps} {...{ action, liveVersion }} />
              </ForEditors>
            </div>
          )}
        </td>
      </ForOperators>
    </tr>
  );
}

export function ScheduleList(listProps: ScheduleListProps) {
  const rows = createScheduleRows(listProps);
  if (rows.length === 0) {
    return (
      <div className="empty-state">
        <p>
          <b>No schedules yet</b>
        </p>
        <p className="hint">
          The service runs an action at its scheduled times if the action has a schedule trigger, is active and is
          published.
        </p>
        <a className="button" href={createHref({ appId: listProps.appId, view: "actions" })}>
          Open the actions
        </a>
      </div>
    );
  }
  return (
    <div className="table-box">
      <table className="schedule-table" aria-label="Schedules">
        <thead>
          <tr>
            <th scope="col">Action</th>
            <th scope="col">Runs</th>
            <th scope="col">Next run</th>
            <th scope="col">Last run</th>
            <th scope="col">State</th>
            <ForOperators>
              <th scope="col">
                <span className="unseen">Run and pause</span>
              </th>
            </ForOperators>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ScheduleTableRow key={row.action.id} row={row} listProps={listProps} />
          ))}
        </tbody>
      </table>
    </div>
  );
}
