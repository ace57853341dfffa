/** Data of Home: failures, running and next runs, usage and alerts. Reads again at an interval and after each run. */
import type { Tail } from "../actions/use-actions.js";
import type { Api } from "../shared/api.js";
import { useReloadAfter } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";
import { readHome } from "./read-home.js";

const READ_AGAIN_MS = 15_000;
/** Runs that end together cause one read. */
const GATHER_MS = 800;

export function useHome(api: Api, appId: number, isEditor: boolean, { onEntry }: Tail) {
  const home = useResource({
    queryKey: ["home", appId, isEditor],
    queryFn: () => readHome(api, appId, isEditor),
    refetchInterval: READ_AGAIN_MS,
  });
  useReloadAfter(onEntry, home.reload, GATHER_MS);
  return home;
}
