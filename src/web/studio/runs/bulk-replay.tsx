/** Repeats the listed runs after a question, one after the other, each with its own payload. Offered for runs that did not complete. */
import { useState } from "react";
import { ReplayRun } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import { counted } from "../shared/format.js";
import type { RunRow } from "../shared/model.js";
import { Operations } from "../shell/role.js";

/** Maximum number of runs that one press repeats. */
const RUNS_MAX = 100;
const STATES: readonly string[] = ["failed", "skipped", "cancelled"];

interface BulkReplayProps {
  api: Api;
  appId: number;
  ask: Ask;
  /** State that the list is filtered by. */
  state: string | undefined;
  runs: readonly RunRow[];
}

export function BulkReplay({ api, appId, ask, state, runs }: BulkReplayProps) {
  const [progress, setProgress] = useState("");
  const [isBusy, setBusy] = useState(false);
  if (!STATES.includes(state ?? "") || (runs.length === 0 && progress === "")) return null;
  const chosen = runs.slice(0, RUNS_MAX);
  const replay = async () => {
    const title = `Replay ${counted(chosen.length, "run", "runs")}?`;
    const text =
      "Each runs again with its own payload, by the current draft or live version: the one of the two that ran before.";
    if (!(await ask({ title, text, yes: "Replay" }))) return;
    setBusy(true);
    let done = 0;
    try {
      for (const { id } of chosen) {
        setProgress(`${done} of ${chosen.length} queued…`);
        await api.ask(ReplayRun, { appId, runId: id, options: null });
        done += 1;
      }
      setProgress(`${counted(done, "run", "runs")} queued.`);
    } catch (error) {
      setProgress(`${counted(done, "run", "runs")} queued, then: ${asApiError(error).message}`);
    }
    setBusy(false);
  };
  return (
    <Operations>
      <span className="hint" role="status">
        {progress}
      </span>
      <button type="button" disabled={isBusy || chosen.length === 0} onClick={() => void replay()}>
        Replay {chosen.length === 1 ? "this run" : `these ${chosen.length} runs`}
      </button>
    </Operations>
  );
}
