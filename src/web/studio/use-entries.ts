/** The entries of one data source as a grid needs them: how many there are, and those in sight, page by page. Draws nothing. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Api, type ApiError, asApiError } from "./api.js";
import { DeleteEntry, FindEntries, InsertEntry, UpdateEntry } from "./documents.js";
import type { Entry } from "./model.js";

const PAGE = 200;

export interface EntryOrder {
  column: string;
  direction: "ASC" | "DESC";
}

export interface Entries {
  /** null while they are counted for the first time. */
  total: number | null;
  /** undefined while it is read. */
  at(index: number): Entry | undefined;
  /** Reads what lies there, unless it is here. */
  show(from: number, to: number): void;
  fault: ApiError | null;
  reload(): void;
  insert(): Promise<void>;
  /** @returns why it was refused, null when it was not */
  update(index: number, data: Record<string, unknown>): Promise<string | null>;
  remove(index: number): Promise<string | null>;
}

interface Options {
  api: Api;
  appId: number;
  id: number;
  where: object | null;
  order: EntryOrder | null;
}

/** A column's name as a path: a dot in it is no step. */
export const pathOf = (column: string): string => `data.${column.replaceAll(".", "\\.")}`;

export function useEntries({ api, appId, id, where, order }: Options): Entries {
  const [total, setTotal] = useState<number | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);
  const [, redraw] = useState(0);
  const pages = useRef(new Map<number, Entry[] | "asked">());
  const shape = JSON.stringify([id, where, order]);

  const read = useCallback(
    async (page: number) => {
      if (pages.current.has(page)) return;
      const own = pages.current;
      own.set(page, "asked");
      const [, asked, by] = JSON.parse(shape) as [number, object | null, EntryOrder | null];
      const query = {
        ...(asked && { where: asked }),
        ...(by && { order: [[pathOf(by.column), by.direction]] }),
        ...{ limit: PAGE, offset: page * PAGE, includePagination: true },
      };
      try {
        const { found } = await api.ask(FindEntries, { appId, id, query });
        if (own !== pages.current) return;
        own.set(page, found.entries as Entry[]);
        setTotal(found.pagination?.total ?? found.entries.length);
        setFault(null);
      } catch (error) {
        own.delete(page);
        if (own === pages.current) setFault(asApiError(error));
      }
      redraw((count) => count + 1);
    },
    [api, appId, id, shape],
  );

  const reload = useCallback(() => {
    pages.current = new Map();
    void read(0);
  }, [read]);
  useEffect(reload, [reload]);

  const at = useCallback((index: number) => {
    const page = pages.current.get(Math.floor(index / PAGE));
    return page === "asked" ? undefined : page?.[index % PAGE];
  }, []);
  const show = useCallback(
    (from: number, to: number) => {
      for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page += 1) void read(page);
    },
    [read],
  );

  const write = useCallback(
    async (written: Promise<unknown>) => {
      try {
        await written;
        reload();
        return null;
      } catch (error) {
        const { status, message } = asApiError(error);
        // What stands now is shown; what was typed over it is told to be typed again.
        if (status === "ENTRY_CHANGED") reload();
        return status === "ENTRY_CHANGED"
          ? "Somebody changed this entry meanwhile: it is shown as it is now."
          : message;
      }
    },
    [reload],
  );

  return useMemo(
    () => ({
      ...{ total, at, show, fault, reload },
      insert: async () => {
        const refused = await write(api.ask(InsertEntry, { appId, id, data: {} }));
        if (refused) setFault(asApiError(new Error(refused)));
      },
      update: async (index, data) => {
        const entry = at(index);
        if (!entry) return null;
        const { id: entryId, updatedAt: ifUpdatedAt } = entry;
        return write(api.ask(UpdateEntry, { appId, id, entryId, data, ifUpdatedAt }));
      },
      remove: async (index) => {
        const entry = at(index);
        if (!entry) return null;
        return write(api.ask(DeleteEntry, { appId, id, entryId: entry.id, ifUpdatedAt: entry.updatedAt }));
      },
    }),
    [api, appId, id, total, at, show, fault, reload, write],
  );
}
