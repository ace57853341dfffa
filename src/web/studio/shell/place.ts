/** Where in Studio one is, kept in the address's fragment: `#/1/actions/12`, `#/1/data?search=x`. Unsaved work is asked about. Knows no page. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { FORMER_VIEWS, isView, type View } from "./views.js";

export interface Place {
  /** null: the first app there is. */
  appId: number | null;
  view: View;
  /** What of the page is open, as its address has it. */
  item: string | null;
  /** How it is shown: searched, filtered, sorted. */
  query: Readonly<Record<string, string>>;
}

/** A positive whole number, or null. */
export const idOf = (text: string | null | undefined) => (text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null);

export function placeOf(fragment: string): Place {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/");
  // `#/apps` is of no app.
  const [app, view = "", item = ""] = idOf(parts[0]) === null && parts[0] !== "" ? ["", ...parts] : parts;
  return {
    appId: idOf(app),
    view: isView(view) ? view : (FORMER_VIEWS[view] ?? "home"),
    item: item === "" ? null : item,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The address of a place, for links. */
export function hrefOf({ appId, view, item = null, query = {} }: Partial<Place> & Pick<Place, "view">): string {
  const search = new URLSearchParams(query).toString();
  const parts = [appId, view, item].filter((part) => part !== null && part !== undefined);
  return `#/${parts.join("/")}${search && `?${search}`}`;
}

/** The query with some keys changed, without those that have no text. */
export function changedQuery<Query extends object>(query: Query, change: Query): Record<string, string> {
  const all = Object.entries({ ...query, ...change }) as [string, string | undefined][];
  return Object.fromEntries(
    all.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

/** What is not named stays as long as it means the same: an item is one of its page, a query one of its item. */
function changed(from: Place, change: Partial<Place>): Place {
  const { appId, view } = { ...from, ...change };
  const sameView = appId === from.appId && view === from.view;
  const item = change.item !== undefined ? change.item : sameView ? from.item : null;
  return { appId, view, item, query: change.query ?? (sameView && item === from.item ? from.query : {}) };
}

interface GoOptions {
  /** Without asking about unsaved work. */
  force?: boolean;
  /** Back does not return to where one was: for each letter of a search. */
  replace?: boolean;
}

export interface Navigation {
  place: Place;
  go(change: Partial<Place>, options?: GoOptions): void;
  /** Whether leaving would lose work. */
  setDirty(dirty: boolean): void;
  /** Asks the person where work would be lost. @returns whether to go */
  mayGo(): Promise<boolean>;
}

/** Another page or item, where unsaved work would not come along. */
const leaves = (from: string, to: string) => from.split("?")[0] !== to.split("?")[0];

/** Which step of the way through Studio this is, kept by the browser with each: Back and Forward say by it how far they went. */
const stepHere = (): number | null => (history.state as { step?: number } | null)?.step ?? null;

/** @param mayLeave asks the person, when there is unsaved work */
export function usePlace(mayLeave: () => Promise<boolean>): Navigation {
  const [fragment, setFragment] = useState(location.hash);
  const current = useRef({ fragment, step: stepHere() ?? 0 });
  const dirty = useRef(false);

  const arrive = useCallback((next: string, step: number) => {
    if (leaves(current.current.fragment, next)) dirty.current = false;
    current.current = { fragment: next, step };
    setFragment(next);
  }, []);

  useEffect(() => {
    const onMove = () => {
      const next = location.hash;
      const step = stepHere() ?? current.current.step + 1;
      // Typed into the address bar.
      if (stepHere() === null) history.replaceState({ step }, "");
      if (!dirty.current || !leaves(current.current.fragment, next)) return arrive(next, step);
      // The address has moved already: it goes back until the person has answered.
      const moved = step - current.current.step;
      history.go(-moved);
      void mayLeave().then((yes) => {
        if (!yes) return;
        dirty.current = false;
        history.go(moved);
      });
    };
    const onUnload = (event: BeforeUnloadEvent) => {
      if (dirty.current) event.preventDefault();
    };
    if (stepHere() === null) history.replaceState({ step: current.current.step }, "");
    addEventListener("popstate", onMove);
    addEventListener("beforeunload", onUnload);
    return () => {
      removeEventListener("popstate", onMove);
      removeEventListener("beforeunload", onUnload);
    };
  }, [arrive, mayLeave]);

  const mayGo = useCallback(async () => !dirty.current || (await mayLeave()), [mayLeave]);
  const go = useCallback<Navigation["go"]>(
    async (change, { force = false, replace = false } = {}) => {
      const next = hrefOf(changed(placeOf(current.current.fragment), change));
      if (next === location.hash) return;
      if (!force && leaves(current.current.fragment, next) && !(await mayGo())) return;
      const step = current.current.step + (replace ? 0 : 1);
      history[replace ? "replaceState" : "pushState"]({ step }, "", next);
      arrive(next, step);
    },
    [arrive, mayGo],
  );
  const setDirty = useCallback((value: boolean) => {
    dirty.current = value;
  }, []);
  const place = useMemo(() => placeOf(fragment), [fragment]);
  return { place, go, setDirty, mayGo };
}
