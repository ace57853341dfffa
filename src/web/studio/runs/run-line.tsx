/**
 * One run in a short list: on Home, in the list of current runs, and on the page of the run that started this run. runs-list.tsx contains
 * the table of all runs.
 */
import { useState } from "react";
import { asApiError } from "../shared/api.js";
import { formatColumnTime, formatExactTime } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { mayOperate } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { createHref } from "../shell/studio-route.js";
import {
  describeRun,
  formatRunDuration,
  isUnfinished,
  RunStateLabel,
  TRIGGER_WORDS,
  VersionChip,
} from "./run-words.js";

interface RunLineProps {
  run: RunRow;
  appId: number;
  /** Cancels the run, or rejects with an ApiError. If missing, the line has no button "Cancel". */
  cancelRun?: (runId: number) => Promise<void>;
}

export const CancelButton = ({ run, cancelRun }: Required<Pick<RunLineProps, "run" | "cancelRun">>) => {
  const isOperator = mayOperate(useRole());
  const [fault, setFault] = useState<string | null>(null);
  if (!isOperator || !isUnfinished(run)) return null;
  const confirmAndCancel = async () => {
    setFault(null);
    await cancelRun(run.id).catch((error: unknown) => setFault(asApiError(error).message));
  };
  return (
    <>
      {fault !== null && (
        <span className="fault" role="alert">
          Not cancelled: {fault}
        </span>
      )}
      <button
        type="button"
        className="small"
        aria-label={`Cancel run ${run.id}`}
        onClick={() => void confirmAndCancel()}
      >
        Cancel
      </button>
    </>
  );
};

export function RunLine({ run, appId, cancelRun }: RunLineProps) {
  const shownTime = run.tick ?? run.queuedAt;
  return (
    <>
      <a className="run-line" href={createHref({ appId, view: "runs", item: String(run.id) })}>
        <span className="run-number">#{run.id}</span>
        <RunStateLabel state={run.state} />
        <time dateTime={shownTime} title={formatExactTime(shownTime)}>
          {formatColumnTime(shownTime)}
        </time>
        <b>{run.actionName ?? `action ${run.actionId}`}</b>
        <VersionChip copy={run.copy} />
        <span className="mode">{TRIGGER_WORDS[run.trigger]}</span>
        <span className="took">{formatRunDuration(run)}</span>
        <span className="gist">{describeRun(run)}</span>
      </a>
      {cancelRun && <CancelButton {...{ run, cancelRun }} />}
    </>
  );
}
