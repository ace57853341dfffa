/** Data of Home: failures, running and next runs, usage and alerts. Reads again at an interval and after each run. */
import { useCallback, useEffect } from "react";
import type { Tail } from "../actions/use-actions.js";
import type { Api } from "../shared/api.js";
import { useLoaded } from "../shared/use-loaded.js";
import { readHome } from "./read-home.js";

const READ_AGAIN_MS = 15_000;
/** Runs that end together cause one read. */
const GATHER_MS = 800;

export function useHome(api: Api, appId: number, isEditor: boolean, { onEntry }: Tail) {
  const read = useCallback(() => readHome(api, appId, isEditor), [api, appId, isEditor]);
  const loaded = useLoaded(api, read, READ_AGAIN_MS);
  const { reload } = loaded;
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const end = onEntry(() => {
      due ??= setTimeout(() => {
        due = undefined;
        void reload();
      }, GATHER_MS);
    });
    return () => {
      clearTimeout(due);
      end();
    };
  }, [onEntry, reload]);
  return loaded;
}
