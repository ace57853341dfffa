/** The execution log as it grows: a page of what was, then each entry as it is written. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Api, type ApiError, asApiError } from "./api.js";
import { LOGS, type LogEntry, TAIL } from "./model.js";

const PAGE = 50;
/** Entries kept in the page while it follows. */
const KEPT = 1000;

interface LogPage {
  page: { count: number; logs: LogEntry[] };
}

export interface Log {
  /** Newest first; null while they are loaded for the first time. */
  entries: LogEntry[] | null;
  more: boolean;
  live: boolean;
  fault: ApiError | null;
  loadMore(): void;
}

function merged(...lists: LogEntry[][]): LogEntry[] {
  const byId = new Map(lists.flat().map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => b.id - a.id).slice(0, KEPT);
}

interface Options {
  api: Api;
  appId: number;
  /** The copies whose entries are wanted; null for all of the app. */
  ids: number[] | null;
  onEntry: (entry: LogEntry) => void;
}

export function useLog({ api, appId, ids, onEntry }: Options): Log {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [limit, setLimit] = useState(PAGE);
  const [more, setMore] = useState(false);
  const [live, setLive] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const told = useRef(onEntry);
  told.current = onEntry;
  const wanted = JSON.stringify(ids);

  const load = useCallback(async () => {
    const copies = (JSON.parse(wanted) as number[] | null) ?? [undefined];
    try {
      const pages = await Promise.all(copies.map((id) => api.ask<LogPage>(LOGS, { appId, options: { id, limit } })));
      setEntries((old) => merged(old ?? [], ...pages.map(({ page }) => page.logs)));
      setMore(pages.some(({ page }) => page.count > page.logs.length));
      setFault(null);
    } catch (error) {
      setFault(asApiError(error));
    }
  }, [api, appId, limit, wanted]);

  useEffect(() => {
    void load();
    // A socket that comes back may have missed entries.
    return api.onConnected((connected) => {
      setLive(connected);
      if (connected) void load();
    });
  }, [api, load]);

  useEffect(() => {
    const copies = JSON.parse(wanted) as number[] | null;
    setLive(true);
    return api.follow<{ entry: LogEntry }>(
      TAIL,
      { appId },
      {
        next: ({ entry }) => {
          told.current(entry);
          if (!copies || copies.includes(entry.data.taskId)) setEntries((old) => merged(old ?? [], [entry]));
        },
        failed: (error) => {
          setLive(false);
          setFault(error);
        },
      },
    );
  }, [api, appId, wanted]);

  const loadMore = useCallback(() => setLimit((old) => old + PAGE), []);
  return { entries, more, live, fault, loadMore };
}
