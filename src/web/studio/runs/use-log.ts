/** Hook for the execution log: loads pages of older entries on request, and adds each new entry when the service writes it. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { LogSubscription } from "../actions/use-actions.js";
import { ReadLog } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { LogEntry } from "../shared/model.js";
import { isFailed } from "./log-entry.js";

const PAGE_SIZE = 50;

export interface LogState {
  /** Log entries, newest first; null until they are loaded for the first time. */
  entries: LogEntry[] | null;
  hasMore: boolean;
  isLoading: boolean;
  fault: ApiError | null;
  loadMore(): void;
}

function mergeEntries(...lists: LogEntry[][]): LogEntry[] {
  const byId = new Map(lists.flat().map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => b.id - a.id);
}

interface LogPage {
  /** ID of the draft or live version to which the entries of the page belong; null for all actions. */
  id: number | null;
  logs: LogEntry[];
  nextCursor: string | null;
  isFollowing: boolean;
}

const belongsToPage = ({ id }: LogPage, { taskId }: LogEntry) => id === null || taskId === id;

/** True if no entry is missing between this page and the entries of the same version that are loaded already. */
const isConnectedTo = (page: LogPage, knownEntries: readonly LogEntry[]) =>
  knownEntries.some((entry) => belongsToPage(page, entry) && page.logs.some(({ id }) => id === entry.id));

/** True for loaded entries that are older than the page. They are removed if entries between them and the page may be missing. */
const isOlderThanPage = (page: LogPage, entry: LogEntry) =>
  belongsToPage(page, entry) && entry.id < (page.logs.at(-1)?.id ?? 0);

interface LogOptions {
  api: Api;
  appId: number;
  tail: LogSubscription;
  /** IDs of the draft and the live version whose entries are shown; null for all actions of the app. */
  versionIds: number[] | null;
  failuresOnly: boolean;
}

export function useLog({
  api,
  appId,
  tail: { isConnected, onEntry },
  versionIds: ids,
  failuresOnly,
}: LogOptions): LogState {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [hasMore, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isLoading, setLoading] = useState(true);
  const knownEntries = useRef<LogEntry[]>([]);
  knownEntries.current = entries ?? [];
  /** Cursor from which the next page is read, by the ID of a draft or live version. Null after the last page. */
  const cursors = useRef(new Map<number | null, string | null>());
  const wantedIds = JSON.stringify(ids);

  const latestRequest = useRef("");
  latestRequest.current = `${wantedIds} ${failuresOnly}`;

  /** Reads one page for each ID: the newest entries, or the older entries after the cursor. */
  const load = useCallback(
    async (isFollowing: boolean) => {
      const versionIds = (JSON.parse(wantedIds) as number[] | null) ?? [null];
      const where = failuresOnly ? { type: "app.task.failed" } : null;
      const readPage = async (id: number | null): Promise<LogPage> => {
        const cursor = isFollowing ? (cursors.current.get(id) ?? null) : null;
        const { page } = await api.request(ReadLog, { appId, options: { id, where, limit: PAGE_SIZE, cursor } });
        return { id, logs: page.logs, nextCursor: page.nextCursor, isFollowing };
      };
      setLoading(true);
      try {
        const remainingIds = versionIds.filter((id) => !isFollowing || cursors.current.get(id) !== null);
        const pages = await Promise.all(remainingIds.map(readPage));
        // The person has selected other entries while the request was sent, so the response is ignored.
        if (latestRequest.current !== `${wantedIds} ${failuresOnly}`) return;
        const disconnectedPages = pages.filter(
          (page) => !page.isFollowing && !isConnectedTo(page, knownEntries.current),
        );
        for (const page of pages)
          if (page.isFollowing || disconnectedPages.includes(page)) cursors.current.set(page.id, page.nextCursor);
        setEntries((old) => {
          const keptEntries = (old ?? []).filter(
            (entry) => !disconnectedPages.some((page) => isOlderThanPage(page, entry)),
          );
          return mergeEntries(keptEntries, ...pages.map(({ logs }) => logs));
        });
        setMore([...cursors.current.values()].some((cursor) => cursor !== null));
        setFault(null);
      } catch (error) {
        setFault(asApiError(error));
        // A failed read is not repeated by scrolling, but when the person selects other entries or when the connection is restored.
        setMore(false);
      } finally {
        setLoading(false);
      }
    },
    [api, appId, wantedIds, failuresOnly],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: other IDs have other entries
  useEffect(() => {
    knownEntries.current = [];
    cursors.current.clear();
    setEntries(null);
  }, [wantedIds, failuresOnly]);
  // Reads again when the subscription is restored, because entries may have been missed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => void load(false), [load, isConnected]);
  useEffect(
    () =>
      onEntry((entry) => {
        const versionIds = JSON.parse(wantedIds) as number[] | null;
        const isShown = (!failuresOnly || isFailed(entry)) && (versionIds?.includes(entry.taskId) ?? true);
        if (isShown) setEntries((old) => mergeEntries(old ?? [], [entry]));
      }),
    [onEntry, failuresOnly, wantedIds],
  );

  const loadMore = useCallback(() => void load(true), [load]);
  const shownEntries = failuresOnly ? (entries?.filter(isFailed) ?? null) : entries;
  return { entries: shownEntries, hasMore, isLoading, fault, loadMore };
}
