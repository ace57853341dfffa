/** The execution log as it grows: pages of what was, as far back as is asked for, then each entry as it is written. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { ReadLog } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { LogEntry } from "../shared/model.js";
import { isFailed } from "./log-entry.js";

const PAGE = 50;

export interface Log {
  /** Newest first; null while they are loaded for the first time. */
  entries: LogEntry[] | null;
  more: boolean;
  isLoading: boolean;
  fault: ApiError | null;
  loadMore(): void;
}

function merged(...lists: LogEntry[][]): LogEntry[] {
  const byId = new Map(lists.flat().map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => b.id - a.id);
}

interface Page {
  /** The copy that it is of; null for all. */
  id: number | null;
  logs: LogEntry[];
  next: string | null;
  isFollowing: boolean;
}

const isOf = ({ id }: Page, { taskId }: LogEntry) => id === null || taskId === id;

/** Whether nothing lies between the page and what is here of its copy. */
const joins = (page: Page, known: readonly LogEntry[]) =>
  known.some((entry) => isOf(page, entry) && page.logs.some(({ id }) => id === entry.id));

/** Older than all of a page that it does not join: what lies between them would be missing. */
const isBehind = (page: Page, entry: LogEntry) => isOf(page, entry) && entry.id < (page.logs.at(-1)?.id ?? 0);

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
  /** Where each copy's next page begins; null at its end. */
  const cursors = useRef(new Map<number | null, string | null>());
  const wanted = JSON.stringify(ids);

  const asked = useRef("");
  asked.current = `${wanted} ${failuresOnly}`;

  /** A page of each copy: the newest, or those that follow what is here. */
  const load = useCallback(
    async (isFollowing: boolean) => {
      const copies = (JSON.parse(wanted) as number[] | null) ?? [null];
      const where = failuresOnly ? { type: "app.task.failed" } : null;
      const pageOf = async (id: number | null): Promise<Page> => {
        const cursor = isFollowing ? (cursors.current.get(id) ?? null) : null;
        const { page } = await api.ask(ReadLog, { appId, options: { id, where, limit: PAGE, cursor } });
        return { id, logs: page.logs, next: page.nextCursor, isFollowing };
      };
      setLoading(true);
      try {
        const left = copies.filter((id) => !isFollowing || cursors.current.get(id) !== null);
        const pages = await Promise.all(left.map(pageOf));
        // Others are wanted by now.
        if (asked.current !== `${wanted} ${failuresOnly}`) return;
        const fresh = pages.filter((page) => !page.isFollowing && !joins(page, known.current));
        for (const page of pages) if (page.isFollowing || fresh.includes(page)) cursors.current.set(page.id, page.next);
        setEntries((old) => {
          const kept = (old ?? []).filter((entry) => !fresh.some((page) => isBehind(page, entry)));
          return merged(kept, ...pages.map(({ logs }) => logs));
        });
        setMore([...cursors.current.values()].some((cursor) => cursor !== null));
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
    cursors.current.clear();
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
