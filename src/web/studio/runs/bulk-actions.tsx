/**
 * Button that replays or cancels the listed runs one after the other, at most MAX_RUNS_PER_CONFIRMATION, after a confirmation. The list's
 * filter by state determines the operation. Without this filter, there is no button.
 */
import { useState } from "react";
import { CancelRun, ReplayRun } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatCount } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { ForOperators } from "../shell/role.js";
import { sendRequestForEachRun } from "./bulk-send.js";

/** Maximum number of runs that one confirmation replays or cancels. */
const MAX_RUNS_PER_CONFIRMATION = 100;

interface BulkOperation {
  verb: string;
  pastParticiple: string;
  confirmationText: string;
  isDangerous?: true;
  sendRequest(api: ApiClient, appId: number, runId: number): Promise<unknown>;
}

const REPLAY_OPERATION: BulkOperation = {
  verb: "Replay",
  pastParticiple: "queued",
  confirmationText:
    "Each run starts again with its payload. Runs of the draft use the current draft, other runs the current live version.",
  sendRequest: (api, appId, runId) => api.request(ReplayRun, { appId, runId, options: null }),
};
const CANCEL_OPERATION: BulkOperation = {
  verb: "Cancel",
  pastParticiple: "cancelled",
  confirmationText: "Running runs are stopped, and queued runs do not start.",
  isDangerous: true,
  sendRequest: (api, appId, runId) => api.request(CancelRun, { appId, runId }),
};

/** Operation of the button (replay or cancel), by the state of the listed runs. */
const OPERATIONS_BY_STATE: Readonly<Record<string, BulkOperation>> = {
  queued: CANCEL_OPERATION,
  running: CANCEL_OPERATION,
  failed: REPLAY_OPERATION,
  skipped: REPLAY_OPERATION,
  cancelled: REPLAY_OPERATION,
};

interface BulkActionsProps {
  api: ApiClient;
  appId: number;
  confirm: ConfirmFunction;
  /** State of all listed runs, from the list's filter; undefined if the list contains runs of any state. */
  state: string | undefined;
  runs: readonly RunRow[];
}

export function BulkActions({ api, appId, confirm, state, runs }: BulkActionsProps) {
  const [progress, setProgress] = useState("");
  const [isBusy, setBusy] = useState(false);
  const operation = OPERATIONS_BY_STATE[state ?? ""];
  if (!operation || (runs.length === 0 && progress === "")) return null;
  const { verb, pastParticiple, confirmationText, isDangerous = false } = operation;
  const chosenRuns = runs.slice(0, MAX_RUNS_PER_CONFIRMATION);
  const startOperation = async () => {
    const title = `${verb} ${formatCount(chosenRuns.length, "run", "runs")}?`;
    if (
      !(await confirm({
        title,
        explanation: confirmationText,
        confirmLabel: verb === "Cancel" ? "Cancel them" : verb,
        isDangerous,
      }))
    )
      return;
    setBusy(true);
    const ids = chosenRuns.map(({ id }) => id);
    const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    const sendRequest = (id: number) => operation.sendRequest(api, appId, id);
    setProgress(
      await sendRequestForEachRun(ids, {
        pastParticiple,
        sendRequest,
        toRequestFailure: asApiError,
        waitSeconds: wait,
        reportProgress: setProgress,
      }),
    );
    setBusy(false);
  };
  return (
    <ForOperators>
      <span className="hint" role="status">
        {progress}
      </span>
      <button type="button" disabled={isBusy || chosenRuns.length === 0} onClick={() => void startOperation()}>
        {verb} {chosenRuns.length === 1 ? "this run" : `these ${chosenRuns.length} runs`}
      </button>
    </ForOperators>
  );
}
