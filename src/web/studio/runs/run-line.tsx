/**
 * Line of a run in a short list: on Home, in the menu of current runs, and below a run that started others. runs-list.tsx has the table of
 * all runs.
 */
import { exact, stamp } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { hrefOf } from "../shell/place.js";
import { mayRun } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { CopyChip, gistOf, isUnfinished, RunState, TRIGGER_WORDS, tookOf } from "./run-words.js";

interface RunLineProps {
  run: RunRow;
  appId: number;
  /** Button that cancels the run. Without it, the run can be cancelled on its own page. */
  cancel?: (runId: number) => Promise<void>;
}

export const CancelButton = ({ run, cancel }: Required<Pick<RunLineProps, "run" | "cancel">>) => {
  const isOperator = mayRun(useRole());
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
        <time dateTime={at} title={exact(at)}>
          {stamp(at)}
        </time>
        <b>{run.actionName ?? `action ${run.actionId}`}</b>
        <CopyChip copy={run.copy} />
        <span className="mode">{TRIGGER_WORDS[run.trigger]}</span>
        <span className="took">{tookOf(run)}</span>
        <span className="gist">{gistOf(run)}</span>
      </a>
      {cancel && <CancelButton {...{ run, cancel }} />}
    </>
  );
}
