/** Panel with the execution log of one action. It marks failures, and the person can expand the details of an entry. */
import { useState } from "react";
import type { ActionsState } from "../actions/use-actions.js";
import type { ApiClient } from "../shared/api.js";
import { LogEntries } from "./log-entries.js";
import { useExecutionLog } from "./use-log.js";

interface LogPanelProps {
  api: ApiClient;
  appId: number;
  actions: ActionsState;
  /** IDs of the action's draft and live version, whose log entries the panel shows. */
  versionIds: number[];
}

export function LogPanel({ api, appId, actions, versionIds }: LogPanelProps) {
  const [showsAllActions, setShowsAllActions] = useState(false);
  const [failuresOnly, setFailuresOnly] = useState(false);
  const { isConnected } = actions.logSubscription;
  const shownIds = showsAllActions ? null : versionIds;
  const { entries, fault, ...log } = useExecutionLog({
    api,
    appId,
    logSubscription: actions.logSubscription,
    versionIds: shownIds,
    isFailuresOnly: failuresOnly,
  });
  return (
    <section className="log-panel" aria-label="Execution log">
      <div className="row log-head">
        <span className={isConnected ? "live-dot on" : "live-dot"}>{isConnected ? "live" : "reconnecting…"}</span>
        <label className="check">
          <input
            type="checkbox"
            checked={showsAllActions}
            onChange={(event) => setShowsAllActions(event.target.checked)}
          />
          all actions
        </label>
        <label className="check">
          <input type="checkbox" checked={failuresOnly} onChange={(event) => setFailuresOnly(event.target.checked)} />
          failures only
        </label>
        {fault && (
          <span className="fault" role="alert">
            {fault.message}
          </span>
        )}
      </div>
      {entries?.length === 0 && !log.hasMore ? (
        <p className="hint empty">
          {failuresOnly ? "No execution has failed." : "Nothing here yet. Executions appear as they end."}
        </p>
      ) : (
        <LogEntries
          key={`${shownIds} ${failuresOnly}`}
          {...{ entries: entries ?? [], appId, ...log }}
          findLoggedAction={actions.findLoggedAction}
        />
      )}
    </section>
  );
}
