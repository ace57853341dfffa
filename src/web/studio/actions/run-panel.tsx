/** Panel with the payload of a run on the left and its result on the right. The dock starts the run. */
import type { ReactNode } from "react";
import { ConsoleLines } from "../runs/console-lines.js";
import { ResultView } from "../runs/result-view.js";
import { ErrorStack } from "../runs/stack.js";
import type { ApiClient } from "../shared/api.js";
import { formatDuration } from "../shared/format.js";
import type { Action } from "../shared/model.js";
import { createHref } from "../shell/studio-route.js";
import { AllowInDraftButton, findRejectedOrigin } from "./allow-origin.js";
import type { ActionDraft } from "./draft.js";
import { PayloadPresets } from "./payload-presets.js";
import type { ActionRunner, StartedRun } from "./use-run.js";

/**
 * Returns the reason why the draft cannot be run from here: its environment, its state or its triggers. Returns null if these allow a run.
 * The service may still reject the run for other reasons.
 */
export function findRunObstacle({ active, environment, triggers }: ActionDraft): string | null {
  if (environment === "client") return "A client action runs in the user's browser only, not from here.";
  if (!active) return "The action is inactive: switch it on to run it.";
  if (!triggers.some(({ trigger }) => trigger === "manual")) return "Running on demand needs the trigger “On demand”.";
  return null;
}

const RUN_STATE_LABELS = { running: "Running…", completed: "Completed", failed: "Failed", cancelled: "Cancelled" };

interface RunContext {
  appId: number;
  /** The saved action; null for a new action that was never saved. */
  savedAction: Action | null;
}

function RunFailure({ error, appId, savedAction }: RunContext & { error: NonNullable<StartedRun["error"]> }) {
  if ("status" in error) {
    return (
      <pre className="result failed">
        {error.message}
        {`\n${error.status}`}
      </pre>
    );
  }
  return (
    <>
      <pre className="result failed">{`${error.name}: ${error.message}`}</pre>
      <details>
        <summary>Stack</summary>
        <ErrorStack error={error} appId={appId} action={savedAction} />
      </details>
    </>
  );
}

interface RunOutcomeProps extends RunContext {
  run: StartedRun;
  isOutdated: boolean;
  /** Content below the error message, such as a button that removes the cause of the error. */
  children?: ReactNode;
}

export function RunOutcomeView({ run, isOutdated, children, ...location }: RunOutcomeProps) {
  const { state, runId, durationMs, error, result, cancelFault = null } = run;
  return (
    <div className="outcome" data-state={state}>
      <p className="row" role="status">
        <span className={`state ${state}`}>{RUN_STATE_LABELS[state]}</span>
        {durationMs !== undefined && <span className="hint">after {formatDuration(durationMs)}</span>}
        {runId !== null && (
          <a href={createHref({ appId: location.appId, view: "runs", item: String(runId) })}>run {runId}</a>
        )}
        {isOutdated && <span className="chip behind">from before your last change</span>}
      </p>
      {cancelFault !== null && state === "running" && (
        <p className="fault" role="alert">
          Not cancelled: {cancelFault}
        </p>
      )}
      {error && <RunFailure error={error} {...location} />}
      {children}
      {state === "completed" && <ResultView value={result} name={`run-${runId}.json`} />}
      <ConsoleLines lines={run.consoleLines} />
    </div>
  );
}

interface RunPanelProps extends RunContext {
  api: ApiClient;
  draft: ActionDraft;
  isDirty: boolean;
  runner: ActionRunner;
  payload: string;
  payloadFault: string | null;
  setPayload: (text: string) => void;
  startRun: () => void;
  /**
   * True if another person has deleted the action, or has saved it while this page had unsaved changes. The page can save
   * and run the action again after the user of the page has chosen how to continue.
   */
  isBlocked: boolean;
  /** True if the code or the payload has changed since the shown run. */
  isOutdated: boolean;
  /** Adds an origin to the draft's list of allowed origins. */
  allowOrigin: (origin: string) => void;
}

export function RunPanel(props: RunPanelProps) {
  const {
    api,
    appId,
    savedAction,
    draft,
    isDirty,
    runner,
    payload,
    payloadFault,
    setPayload,
    startRun,
    isBlocked,
    isOutdated,
  } = props;
  const { allowOrigin } = props;
  const { run, cancelRun } = runner;
  const blockedOrigin = run?.error ? findRejectedOrigin(run.error.message) : null;
  const obstacleText = findRunObstacle(draft);
  return (
    <div className="run-panel">
      <div className="payload">
        <label htmlFor="payload">Payload, a JSON object</label>
        <textarea
          id="payload"
          className="mono"
          spellCheck={false}
          value={payload}
          aria-invalid={payloadFault !== null}
          aria-describedby="payload-fault"
          onChange={(event) => setPayload(event.target.value)}
        />
        {savedAction && <PayloadPresets {...{ api, appId, payload, setPayload }} actionId={savedAction.id} />}
        <p id="payload-fault" className="fault" role="alert">
          {payloadFault}
        </p>
        {obstacleText && <p className="hint">{obstacleText}</p>}
        <div className="row">
          {run?.state === "running" ? (
            <button type="button" onClick={() => void cancelRun()} disabled={run.runId === null}>
              Cancel the run
            </button>
          ) : (
            <button type="button" className="primary" title="Ctrl+Enter" disabled={isBlocked} onClick={startRun}>
              {isDirty ? "Save and run" : "Run"}
            </button>
          )}
          <span className="hint">
            runs the draft <kbd>Ctrl Enter</kbd>
          </span>
        </div>
      </div>
      {run ? (
        <RunOutcomeView run={run} isOutdated={isOutdated} appId={appId} savedAction={savedAction}>
          <AllowInDraftButton origin={blockedOrigin} origins={draft.integrationOrigins} allowOrigin={allowOrigin} />
        </RunOutcomeView>
      ) : (
        <p className="hint empty">The result and what the action prints appear here.</p>
      )}
    </div>
  );
}
