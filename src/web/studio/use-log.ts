/** The execution log as it grows: pages of what was, as far back as is asked for, then each entry as it is written. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Api, type ApiError, asApiError } from "./api.js";
import { ReadLog } from "./documents.js";
import type { LogEntry } from "./model.js";
import type { Tail } from "./use-actions.js";

const PAGE = 50;

export interface Log {
  /** Newest first; null while they are loaded for the first time. */
  entries: LogEntry[] | null;
  more: boolean;
  isLoading: boolean;
  fault: ApiError | null;
  loadMore(): void;
}

/** The service logs what was cancelled as it logs what failed, with an error of that name. */
export const isCancelled = ({ error }: Pick<LogEntry, "error">) => error?.name === "CancelledError";

export const isFailed = (entry: Pick<LogEntry, "type" | "error">) =>
  entry.type === "app.task.failed" && !isCancelled(entry);

function merged(...lists: LogEntry[][]): LogEntry[] {
  const byId = new Map(lists.flat().map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => b.id - a.id);
}

interface Options {
  api: Api;
  appId: number;
  tail: Tail;
  /** The copies whose entries are wanted; null for all of the app. */
  ids: number[] | null;
  failuresOnly: boolean;
}

export function useLog({ api, appId, tail: { live, onEntry }, ids, failuresOnly }: Options): Log {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [more, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [isLoading, setLoading] = useState(true);
  const known = useRef<LogEntry[]>([]);
  known.current = entries ?? [];
  const wanted = JSON.stringify(ids);

  /** A page of each copy: the newest, or those that follow what is here. */
  const load = useCallback(
    async (isFollowing: boolean) => {
      const copies = (JSON.parse(wanted) as number[] | null) ?? [null];
      const where = failuresOnly ? { type: "app.task.failed" } : null;
      const pageOf = async (id: number | null) => {
        const own = isFollowing ? known.current.filter(({ taskId }) => id === null || taskId === id).length : 0;
        const { page } = await api.ask(ReadLog, { appId, options: { id, where, limit: PAGE, offset: own } });
        // The count of a long log is an estimate: a page that is not full is the last one, whatever it says.
        return { logs: page.logs, more: page.logs.length === PAGE && page.count > own + PAGE };
      };
      setLoading(true);
      try {
        const pages = await Promise.all(copies.map(pageOf));
        setEntries((old) => merged(old ?? [], ...pages.map(({ logs }) => logs)));
        setMore(pages.some((page) => page.more));
        setFault(null);
      } catch (error) {
        setFault(asApiError(error));
        // Asked for again when the person changes what is wanted, or the connection comes back.
        setMore(false);
      } finally {
        setLoading(false);
      }
    },
    [api, appId, wanted, failuresOnly],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: other entries are wanted
  useEffect(() => {
    known.current = [];
    setEntries(null);
  }, [wanted, failuresOnly]);
  // Again when the tail comes back: it may have missed entries.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => void load(false), [load, live]);
  useEffect(
    () =>
      onEntry((entry) => {
        const copies = JSON.parse(wanted) as number[] | null;
        const fits = (!failuresOnly || isFailed(entry)) && (copies?.includes(entry.taskId) ?? true);
        if (fits) setEntries((old) => merged(old ?? [], [entry]));
      }),
    [onEntry, failuresOnly, wanted],
  );

  const loadMore = useCallback(() => void load(true), [load]);
  const shown = failuresOnly ? (entries?.filter(isFailed) ?? null) : entries;
  return { entries: shown, more, isLoading, fault, loadMore };
}
