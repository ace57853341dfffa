/**
 * View of an action for people with the role operator. It shows the action's state and runs the action with a payload. It shows no code and
 * no form fields. Runs the live version if there is one, otherwise the draft.
 */
import { useState } from "react";
import { LogPanel } from "../runs/log-panel.js";
import type { ActionSummary } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { createHref } from "../shell/studio-route.js";
import { parsePayload } from "./payload-text.js";
import { RunOutcomeView } from "./run-panel.js";
import { useActionRunner } from "./use-run.js";

interface OperatorActionViewProps extends PageProps {
  action: ActionSummary;
}

export function OperatorActionView({ api, appId, confirm, actions, go, action }: OperatorActionViewProps) {
  const { id, name, description, environment, triggers } = action;
  const liveVersion = actions.findLiveVersion(id);
  const { run, startRun: startWithPayload, cancelRun } = useActionRunner(api, appId);
  const [payload, setPayload] = useState("{}");
  const [fault, setFault] = useState<string | null>(null);
  const isActive = liveVersion ? liveVersion.active : action.active;
  const startRun = async () => {
    const parsed = parsePayload(payload);
    setFault("fault" in parsed ? parsed.fault : null);
    if ("fault" in parsed) return;
    await startWithPayload(id, parsed.payload, liveVersion ? "production" : "master");
  };
  const triggerKinds = [...new Set(triggers.map(({ trigger }) => trigger))].join(", ");
  return (
    <section className="workspace operated" aria-label={name}>
      <div className="workspace-head">
        <button
          type="button"
          className="quiet narrow-only"
          aria-label="Back to the list of actions"
          onClick={() => go({ item: null })}
        >
          ‹
        </button>
        <h2>{name}</h2>
        <span className={liveVersion ? "chip live" : "chip"}>{liveVersion ? "live" : "draft"}</span>
        <span className="hint">{isActive ? "active" : "inactive"}</span>
      </div>
      <div className="panel">
        {description && <p>{description}</p>}
        <p className="hint">
          Environment: {environment}. Triggers: {triggerKinds || "none"}.{" "}
          <a href={createHref({ appId, view: "runs", query: { action: String(id) } })}>Runs of this action</a>
        </p>
        <div className="run-panel">
          <div className="payload">
            <label htmlFor="payload">Payload, a JSON object</label>
            <textarea
              id="payload"
              className="mono"
              spellCheck={false}
              value={payload}
              aria-invalid={fault !== null}
              onChange={(event) => setPayload(event.target.value)}
            />
            <p className="fault" role="alert">
              {fault}
            </p>
            <div className="row">
              {run?.state === "running" ? (
                <button type="button" disabled={run.runId === null} onClick={() => void cancelRun()}>
                  Cancel the run
                </button>
              ) : (
                <button type="button" className="primary" onClick={() => void startRun()}>
                  Run
                </button>
              )}
              <span className="hint">
                {liveVersion ? "the live version" : "the draft: the action is not published"}
              </span>
            </div>
          </div>
          {run ? (
            <RunOutcomeView run={run} isOutdated={false} appId={appId} savedAction={null} />
          ) : (
            <p className="hint empty">The result and what the action prints appear here.</p>
          )}
        </div>
        <LogPanel {...{ api, appId, confirm, actions }} versionIds={liveVersion ? [id, liveVersion.id] : [id]} />
      </div>
    </section>
  );
}
