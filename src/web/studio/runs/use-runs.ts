/** Hook for the runs that match a filter. Loads the newest runs, and older ones on request. Reads the newest runs again after changes. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { LogSubscription } from "../actions/use-actions.js";
import { FindRuns, type FindRunsQueryVariables } from "../documents.js";
import { type ApiClient, type ApiError, asApiError } from "../shared/api.js";
import type { RunRow } from "../shared/model.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";
import { cancelRun } from "./cancel-run.js";
import { isUnfinished } from "./run-words.js";

const PAGE_SIZE = 100;
/** Delay from the end of a run to the next read, so that several ended runs cause only one read. */
const RELOAD_DELAY_MS = 400;
/** Interval between reads while a listed run is queued or running. */
const UNFINISHED_REFRESH_INTERVAL_MS = 3_000;
/**
 * Interval between reads while all listed runs have ended, because the service sends no event when a run is queued or starts. A text search
 * is not repeated at this interval.
 */
const REFRESH_INTERVAL_MS = 5_000;
/** Number of consecutive pages without a matching run after which a search pauses until the person continues it. */
const MAX_EMPTY_PAGES = 10;

export type RunsFilter = Omit<FindRunsQueryVariables, "appId" | "before" | "limit">;

export interface RunListState {
  /** Runs that match the filter, newest first; null until they are loaded for the first time. */
  runs: RunRow[] | null;
  total: { count: number; isExact: boolean } | null;
  /** True if the service has older runs that it has not searched yet. They may match the filter. */
  hasMore: boolean;
  /** True if the search paused after MAX_EMPTY_PAGES pages without a matching run. */
  isPaused: boolean;
  isLoading: boolean;
  fault: ApiError | null;
  loadMore(): void;
  /** Cancels a run and reads the newest runs again. @throws ApiError */
  cancelRun(runId: number): Promise<void>;
}

/** Merges two lists of runs, newest first. If a run is in both lists, the result contains it as in `newerRuns`. */
function mergeRuns(newerRuns: RunRow[], knownRuns: RunRow[]): RunRow[] {
  const oldestId = newerRuns.at(-1)?.id ?? Number.POSITIVE_INFINITY;
  const ids = new Set(newerRuns.map(({ id }) => id));
  const newerKnownRuns = knownRuns.filter(({ id }) => id > oldestId && !ids.has(id));
  const olderKnownRuns = knownRuns.filter(({ id }) => id < oldestId);
  const first = newerKnownRuns.length === 0 ? newerRuns : [...newerRuns, ...newerKnownRuns].sort((a, b) => b.id - a.id);
  return [...first, ...olderKnownRuns];
}

export function useRuns({
  api,
  appId,
  filter,
  logSubscription,
}: {
  api: ApiClient;
  appId: number;
  filter: RunsFilter;
  logSubscription: LogSubscription;
}): RunListState {
  const [runs, setRuns] = useState<RunRow[] | null>(null);
  const [total, setTotal] = useState<RunListState["total"]>(null);
  const [nextCursor, setNextCursor] = useState<number | null>(null);
  const [isPaused, setPaused] = useState(false);
  const [isLoading, setLoading] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const key = JSON.stringify(filter);
  /** Number of filter changes so far. The hook ignores responses to requests with an earlier filter. */
  const filterChangeCount = useRef(0);
  const isLoadPending = useRef(false);
  /** True after the first page for the current filter was loaded. */
  const isLoaded = useRef(false);

  const readPage = useCallback(
    async (before: number | null) => {
      const request = { ...(JSON.parse(key) as RunsFilter), appId, before, limit: PAGE_SIZE };
      return (await api.request(FindRuns, request)).found;
    },
    [api, appId, key],
  );

  /** Reads pages of runs older than `before` (null: the newest) until a page contains a matching run, at most MAX_EMPTY_PAGES pages. */
  const loadPages = useCallback(
    async (before: number | null, countAtStart: number) => {
      if (isLoadPending.current) return;
      isLoadPending.current = true;
      setLoading(true);
      try {
        let from = before;
        for (let remainingPages = MAX_EMPTY_PAGES; remainingPages > 0; remainingPages -= 1) {
          const runsPage = await readPage(from);
          if (filterChangeCount.current !== countAtStart) return;
          if (from === null) setTotal({ count: runsPage.pagination.total, isExact: runsPage.pagination.totalIsExact });
          isLoaded.current = true;
          setRuns((old) => (old ?? []).concat(runsPage.runs));
          setNextCursor(runsPage.pagination.nextBefore);
          setFault(null);
          from = runsPage.pagination.nextBefore;
          setPaused(runsPage.runs.length === 0 && from !== null && remainingPages === 1);
          if (runsPage.runs.length > 0 || from === null) break;
        }
      } catch (error) {
        if (filterChangeCount.current === countAtStart) setFault(asApiError(error));
      } finally {
        if (filterChangeCount.current === countAtStart) {
          isLoadPending.current = false;
          setLoading(false);
        }
      }
    },
    [readPage],
  );

  useEffect(() => {
    filterChangeCount.current += 1;
    isLoadPending.current = false;
    isLoaded.current = false;
    setRuns(null);
    setTotal(null);
    setNextCursor(null);
    setPaused(false);
    void loadPages(null, filterChangeCount.current);
  }, [loadPages]);

  const refresh = useCallback(async () => {
    const countAtStart = filterChangeCount.current;
    if (isLoadPending.current) return;
    if (!isLoaded.current) return loadPages(null, countAtStart);
    try {
      const runsPage = await readPage(null);
      if (filterChangeCount.current !== countAtStart) return;
      setRuns((old) => old && mergeRuns(runsPage.runs, old));
      setTotal({ count: runsPage.pagination.total, isExact: runsPage.pagination.totalIsExact });
      setFault(null);
    } catch (error) {
      if (filterChangeCount.current === countAtStart) setFault(asApiError(error));
    }
  }, [readPage, loadPages]);

  const hasUnfinishedRuns = runs?.some(isUnfinished) ?? false;
  const isSearch = filter.search !== null;
  // This query stores no runs. The query cache only determines when the newest runs are read again.
  const { reload } = useResource({
    queryKey: ["runs", appId, key],
    async queryFn() {
      await refresh();
      return null;
    },
    initialData: null,
    refetchOnMount: false,
    refetchInterval: hasUnfinishedRuns ? UNFINISHED_REFRESH_INTERVAL_MS : !isSearch && REFRESH_INTERVAL_MS,
  });
  useReloadAfterEvents(logSubscription.onEntry, reload, RELOAD_DELAY_MS);

  const loadMore = useCallback(() => {
    if (nextCursor !== null) void loadPages(nextCursor, filterChangeCount.current);
  }, [loadPages, nextCursor]);
  const cancelAndRefresh = useCallback(
    async (runId: number) => {
      await cancelRun(api, appId, runId);
      await refresh();
    },
    [api, appId, refresh],
  );
  return {
    runs,
    total,
    hasMore: nextCursor !== null,
    isPaused,
    isLoading,
    fault,
    loadMore,
    cancelRun: cancelAndRefresh,
  };
}
