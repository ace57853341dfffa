/**
 * Hook for the scheduled runs of an app in the past seven days and the next seven days. Reads them each minute, after scheduled runs,
 * and after changes of actions.
 */
import { useCallback } from "react";
import type { ActionsState } from "../actions/use-actions.js";
import { ReadScheduleWeek } from "../documents.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

const REFRESH_INTERVAL_MS = 60_000;
const RELOAD_DELAY_MS = 1_000;

export function useScheduleWeek(appId: number, { logSubscription, changes }: ActionsState) {
  const { onEntry } = logSubscription;
  const { onChange } = changes;
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ReadScheduleWeek, { appId }),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const subscribe = useCallback(
    (listener: () => void) => {
      const ends = [onEntry(({ mode }) => void (mode === "scheduled" && listener())), onChange(listener)];
      return () => {
        for (const unfollow of ends) unfollow();
      };
    },
    [onEntry, onChange],
  );
  useReloadAfterEvents(subscribe, reload, RELOAD_DELAY_MS);
  return { week: value?.week ?? null, fault };
}
