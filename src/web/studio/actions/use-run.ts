/** Hook for the runs of an action: starts a run, receives its console lines, and then its result or error. */
import { useCallback, useEffect, useRef, useState } from "react";
import { ReadRunOutcome, RunAction } from "../documents.js";
import { cancelRun as requestCancellation } from "../runs/cancel-run.js";
import { followRunConsole } from "../runs/follow-run-console.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { ConsoleLine, ScriptError } from "../shared/model.js";

export interface StartedRun {
  state: "running" | "completed" | "failed" | "cancelled";
  /** ID of the run; null until the service has accepted the request. */
  runId: number | null;
  consoleLines: ConsoleLine[];
  result?: unknown;
  /** Either an error of the service with its status, or an error of the action's code with its name and stack. */
  error?: { status: string; message: string } | ScriptError;
  /** Duration of the run in milliseconds; missing until the run has ended. */
  durationMs?: number;
  /** Error message if the last attempt to cancel the run failed. */
  cancelFault?: string | null;
}

export interface ActionRunner {
  run: StartedRun | null;
  /** Runs an action. @param version "master" (the default) is the draft, "production" the live version */
  startRun(id: number, payload: unknown, version?: "master" | "production"): Promise<void>;
  cancelRun(): Promise<void>;
}

/** Interval between the requests that read the state of a run until it has ended. */
const POLL_INTERVAL_MS = 1_000;

/** Maximum number of consecutive requests without a response before the page shows an error. */
const MAX_LOST_REQUESTS = 5;

/**
 * Requests the state of a run at an interval until the run has ended. Returns its outcome, or null if `signal` aborts first.
 * @throws ApiError
 */
export async function waitForRunEnd(
  api: ApiClient,
  appId: number,
  runId: number,
  signal: AbortSignal,
): Promise<Partial<StartedRun> | null> {
  let lostRequestCount = 0;
  for (;;) {
    const answer = await api.request(ReadRunOutcome, { appId, runId }).catch((error: unknown) => {
      lostRequestCount += 1;
      if (asApiError(error).status !== "OFFLINE" || lostRequestCount > MAX_LOST_REQUESTS) throw error;
      return null;
    });
    if (signal.aborted) return null;
    if (answer) lostRequestCount = 0;
    const { state, log = null } = answer?.run ?? {};
    if (log) {
      const duration = log.duration;
      if (state === "cancelled") return { state, durationMs: duration };
      if (log.error) return { state: "failed", error: log.error, durationMs: duration };
      return { state: "completed", result: (log.result as { data?: unknown } | null)?.data, durationMs: duration };
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

export function useActionRunner(api: ApiClient, appId: number): ActionRunner {
  const [run, setRun] = useState<StartedRun | null>(null);
  const currentAbort = useRef(new AbortController());
  useEffect(() => () => currentAbort.current.abort(), []);

  const startRun = useCallback(
    async (id: number, payload: unknown, version: "master" | "production" | null = null) => {
      currentAbort.current.abort();
      currentAbort.current = new AbortController();
      const { signal } = currentAbort.current;
      const changeRun = (part: Partial<StartedRun>) => signal.aborted || setRun((old) => old && { ...old, ...part });
      setRun({ state: "running", runId: null, consoleLines: [] });
      const addLines = (lines: ConsoleLine[]) =>
        signal.aborted || setRun((old) => old && { ...old, consoleLines: old.consoleLines.concat(lines) });
      try {
        const { runId } = (await api.request(RunAction, { appId, id, payload, copy: version })).run;
        if (signal.aborted) return;
        changeRun({ runId });
        // Waits until the run's console ends, or until the subscription to the console fails.
        await new Promise<void>((resolve) => {
          const stopWaiting = () => resolve();
          const stopFollowing = followRunConsole(api, { appId, runId }, { addLines, endConsole: stopWaiting });
          signal.addEventListener("abort", () => {
            stopFollowing();
            stopWaiting();
          });
        });
        const outcome = await waitForRunEnd(api, appId, runId, signal);
        if (outcome) changeRun(outcome);
      } catch (error) {
        const { status, message } = asApiError(error);
        changeRun({ state: "failed", error: { status, message } });
      }
    },
    [api, appId],
  );

  const runId = run?.runId ?? null;
  const cancelRun = useCallback(async () => {
    if (runId === null) return;
    const showFault = (cancelFault: string | null) =>
      setRun((old) => (old?.runId === runId ? { ...old, cancelFault } : old));
    showFault(null);
    await requestCancellation(api, appId, runId).catch((error: unknown) => showFault(asApiError(error).message));
  }, [api, appId, runId]);

  return { run, startRun, cancelRun };
}
