/** One run after the other of an action: what it prints as it prints it, then its result or its failure. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { CancelRun, GetRun, RunAction } from "../documents.js";
import { followConsole } from "../runs/follow-console.js";
import { type Api, asApiError } from "../shared/api.js";
import type { ConsoleLine, ScriptError } from "../shared/model.js";

export interface Run {
  state: "running" | "completed" | "failed" | "cancelled";
  /** null until the service has accepted it. */
  runId: number | null;
  lines: ConsoleLine[];
  result?: unknown;
  /** A refusal has the service's status; a script's failure its name and stack. */
  error?: { status: string; message: string } | ScriptError;
  /** Milliseconds that it ran. */
  took?: number;
}

export interface Runner {
  run: Run | null;
  /** @param copy the draft unless named */
  start(id: number, payload: unknown, copy?: "master" | "production"): Promise<void>;
  cancel(): Promise<void>;
}

/** Interval of the requests that wait for the end of a run. */
const POLL_MS = 1_000;

/** Maximum number of requests in a row without an answer. */
const LOST_MAX = 5;

/** Waits for the end of a run and returns it; null if `signal` is aborted first. @throws ApiError */
export async function endOf(api: Api, appId: number, runId: number, signal: AbortSignal): Promise<Partial<Run> | null> {
  let lost = 0;
  for (;;) {
    const answer = await api.ask(GetRun, { appId, runId }).catch((error: unknown) => {
      lost += 1;
      if (asApiError(error).status !== "OFFLINE" || lost > LOST_MAX) throw error;
      return null;
    });
    if (signal.aborted) return null;
    if (answer) lost = 0;
    const { state, log = null } = answer?.run ?? {};
    if (log) {
      const took = log.duration;
      if (state === "cancelled") return { state, took };
      if (log.error) return { state: "failed", error: log.error, took };
      return { state: "completed", result: (log.result as { data?: unknown } | null)?.data, took };
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

export function useRun(api: Api, appId: number): Runner {
  const [run, setRun] = useState<Run | null>(null);
  const current = useRef(new AbortController());
  useEffect(() => () => current.current.abort(), []);

  const start = useCallback(
    async (id: number, payload: unknown, copy: "master" | "production" | null = null) => {
      current.current.abort();
      current.current = new AbortController();
      const { signal } = current.current;
      const change = (part: Partial<Run>) => signal.aborted || setRun((old) => old && { ...old, ...part });
      setRun({ state: "running", runId: null, lines: [] });
      const add = (lines: ConsoleLine[]) =>
        signal.aborted || setRun((old) => old && { ...old, lines: old.lines.concat(lines) });
      try {
        const { runId } = (await api.ask(RunAction, { appId, id, payload, copy })).run;
        if (signal.aborted) return;
        change({ runId });
        // The console ends with the run.
        await new Promise<void>((resolve) => {
          const end = () => resolve();
          const leave = followConsole(api, { appId, runId }, { add, end });
          signal.addEventListener("abort", () => {
            leave();
            end();
          });
        });
        const outcome = await endOf(api, appId, runId, signal);
        if (outcome) change(outcome);
      } catch (error) {
        const { status, message } = asApiError(error);
        change({ state: "failed", error: { status, message } });
      }
    },
    [api, appId],
  );

  const runId = run?.runId ?? null;
  const cancel = useCallback(async () => {
    // A run that has ended meanwhile cannot be cancelled, and shows its own end.
    if (runId !== null) await api.ask(CancelRun, { appId, runId }).catch(() => undefined);
  }, [api, appId, runId]);

  return { run, start, cancel };
}
