/** Hook for the data of Home: failures, current and next runs, usage and alerts. Reads the data at an interval and after each run. */
import type { LogSubscription } from "../actions/use-actions.js";
import type { ApiClient } from "../shared/api.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";
import { readHomeData } from "./read-home.js";

const REFRESH_INTERVAL_MS = 15_000;
/** Delay from the end of a run to the next read, so that several ended runs cause only one read. */
const RELOAD_DELAY_MS = 800;

export function useHomeData(api: ApiClient, appId: number, isEditor: boolean, { onEntry }: LogSubscription) {
  const home = useResource({
    queryKey: ["home", appId, isEditor],
    queryFn: () => readHomeData(api, appId, isEditor),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  useReloadAfterEvents(onEntry, home.reload, RELOAD_DELAY_MS);
  return home;
}
