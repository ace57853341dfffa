/**
 * Line of a run in a short list: on Home, in the menu of current runs, and below a run that started others. runs-list.tsx has the table of
 * all runs.
 */
import { formatColumnTime, formatExactTime } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";
import { mayOperate } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { isUnfinished, RunState, runDuration, runSummary, TRIGGER_WORDS, VersionChip } from "./run-words.js";

interface RunLineProps {
  run: RunRow;
  appId: number;
  /** Button that cancels the run. Without it, the run can be cancelled on its own page. */
  cancel?: (runId: number) => Promise<void>;
}

export const CancelButton = ({ run, cancel }: Required<Pick<RunLineProps, "run" | "cancel">>) => {
  const isOperator = mayOperate(useRole());
  if (!isOperator || !isUnfinished(run)) return null;
  return (
    <button type="button" className="small" aria-label={`Cancel run ${run.id}`} onClick={() => void cancel(run.id)}>
      Cancel
    </button>
  );
};

export function RunLine({ run, appId, cancel }: RunLineProps) {
  const at = run.tick ?? run.queuedAt;
  return (
    <>
      <a className="run-line" href={hrefOf({ appId, view: "runs", item: String(run.id) })}>
        <span className="run-number">#{run.id}</span>
        <RunState state={run.state} />
        <time dateTime={at} title={formatExactTime(at)}>
          {formatColumnTime(at)}
        </time>
        <b>{run.actionName ?? `action ${run.actionId}`}</b>
        <VersionChip copy={run.copy} />
        <span className="mode">{TRIGGER_WORDS[run.trigger]}</span>
        <span className="took">{runDuration(run)}</span>
        <span className="gist">{runSummary(run)}</span>
      </a>
      {cancel && <CancelButton {...{ run, cancel }} />}
    </>
  );
}
