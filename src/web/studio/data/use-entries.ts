/** Hook for the entries of a data source in a grid: their total number, and the visible entries, which it loads page by page. */
import { useCallback, useMemo, useRef, useState } from "react";
import { DeleteEntry, FindEntries, FollowEntries, InsertEntry, UpdateEntry } from "../documents.js";
import { type ApiClient, type ApiError, asApiError } from "../shared/api.js";
import { createReloadFunction } from "../shared/create-reload.js";
import type { Entry } from "../shared/model.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";

const PAGE_SIZE = 200;
/** Maximum number of concurrent page requests. It prevents requests for pages that the person only scrolls past. */
const MAX_CONCURRENT_PAGES = 2;
/** Maximum number of pages in the cache. If there are more, the cache removes the page whose last load was earliest. */
const MAX_LOADED_PAGES = 50;
/** Delay from a change of an entry to the next read, so that several changes cause only one read. */
const RELOAD_DELAY_MS = 500;

export interface EntryOrder {
  column: string;
  direction: "ASC" | "DESC";
}

export interface LoadedEntry {
  rowIndex: number;
  entry: Entry;
}

export interface EntriesState {
  /** Number of entries that match the search; null until the service has counted them for the first time. */
  totalCount: number | null;
  /** Returns the entry at this position in the grid, or undefined if its page is not loaded. */
  getEntryAt(index: number): Entry | undefined;
  /** Returns the entry with this ID as it was last loaded, or undefined if its page is not loaded. */
  findEntry(id: number): LoadedEntry | undefined;
  isDeleted(id: number): Promise<boolean>;
  /** Sets the first and last index of the visible rows. The hook then loads the missing entries of these rows. */
  setVisibleRange(from: number, to: number): void;
  fault: ApiError | null;
  /** Inserts an empty entry. Returns the error message, or null if the service has inserted the entry. */
  insertEmptyEntry(): Promise<string | null>;
  updateEntry(entry: Entry, data: Record<string, unknown>): Promise<string | null>;
  removeEntry(entry: Entry): Promise<string | null>;
}

interface EntriesOptions {
  api: ApiClient;
  appId: number;
  id: number;
  where: object | null;
  order: EntryOrder | null;
}

/** Returns the path of a column in queries. A dot in the column's name is escaped, because dots separate the steps of a path. */
export const getColumnPath = (column: string): string => `data.${column.replaceAll(".", "\\.")}`;

/** Messages for a change that fails because another person has changed or deleted the entry, by error status. */
const CONFLICT_TEXTS: Readonly<Record<string, string>> = {
  ENTRY_CHANGED: "Not saved: someone else changed this entry. The table now shows the current value.",
  ENTRY_NOT_FOUND: "Not saved: someone else deleted this entry.",
};

interface EntriesResponse {
  entries: Entry[];
  total: number;
}

type PageCache = ReturnType<typeof createPageCache>;

/**
 * Creates a cache of the pages of one list of entries.
 * @param readPage requests a page by its number
 * @param onPageRead called with each page that was read, or with the error of a failed read
 */
function createPageCache(
  readPage: (page: number) => Promise<EntriesResponse>,
  onPageRead: (outcome: EntriesResponse | ApiError) => void,
) {
  const loadedPages = new Map<number, Entry[]>();
  /** Numbers of the pages requested since the last reload. Other loaded pages may be outdated, but are still shown. */
  const requestedPages = new Set<number>();
  /** Numbers of the pages whose request failed. The cache requests them again when the visible rows change. */
  const failedPages = new Set<number>();
  const pendingLoads = new Set<Promise<void>>();
  /** Number of reloads so far. The cache ignores responses to requests from before the last reload. */
  let reloadCount = 0;
  let visibleRange = { from: 0, to: 0 };

  function storePage(page: number, entries: Entry[]): void {
    loadedPages.delete(page);
    loadedPages.set(page, entries);
    const [first] = loadedPages.keys();
    if (loadedPages.size <= MAX_LOADED_PAGES) return;
    loadedPages.delete(first!);
    requestedPages.delete(first!);
  }

  async function loadPage(page: number): Promise<void> {
    const startReloadCount = reloadCount;
    requestedPages.add(page);
    const outcome = await readPage(page).catch(asApiError);
    if (reloadCount !== startReloadCount) return;
    if ("entries" in outcome) storePage(page, outcome.entries);
    else failedPages.add(page);
    onPageRead(outcome);
  }

  /** Requests the visible pages that were not requested since the last reload, at most MAX_CONCURRENT_PAGES at a time. */
  function loadVisiblePages(): void {
    for (
      let page = Math.floor(visibleRange.from / PAGE_SIZE);
      page <= Math.floor(visibleRange.to / PAGE_SIZE);
      page += 1
    ) {
      if (pendingLoads.size >= MAX_CONCURRENT_PAGES || requestedPages.has(page)) continue;
      const load = loadPage(page).then(() => {
        pendingLoads.delete(load);
        loadVisiblePages();
      });
      pendingLoads.add(load);
    }
  }

  return {
    getEntryAt: (index: number): Entry | undefined =>
      loadedPages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE],
    findEntry(id: number): LoadedEntry | undefined {
      for (const [page, entries] of loadedPages) {
        const indexInPage = entries.findIndex((entry) => entry.id === id);
        if (indexInPage >= 0) return { rowIndex: page * PAGE_SIZE + indexInPage, entry: entries[indexInPage]! };
      }
      return undefined;
    },
    setVisibleRange(from: number, to: number): void {
      visibleRange = { from, to };
      for (const page of failedPages) requestedPages.delete(page);
      failedPages.clear();
      loadVisiblePages();
    },
    reload: createReloadFunction(async () => {
      reloadCount += 1;
      requestedPages.clear();
      failedPages.clear();
      loadVisiblePages();
      // Waits for all requests, because requests for newer data start only when earlier requests end.
      while (pendingLoads.size > 0) await Promise.all(pendingLoads);
    }),
  };
}

