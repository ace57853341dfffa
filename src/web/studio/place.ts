/** Where in Studio one is, kept in the address's fragment: `#/1/actions/12`, `#/1/log`, `#/1/data/3`, `#/1/media/3`, `#/1/settings`. Unsaved work is asked about. */
import { useCallback, useEffect, useRef, useState } from "react";

export type View = "actions" | "log" | "data" | "media" | "outbox" | "notifications" | "settings";

export interface Place {
  /** null: the first app there is. */
  appId: number | null;
  view: View;
  actionId: number | "new" | null;
  /** The data source that is open. */
  sourceId: number | null;
  /** The folder of media that is open; null: the top. */
  folderId: number | null;
}

const VIEWS: readonly string[] = ["actions", "log", "data", "media", "outbox", "notifications", "settings"];

const idOf = (text: string | undefined) => (text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null);

function placeOf(fragment: string): Place {
  const [, app, view = "", item] = fragment.split("/");
  const known = VIEWS.includes(view) ? (view as View) : "actions";
  const actionId = known === "actions" ? (item === "new" ? "new" : idOf(item)) : null;
  const itemOf = (one: View) => (known === one ? idOf(item) : null);
  return { appId: idOf(app), view: known, actionId, sourceId: itemOf("data"), folderId: itemOf("media") };
}

function fragmentOf({ appId, view, actionId, sourceId, folderId }: Place): string {
  const item = {
    actions: actionId,
    log: null,
    outbox: null,
    notifications: null,
    data: sourceId,
    media: folderId,
    settings: null,
  }[view];
  return `#/${appId ?? ""}/${view}${item === null ? "" : `/${item}`}`;
}

export interface Navigation {
  place: Place;
  go(change: Partial<Place>, options?: { force?: boolean }): void;
  /** Whether leaving would lose work. */
  setDirty(dirty: boolean): void;
  /** Asks the person where work would be lost. @returns whether to go */
  mayGo(): Promise<boolean>;
}

/** @param mayLeave asks the person, when there is unsaved work */
export function usePlace(mayLeave: () => Promise<boolean>): Navigation {
  const [fragment, setFragment] = useState(location.hash);
  const current = useRef(fragment);
  const dirty = useRef(false);

  const enter = useCallback((next: string) => {
    dirty.current = false;
    current.current = next;
    if (location.hash !== next) location.hash = next;
    setFragment(next);
  }, []);

  const request = useCallback(
    async (next: string) => {
      if (next === current.current) return;
      if (!dirty.current || (await mayLeave())) enter(next);
    },
    [enter, mayLeave],
  );

  useEffect(() => {
    const onHash = () => {
      const next = location.hash;
      if (next === current.current) return;
      // The address has moved already: it goes back until the person has answered.
      if (dirty.current) history.replaceState(null, "", current.current || "#");
      void request(next);
    };
    const onUnload = (event: BeforeUnloadEvent) => {
      if (dirty.current) event.preventDefault();
    };
    addEventListener("hashchange", onHash);
    addEventListener("beforeunload", onUnload);
    return () => {
      removeEventListener("hashchange", onHash);
      removeEventListener("beforeunload", onUnload);
    };
  }, [request]);

  const go = useCallback(
    (change: Partial<Place>, { force = false } = {}) => {
      const next = fragmentOf({ ...placeOf(current.current), ...change });
      if (force) enter(next);
      else void request(next);
    },
    [enter, request],
  );
  const setDirty = useCallback((value: boolean) => {
    dirty.current = value;
  }, []);
  const mayGo = useCallback(async () => !dirty.current || (await mayLeave()), [mayLeave]);
  return { place: placeOf(fragment), go, setDirty, mayGo };
}
