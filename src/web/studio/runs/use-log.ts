/** Hook for the execution log. Loads the newest entries, and older pages on request. Adds each new entry when the service logs it. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { LogSubscription } from "../actions/use-actions.js";
import { ReadExecutionLog } from "../documents.js";
import { type ApiClient, type ApiError, asApiError } from "../shared/api.js";
import type { LogEntry } from "../shared/model.js";
import { isFailedLogEntry } from "./log-entry.js";

const PAGE_SIZE = 50;

export interface ExecutionLogState {
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
  /** ID of the draft or live version whose entries the page contains; null for the entries of all actions. */
  id: number | null;
  logs: LogEntry[];
  nextCursor: string | null;
  isNextPage: boolean;
}

const belongsToPage = ({ id }: LogPage, { taskId }: LogEntry) => id === null || taskId === id;

/** True if the page overlaps with the loaded entries of the same version, so that no entry between them is missing. */
const isConnectedTo = (page: LogPage, knownEntries: readonly LogEntry[]) =>
  knownEntries.some((entry) => belongsToPage(page, entry) && page.logs.some(({ id }) => id === entry.id));

/** True for a loaded entry that is older than the page. The hook removes this entry if entries between it and the page may be missing. */
const isOlderThanPage = (page: LogPage, entry: LogEntry) =>
  belongsToPage(page, entry) && entry.id < (page.logs.at(-1)?.id ?? 0);

interface ExecutionLogOptions {
  api: ApiClient;
  appId: number;
  logSubscription: LogSubscription;
  /** IDs of the draft and the live version whose log entries to load; null for the entries of all actions. */
  versionIds: number[] | null;
  isFailuresOnly: boolean;
}

export function useExecutionLog({
  api,
  appId,
  logSubscription: { isConnected, onEntry },
  versionIds: ids,
  isFailuresOnly,
}: ExecutionLogOptions): ExecutionLogState {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [hasMore, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isLoading, setLoading] = useState(true);
  const knownEntries = useRef<LogEntry[]>([]);
  knownEntries.current = entries ?? [];
  /** Cursor of the next page, by the ID of a draft or live version. The cursor is null after the last page. */
  const cursors = useRef(new Map<number | null, string | null>());
  const idsJson = JSON.stringify(ids);

  const latestRequest = useRef("");
  latestRequest.current = `${idsJson} ${isFailuresOnly}`;

  /** Reads one page for each draft or live version. @param isNextPage true for the next older page, false for the newest entries */
  const loadPages = useCallback(
    async (isNextPage: boolean) => {
      const versionIds = (JSON.parse(idsJson) as number[] | null) ?? [null];
      const where = isFailuresOnly ? { type: "app.task.failed" } : null;
      const readPage = async (id: number | null): Promise<LogPage> => {
        const cursor = isNextPage ? (cursors.current.get(id) ?? null) : null;
        const { page } = await api.request(ReadExecutionLog, {
          appId,
          options: { id, where, limit: PAGE_SIZE, cursor },
        });
        return { id, logs: page.logs, nextCursor: page.nextCursor, isNextPage };
      };
      setLoading(true);
      try {
        const remainingIds = versionIds.filter((id) => !isNextPage || cursors.current.get(id) !== null);
        const pages = await Promise.all(remainingIds.map(readPage));
        // Ignores the response if the person has selected other entries during the request.
        if (latestRequest.current !== `${idsJson} ${isFailuresOnly}`) return;
        const disconnectedPages = pages.filter(
          (page) => !page.isNextPage && !isConnectedTo(page, knownEntries.current),
        );
        for (const page of pages)
          if (page.isNextPage || disconnectedPages.includes(page)) cursors.current.set(page.id, page.nextCursor);
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
        // Prevents scrolling from repeating the failed read.
        setMore(false);
      } finally {
        setLoading(false);
      }
    },
    [api, appId, idsJson, isFailuresOnly],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: removes the entries when the IDs change
  useEffect(() => {
    knownEntries.current = [];
    cursors.current.clear();
    setEntries(null);
  }, [idsJson, isFailuresOnly]);
  // Reads again when the subscription is restored, because the page may have missed entries.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `isConnected` only causes the read
  useEffect(() => void loadPages(false), [loadPages, isConnected]);
  useEffect(
    () =>
      onEntry((entry) => {
        const versionIds = JSON.parse(idsJson) as number[] | null;
        const isShown = (!isFailuresOnly || isFailedLogEntry(entry)) && (versionIds?.includes(entry.taskId) ?? true);
        if (isShown) setEntries((old) => mergeEntries(old ?? [], [entry]));
      }),
    [onEntry, isFailuresOnly, idsJson],
  );

  const loadMore = useCallback(() => void loadPages(true), [loadPages]);
  const shownEntries = isFailuresOnly ? (entries?.filter(isFailedLogEntry) ?? null) : entries;
  return { entries: shownEntries, hasMore, isLoading, fault, loadMore };
}
