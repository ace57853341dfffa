/** Data of Home: failures, running and next runs, usage and alerts. Reads again at an interval and after each run. */
import { useCallback, useEffect } from "react";
import type { Tail } from "../actions/use-actions.js";
import { ReadHome, ReadHomeOfEditors, type ReadHomeOfEditorsQuery, type ReadHomeQuery } from "../documents.js";
import type { Api } from "../shared/api.js";
import { useLoaded } from "../shared/use-loaded.js";

export const DAY_MS = 24 * 60 * 60 * 1000;
const READ_AGAIN_MS = 15_000;
/** Runs that end together cause one read. */
const GATHER_MS = 800;

export interface HomeData extends ReadHomeQuery {
  /** null for people who may not edit. */
  watch: ReadHomeOfEditorsQuery | null;
}

export function useHome(api: Api, appId: number, isEditor: boolean, { onEntry }: Tail) {
  const read = useCallback(async (): Promise<HomeData> => {
    const from = new Date(Date.now() - DAY_MS).toISOString();
    const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
    const [home, watch] = await Promise.all([
      api.ask(ReadHome, { appId, from, timezone }),
      isEditor ? api.ask(ReadHomeOfEditors, { appId }) : null,
    ]);
    return { ...home, watch };
  }, [api, appId, isEditor]);
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
