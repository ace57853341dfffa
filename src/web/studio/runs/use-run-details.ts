/** One run by its number: read again until it has ended, with what it prints as it prints it. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { CancelRun, ReadRun } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { ConsoleLine, RunDetails } from "../shared/model.js";
import { followConsole } from "./follow-console.js";
import { isUnfinished } from "./run-words.js";

/** How often a run is looked at that has not ended. */
const LOOK_MS = 1_000;

function useConsole(api: Api, appId: number, runId: number, end: () => void): ConsoleLine[] {
  const [lines, setLines] = useState<ConsoleLine[]>([]);
  useEffect(() => {
    const add = (come: ConsoleLine[]) => setLines((old) => old.concat(come));
    const leave = followConsole(api, { appId, runId }, { add, end });
    return () => {
      setLines([]);
      leave();
    };
  }, [api, appId, runId, end]);
  return lines;
}

export function useRunDetails(api: Api, appId: number, runId: number) {
  const [run, setRun] = useState<RunDetails | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);

  const reload = useCallback(async () => {
    try {
      setRun((await api.ask(ReadRun, { appId, runId })).run);
      setFault(null);
    } catch (error) {
      setFault(asApiError(error));
    }
  }, [api, appId, runId]);
  const onEnd = useCallback(() => void reload(), [reload]);
  const lines = useConsole(api, appId, runId, onEnd);
  useEffect(() => void reload(), [reload]);
  const isWaiting = run !== null && isUnfinished(run);
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setInterval(() => document.hidden || void reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [isWaiting, reload]);

  const cancel = useCallback(async () => {
    // One that has ended meanwhile shows its own end.
    await api.ask(CancelRun, { appId, runId }).catch(() => undefined);
    await reload();
  }, [api, appId, runId, reload]);
  return { run, fault, lines, cancel };
}
