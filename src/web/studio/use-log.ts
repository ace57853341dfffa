/** The execution log as it grows: a page of what was, then each entry as it is written. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { type Api, type ApiError, asApiError } from "./api.js";
import { ReadLog } from "./documents.js";
import type { LogEntry } from "./model.js";
import type { Tail } from "./use-actions.js";

const PAGE = 50;
/** Entries kept in the page while it follows. */
const KEPT = 1000;

export interface Log {
  /** Newest first, among them others of the app; null while they are loaded for the first time. */
  entries: LogEntry[] | null;
  more: boolean;
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
  tail: Tail;
  /** The copies whose entries are wanted; null for all of the app. */
  ids: number[] | null;
}

export function useLog({ api, appId, tail: { live, onEntry }, ids }: Options): Log {
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [limit, setLimit] = useState(PAGE);
  const [more, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const wanted = JSON.stringify(ids);

  const load = useCallback(async () => {
    const copies = (JSON.parse(wanted) as number[] | null) ?? [undefined];
    try {
      const pages = await Promise.all(copies.map((id) => api.ask(ReadLog, { appId, options: { id, limit } })));
      setEntries((old) => merged(old ?? [], ...pages.map(({ page }) => page.logs)));
      setMore(pages.some(({ page }) => page.count > page.logs.length));
      setFault(null);
    } catch (error) {
      setFault(asApiError(error));
    }
  }, [api, appId, limit, wanted]);

  // Again when the tail comes back: it may have missed entries.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => void load(), [load, live]);
  useEffect(() => onEntry((entry) => setEntries((old) => merged(old ?? [], [entry]))), [onEntry]);

  const loadMore = useCallback(() => setLimit((old) => old + PAGE), []);
  return { entries, more, fault, loadMore };
}
