/** The execution log, of one action or of all: failures at a glance, details on demand. */
import { useState } from "react";
import type { Api } from "./api.js";
import { exact, lasted, moment, shown } from "./format.js";
import type { LogEntry, ScriptError } from "./model.js";
import type { Actions } from "./use-actions.js";
import { isCancelled, isFailed, useLog } from "./use-log.js";

interface Verdict {
  className: string;
  words: string;
}

function verdictOf(entry: LogEntry): Verdict {
  if (isCancelled(entry)) return { className: "entry cancelled", words: "⊘ cancelled" };
  return isFailed(entry)
    ? { className: "entry failed", words: "✕ failed" }
    : { className: "entry", words: "✓ completed" };
}

/** A stack begins with the error as a rule; then it says it all. */
function errorText({ name, message, stack }: ScriptError): string {
  return stack.includes(message) ? stack : `${name}: ${message}\n\n${stack}`;
}

/** What execute returned; null where the log holds none. */
const resultOf = ({ result }: LogEntry) => result as { data?: unknown } | null;

function Details({ entry }: { entry: LogEntry }) {
  const { payload, error, taskId, runOn } = entry;
  const result = resultOf(entry);
  return (
    <div className="entry-details">
      <div>
        <h4>Payload</h4>
        <pre>{shown(payload)}</pre>
      </div>
      <div>
        <h4>{error ? "Error" : "Result"}</h4>
        {error && <pre className="failed">{errorText(error)}</pre>}
        {!error && <pre>{result ? shown(result.data) : "A scheduled run keeps no result."}</pre>}
      </div>
      <p className="hint">
        action id {taskId}, on the {runOn}
      </p>
    </div>
  );
}

function Entry({ entry, whose }: { entry: LogEntry; whose: Actions["whose"] }) {
  const [open, setOpen] = useState(false);
  const { error, createdAt, taskId, mode, duration } = entry;
  const owner = whose(taskId);
  const text = error ? `${error.name}: ${error.message}` : (JSON.stringify(resultOf(entry)?.data) ?? "");
  const { className, words } = verdictOf(entry);
  return (
    <li className={className}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="verdict">{words}</span>
        <time dateTime={createdAt} title={exact(createdAt)}>
          {moment(createdAt)}
        </time>
        <b>{owner?.name ?? `action ${taskId}`}</b>
        <span className={owner?.live ? "chip live" : "chip"}>{owner?.live ? "live" : "master"}</span>
        <span className="mode">{mode}</span>
        <span className="took">{lasted(duration)}</span>
        <span className="gist">{text}</span>
      </button>
      {open && <Details entry={entry} />}
    </li>
  );
}

interface LogPanelProps {
  api: Api;
  appId: number;
  actions: Actions;
  /** The copies of one action; null for all of the app. */
  ids: number[] | null;
}

export function LogPanel({ api, appId, actions, ids }: LogPanelProps) {
  const [all, setAll] = useState(false);
  const [failuresOnly, setFailuresOnly] = useState(false);
  const { live } = actions.tail;
  const wanted = all ? null : ids;
  const { entries, more, fault, loadMore } = useLog({ api, appId, tail: actions.tail, ids: wanted, failuresOnly });
  return (
    <section className={ids ? "log-panel" : "log-panel whole"} aria-label="Execution log">
      <div className="row log-head">
        <span className={live ? "live-dot on" : "live-dot"}>{live ? "live" : "reconnecting…"}</span>
        {ids && (
          <label className="check">
            <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
            all actions
          </label>
        )}
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
      <ul className="entries">
        {entries?.map((entry) => (
          <Entry key={entry.id} entry={entry} whose={actions.whose} />
        ))}
      </ul>
      {entries?.length === 0 && (
        <p className="hint empty">
          {failuresOnly ? "No execution has failed." : "Nothing here yet. Executions appear as they end."}
        </p>
      )}
      {more && (
        <button type="button" className="link" onClick={loadMore}>
          Load older entries
        </button>
      )}
    </section>
  );
}
