/**
 * Page of the app's schedules: the actions with a schedule, their runs in the next week, and scheduled runs that were skipped or failed.
 */
import Pause from "icon:pause";
import Play from "icon:play";
import { PauseSchedules, ReadSchedulePause, ResumeSchedules } from "../documents.js";
import { formatCount, formatExactTime } from "../shared/format.js";
import type { ScheduleWeek } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { ForOperators } from "../shell/role.js";
import { createHref } from "../shell/studio-route.js";
import { MissedRunsTable } from "./missed-runs.js";
import { ScheduleList } from "./schedule-list.js";
import { useScheduleWeek } from "./use-week.js";
import { WeekView } from "./week-view.js";

/** Warns that runs will be skipped, because too many schedules start at the same time. */
function CrowdedWarning({ week: { crowded } }: { week: ScheduleWeek }) {
  const [firstCrowdedSecond] = crowded;
  if (!firstCrowdedSecond) return null;
  const crowdedTime = formatExactTime(firstCrowdedSecond.tick);
  return (
    <p className="notice" role="status">
      {firstCrowdedSecond.count} scheduled runs start in the same second, {crowdedTime}. Runs that do not begin within a
      minute are skipped. Set “Spread over, seconds” on actions that need not start exactly then, or ask the operator
      for more runners.
    </p>
  );
}

/**
 * Shows the number of actions with a schedule. If `hasMore` is true, the app has more such actions than the page lists.
 */
function ScheduleCount({ week: { scheduled, hasMore }, appId }: { week: ScheduleWeek; appId: number }) {
  const { length } = scheduled;
  if (length === 0) return null;
  if (!hasMore) return formatCount(length, "action has a schedule.", "actions have a schedule.");
  return (
    <>
      {length}+ actions have a schedule. This page lists the runs of the {length} that run next. Find further ones in{" "}
      <a href={createHref({ appId, view: "actions" })}>Actions</a>.
    </>
  );
}

function useSchedulePause({ api, appId }: Pick<PageProps, "api" | "appId">) {
  const { value, fault, isBusy, applyChange } = useResource(createQueryOptions(ReadSchedulePause, { appId }));
  const pausedAt = value?.pause.pausedAt ?? null;
  const togglePause = () =>
    applyChange(() => (pausedAt ? api.request(ResumeSchedules, { appId }) : api.request(PauseSchedules, { appId })));
  return { pausedAt, isKnown: value !== null, fault, busy: isBusy, togglePause };
}

export function SchedulePage(props: PageProps) {
  const { app, appId, actions, confirm } = props;
  const { week, fault } = useScheduleWeek(appId, actions);
  const pause = useSchedulePause(props);
  const { pausedAt } = pause;
  const confirmAndToggle = async () => {
    const text = "Scheduled runs are skipped until you resume. Queued runs still execute.";
    if (!pausedAt && !(await confirm({ title: "Pause all schedules?", explanation: text, confirmLabel: "Pause" })))
      return;
    await pause.togglePause();
  };
  const isEmpty = week?.scheduled.length === 0;
  return (
    <div className="schedule-page">
      <div className="page-head">
        <h2 className="unseen">Schedules</h2>
        <p className="hint">{week && <ScheduleCount week={week} appId={appId} />}</p>
        <ForOperators>
          <button type="button" disabled={pause.busy || !pause.isKnown} onClick={() => void confirmAndToggle()}>
            {pausedAt ? <Play size={14} aria-hidden /> : <Pause size={14} aria-hidden />}
            {pausedAt ? "Resume all schedules" : "Pause all schedules"}
          </button>
        </ForOperators>
      </div>
      {pausedAt && (
        <p className="notice" role="status">
          All schedules are paused since {formatExactTime(pausedAt)}. Their runs are skipped.
        </p>
      )}
      {!app.isPublished && week !== null && !isEmpty && (
        <p className="notice" role="status">
          The app is not published. Scheduled runs are skipped until it is.
        </p>
      )}
      {[...new Set([fault, pause.fault, actions.fault])].filter(Boolean).map((message) => (
        <p key={message} className="fault" role="alert">
          {message}
        </p>
      ))}
      {week && <CrowdedWarning week={week} />}
      {week && actions.actionList ? (
        <ScheduleList {...props} week={week} isPaused={pausedAt !== null} />
      ) : (
        <p className="hint">Loading…</p>
      )}
      {week && !isEmpty && <WeekView week={week} appId={appId} />}
      {week && <MissedRunsTable week={week} appId={appId} />}
    </div>
  );
}
