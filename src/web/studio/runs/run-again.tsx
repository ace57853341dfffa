/** A past run again: its payload as it was or changed, by the draft, the live copy or a version. */
import { useEffect, useState } from "react";
import { parsedPayload } from "../actions/payload-text.js";
import { ListVersions, ReplayRun } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import { exact } from "../shared/format.js";
import type { RunDetails, Version } from "../shared/model.js";
import type { Navigation } from "../shell/place.js";

interface RunAgainProps {
  api: Api;
  appId: number;
  run: RunDetails;
  go: Navigation["go"];
  ask: Ask;
}

/** A copy, or the number of a version. */
type Target = "master" | "production" | `${number}`;

const optionsOf = (target: Target) =>
  target === "master" || target === "production" ? { copy: target } : { versionId: Number(target) };

/** The versions of the action, asked for when they are first to be chosen from. */
function useVersions(api: Api, appId: number, masterId: number | null) {
  const [versions, setVersions] = useState<Version[]>([]);
  const [isWanted, setWanted] = useState(false);
  useEffect(() => {
    if (!isWanted || masterId === null) return;
    let isOver = false;
    api.ask(ListVersions, { appId, id: masterId }).then(
      ({ history }) => isOver || setVersions(history.versions),
      // Without them there are the two copies.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [api, appId, masterId, isWanted]);
  return { versions, want: () => setWanted(true) };
}

export function RunAgain({ api, appId, run, go, ask }: RunAgainProps) {
  const { masterId, copy, versionId, log } = run;
  const was = log ? JSON.stringify(log.payload, null, 2) : "{}";
  const [text, setText] = useState<string | null>(null);
  const [target, setTarget] = useState<Target>(versionId === null ? copy : `${versionId}`);
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { versions, want } = useVersions(api, appId, masterId);
  if (masterId === null) return null;

  const start = async () => {
    const parsed = text === null ? null : parsedPayload(text);
    if (parsed && "fault" in parsed) return setFault(parsed.fault);
    if (target === "production" && !(await ask(LIVE))) return;
    setBusy(true);
    setFault(null);
    try {
      const payload = parsed && text !== was ? { payload: parsed.payload } : {};
      const options = { ...optionsOf(target), ...payload };
      const { runId } = (await api.ask(ReplayRun, { appId, runId: run.id, options })).run;
      go({ view: "runs", item: String(runId) });
    } catch (error) {
      setFault(asApiError(error).message);
      setBusy(false);
    }
  };
  const known = versions.some(({ id }) => String(id) === target);
  return (
    <section className="run-part run-again" aria-label="Run again">
      <h3>Run again</h3>
      <label htmlFor="again-payload">With this payload</label>
      <textarea
        id="again-payload"
        className="mono"
        rows={6}
        spellCheck={false}
        value={text ?? was}
        onChange={(event) => setText(event.target.value)}
      />
      <label htmlFor="again-target">By</label>
      <div className="row">
        <select
          id="again-target"
          value={target}
          onFocus={want}
          onChange={(event) => setTarget(event.target.value as Target)}
        >
          <option value="master">the draft</option>
          <option value="production">the live copy</option>
          {!known && target !== "master" && target !== "production" && <option value={target}>version {target}</option>}
          {versions.map(({ id, createdAt, name }) => (
            <option key={id} value={id}>
              version {id} of {exact(createdAt)}: {name}
            </option>
          ))}
        </select>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void start()}>
          Run again
        </button>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}

const LIVE = {
  title: "Run the live copy?",
  text: "It does again what it does for the app's users: it may write, charge or send.",
  yes: "Run the live copy",
};
