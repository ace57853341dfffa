/** The app's list of actions, loaded once and brought up to date after each change. Holds no code of theirs. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { type Api, type ApiError, asApiError } from "./api.js";
import { type ActionList, LIST, type PublishedCopy } from "./model.js";

interface Answer {
  actions: Omit<ActionList, "total"> & { pagination: { total: number } };
}

export interface Actions {
  /** null while it is loaded for the first time. */
  list: ActionList | null;
  fault: ApiError | null;
  reload(): Promise<void>;
  copyOf(masterId: number): PublishedCopy | undefined;
  /** The name behind a log entry's `taskId`, which names either copy. */
  whose(taskId: number): { name: string; live: boolean } | null;
  /** Sets when an action ran last, without asking the service. */
  ran(taskId: number, at: string): void;
}

export function useActions(api: Api, appId: number | null): Actions {
  const [list, setList] = useState<ActionList | null>(null);
  const [fault, setFault] = useState<ApiError | null>(null);

  const reload = useCallback(async () => {
    if (appId === null) return;
    try {
      const { actions: found } = await api.ask<Answer>(LIST, { appId });
      setList({ actions: found.actions, published: found.published, total: found.pagination.total });
      setFault(null);
    } catch (error) {
      setFault(asApiError(error));
    }
  }, [api, appId]);

  useEffect(() => {
    setList(null);
    void reload();
  }, [reload]);

  const ran = useCallback((taskId: number, at: string) => {
    const touched = <Copy extends { id: number }>(copies: Copy[]) =>
      copies.map((copy) => (copy.id === taskId ? { ...copy, lastRunAt: at } : copy));
    setList((old) => old && { ...old, actions: touched(old.actions), published: touched(old.published) });
  }, []);

  return useMemo(() => {
    const copies = new Map(list?.published.map((copy) => [copy.masterId, copy]));
    const owners = new Map<number, { name: string; live: boolean }>();
    for (const { id, name } of list?.actions ?? []) {
      owners.set(id, { name, live: false });
      const copy = copies.get(id);
      if (copy) owners.set(copy.id, { name, live: true });
    }
    return {
      ...{ list, fault, reload, ran },
      copyOf: (masterId) => copies.get(masterId),
      whose: (taskId) => owners.get(taskId) ?? null,
    };
  }, [list, fault, reload, ran]);
}
