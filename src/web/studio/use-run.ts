/** One run after the other of an action: what it prints as it prints it, then its result or its failure. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Api, asApiError } from "./api.js";
import { CancelRun, FollowConsole, RunAction, RunActionWithResult } from "./documents.js";
import type { ConsoleLine } from "./model.js";

export interface Run {
  state: "running" | "completed" | "failed";
  /** null until the service has accepted it. */
  runId: number | null;
  lines: ConsoleLine[];
  result?: unknown;
  error?: { status: string; message: string };
  /** Milliseconds until the answer was here. */
  took?: number;
}

const randomKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export interface Runner {
  run: Run | null;
  start(id: number, payload: unknown): Promise<void>;
  cancel(): Promise<void>;
}

export function useRun(api: Api, appId: number): Runner {
  const [run, setRun] = useState<Run | null>(null);
  const unfollow = useRef<() => void>(undefined);
  useEffect(() => () => unfollow.current?.(), []);

  const start = useCallback(
    async (id: number, payload: unknown) => {
      const began = performance.now();
      const change = (part: Partial<Run>) => setRun((old) => old && { ...old, ...part });
      const variables = { appId, id, payload };
      // The second request is the same run for the same key: the first tells its id, the second waits for its end.
      const key = randomKey();
      unfollow.current?.();
      setRun({ state: "running", runId: null, lines: [] });
      try {
        const { runId } = (await api.ask(RunAction, variables, key)).run;
        change({ runId });
        unfollow.current = api.follow(
          FollowConsole,
          { appId, runId },
          { next: ({ line }) => setRun((old) => old && { ...old, lines: [...old.lines, line] }) },
        );
        const { result } = (await api.ask(RunActionWithResult, variables, key)).run;
        change({ state: "completed", result, took: performance.now() - began });
      } catch (error) {
        const { status, message } = asApiError(error);
        change({ state: "failed", error: { status, message }, took: performance.now() - began });
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
