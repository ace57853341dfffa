/** Hook for the open place. It follows the URL and asks before unsaved changes are lost. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { hrefOf, type Navigation, type Place, placeOf } from "./place.js";

/** Returns the next place. Parts that a change does not name stay, but a new page has no item, and a new item has no query. */
function changed(from: Place, change: Partial<Place>): Place {
  const { appId, view } = { ...from, ...change };
  const sameView = appId === from.appId && view === from.view;
  const item = change.item !== undefined ? change.item : sameView ? from.item : null;
  return { appId, view, item, query: change.query ?? (sameView && item === from.item ? from.query : {}) };
}

/** True for another page or item, which would lose unsaved changes. */
const leaves = (from: string, to: string) => from.split("?")[0] !== to.split("?")[0];

/** Number of this step in the browser's history. It shows how far Back or Forward has moved. */
const stepHere = (): number | null => (history.state as { step?: number } | null)?.step ?? null;

/** @param mayLeave asks the person if there are unsaved changes */
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
      // The person has typed a URL into the address bar.
      if (stepHere() === null) history.replaceState({ step }, "");
      if (!dirty.current || !leaves(current.current.fragment, next)) return arrive(next, step);
      // The URL has already changed, so it is changed back until the person has answered.
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