export function useEntries({ api, appId, id, where, order }: EntriesOptions): EntriesState {
  const [total, setTotal] = useState<number | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [, redraw] = useState(0);
  const queryJson = JSON.stringify([id, where, order]);
  const currentCache = useRef<PageCache>(null);

  const pages = useMemo(() => {
    const [dataSourceId, filter, entryOrder] = JSON.parse(queryJson) as [number, object | null, EntryOrder | null];
    const readPage = async (page: number) => {
      const query = {
        ...(filter && { where: filter }),
        ...(entryOrder && { order: [[getColumnPath(entryOrder.column), entryOrder.direction]] }),
        ...{ limit: PAGE_SIZE, offset: page * PAGE_SIZE, includePagination: true },
      };
      const { found } = await api.request(FindEntries, { appId, id: dataSourceId, query });
      const entries = found.entries as Entry[];
      return { entries, total: found.pagination?.total ?? entries.length };
    };
    const pageCache = createPageCache(readPage, (outcome) => {
      if (currentCache.current !== pageCache) return;
      if ("entries" in outcome) setTotal(outcome.total);
      setFault("entries" in outcome ? null : outcome);
      redraw((count) => count + 1);
    });
    return pageCache;
  }, [api, appId, queryJson]);
  currentCache.current = pages;

  // This query stores no entries. The query cache only determines when the visible pages are read again.
  const { reload } = useResource({
    queryKey: ["entries", appId, id],
    async queryFn() {
      await currentCache.current?.reload();
      return null;
    },
    initialData: null,
    refetchOnMount: false,
  });
  const subscribe = useCallback(
    (next: () => void) => api.subscribe(FollowEntries, { appId, id: String(id) }, { next }),
    [api, appId, id],
  );
  useReloadAfterEvents(subscribe, reload, RELOAD_DELAY_MS);

  const runAndReload = useCallback(
    async (request: Promise<unknown>) => {
      try {
        await request;
        await pages.reload();
        return null;
      } catch (error) {
        const { status, message } = asApiError(error);
        const text = CONFLICT_TEXTS[status];
        if (text === undefined) return message;
        // Loads the entries as they are stored now, because the message says that the table shows the current value.
        await pages.reload();
        return text;
      }
    },
    [pages],
  );

  const changeFunctions = useMemo<Pick<EntriesState, "insertEmptyEntry" | "updateEntry" | "removeEntry">>(
    () => ({
      insertEmptyEntry: () => runAndReload(api.request(InsertEntry, { appId, id, data: {} })),
      updateEntry: ({ id: entryId, updatedAt: ifUpdatedAt }, data) =>
        // The fields are wrapped in "data", so that a column with the name "data" is not mistaken for the wrapper.
        runAndReload(api.request(UpdateEntry, { appId, id, entryId, data: { data }, ifUpdatedAt })),
      removeEntry: ({ id: entryId, updatedAt: ifUpdatedAt }) =>
        runAndReload(api.request(DeleteEntry, { appId, id, entryId, ifUpdatedAt })),
    }),
    [api, appId, id, runAndReload],
  );
  const isDeleted = useCallback(
    async (entryId: number) => {
      const query = { where: { id: entryId }, limit: 1 };
      return (await api.request(FindEntries, { appId, id, query })).found.entries.length === 0;
    },
    [api, appId, id],
  );
  return {
    totalCount: total,
    fault,
    isDeleted,
    getEntryAt: pages.getEntryAt,
    findEntry: pages.findEntry,
    setVisibleRange: pages.setVisibleRange,
    ...changeFunctions,
  };
}
