/**
 * Form that replays a run with the same payload or a changed payload. The person chooses the draft, the live version or
 * an older version of the action.
 */
import { useState } from "react";
import { parsePayload } from "../actions/payload-text.js";
import { ListActionVersions, ReplayRun } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatExactTime } from "../shared/format.js";
import type { RunDetails } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { Navigation, StudioRoute } from "../shell/studio-route.js";

interface ReplayFormProps {
  api: ApiClient;
  appId: number;
  run: RunDetails;
  route: StudioRoute;
  go: Navigation["go"];
  confirm: ConfirmFunction;
}

/** Version that the replay runs: "master" is the draft, "production" is the live version, a number is the ID of an older version. */
type ReplayTarget = "master" | "production" | `${number}`;

const toReplayOptions = (target: ReplayTarget) =>
  target === "master" || target === "production" ? { copy: target } : { versionId: Number(target) };

/**
 * Hook that reads the older versions of the action after a call of `requestVersions`. If the read fails, the form offers only the draft and
 * the live version.
 */
function useOlderVersions(appId: number, masterId: number | null) {
  const [isRequested, setRequested] = useState(false);
  const query = createQueryOptions(ListActionVersions, { appId, id: masterId ?? 0 });
  const { value } = useResource({ ...query, enabled: isRequested && masterId !== null, refetchOnWindowFocus: false });
  return { versions: value?.history.versions ?? [], requestVersions: () => setRequested(true) };
}

export function ReplayForm({ api, appId, run, route, go, confirm }: ReplayFormProps) {
  const { masterId, copy, versionId, log } = run;
  const loggedPayload = log ? JSON.stringify(log.payload, null, 2) : "{}";
  const [text, setText] = useState<string | null>(null);
  const [target, setTarget] = useState<ReplayTarget>(versionId === null ? copy : `${versionId}`);
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { versions, requestVersions } = useOlderVersions(appId, masterId);
  if (masterId === null) return null;

  const startReplay = async () => {
    const parsed = text === null ? null : parsePayload(text);
    if (parsed && "fault" in parsed) return setFault(parsed.fault);
    if (target === "production" && !(await confirm(LIVE_RUN_QUESTION))) return;
    setBusy(true);
    setFault(null);
    try {
      const payload = parsed && text !== loggedPayload ? { payload: parsed.payload } : {};
      const options = { ...toReplayOptions(target), ...payload };
      const { runId } = (await api.request(ReplayRun, { appId, runId: run.id, options })).run;
      go({ view: "runs", item: String(runId) }, { startRoute: route });
    } catch (error) {
      setFault(asApiError(error).message);
      setBusy(false);
    }
  };
  const isKnownVersion = versions.some(({ id }) => String(id) === target);
  return (
    <section className="run-part run-again" aria-label="Run again">
      <h3>Run again</h3>
      <label htmlFor="again-payload">With this payload</label>
      <textarea
        id="again-payload"
        className="mono"
        rows={6}
        spellCheck={false}
        readOnly={isBusy}
        value={text ?? loggedPayload}
        onChange={(event) => setText(event.target.value)}
      />
      <label htmlFor="again-target">Version</label>
      <div className="row">
        <select
          id="again-target"
          value={target}
          disabled={isBusy}
          onFocus={requestVersions}
          onChange={(event) => setTarget(event.target.value as ReplayTarget)}
        >
          <option value="master">Draft</option>
          <option value="production">Live version</option>
          {!isKnownVersion && target !== "master" && target !== "production" && (
            <option value={target}>Version {target}</option>
          )}
          {versions.map(({ id, createdAt, name }) => (
            <option key={id} value={id}>
              Version {id} of {formatExactTime(createdAt)}: {name}
            </option>
          ))}
        </select>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void startReplay()}>
          Run again
        </button>
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}

const LIVE_RUN_QUESTION = {
  title: "Run the live version?",
  explanation: "The run can write data, charge users or send messages again.",
  confirmLabel: "Run the live version",
};
