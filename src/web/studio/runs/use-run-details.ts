/** Hook for one run by its ID. Reads the run at an interval until it has ended, and receives its console lines. */
import { useCallback, useEffect, useState } from "react";
import { ReadRun } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import type { ConsoleLine } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { cancelRun } from "./cancel-run.js";
import { followRunConsole } from "./follow-run-console.js";
import { isUnfinished } from "./run-words.js";

/** Interval at which the hook reads the run until it has ended. */
const REFRESH_INTERVAL_MS = 1_000;

function useConsole(api: ApiClient, appId: number, runId: number, endConsole: () => void): ConsoleLine[] {
  const [lines, setLines] = useState<ConsoleLine[]>([]);
  useEffect(() => {
    const addLines = (newLines: ConsoleLine[]) => setLines((old) => old.concat(newLines));
    const unfollow = followRunConsole(api, { appId, runId }, { addLines, endConsole });
    return () => {
      setLines([]);
      unfollow();
    };
  }, [api, appId, runId, endConsole]);
  return lines;
}

export function useRunDetails(api: ApiClient, appId: number, runId: number) {
  const { value, fault, reload, applyChange } = useResource({
    ...createQueryOptions(ReadRun, { appId, runId }),
    // Removes the run from the cache when its page is closed, because its result may be megabytes long.
    gcTime: 0,
    refetchOnWindowFocus: ({ state: { data } }) => !data || isUnfinished(data.run),
    refetchInterval: ({ state: { data } }) => (data && isUnfinished(data.run) ? REFRESH_INTERVAL_MS : false),
  });
  const onEnd = useCallback(() => void reload(), [reload]);
  const lines = useConsole(api, appId, runId, onEnd);
  const cancelAndReload = async () => {
    await applyChange(() => cancelRun(api, appId, runId));
  };
  return { run: value?.run ?? null, fault, lines, cancelAndReload };
}
