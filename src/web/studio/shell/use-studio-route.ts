/** Hook for the app, page and item that are open in Studio. It follows the URL, and asks the person before unsaved changes are lost. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { createHref, type Navigation, parseRoute, type StudioRoute } from "./studio-route.js";

/**
 * Returns the route after a change. A change of the app or page removes the item. A change of the app, page or item removes the query
 * parameters. An item or query in `change` replaces the removed one.
 */
function changeRoute(from: StudioRoute, change: Partial<StudioRoute>): StudioRoute {
  const { appId, view } = { ...from, ...change };
  const isSameView = appId === from.appId && view === from.view;
  const item = change.item !== undefined ? change.item : isSameView ? from.item : null;
  return { appId, view, item, query: change.query ?? (isSameView && item === from.item ? from.query : {}) };
}

/** Returns the part of the URL that names the page and the item. For a new action, this includes the template or the copied action. */
function getItemPart(fragment: string): string {
  const [path = ""] = fragment.split("?");
  return path.endsWith("/actions/new") ? fragment : path;
}

/** True if the two URLs show different pages or items, so that unsaved changes would be lost. */
const isOtherItem = (from: string, to: string) => getItemPart(from) !== getItemPart(to);

/** Returns the number that Studio has stored in the current history entry, or null. The numbers show how far Back or Forward has moved. */
const readHistoryStep = (): number | null => (history.state as { step?: number } | null)?.step ?? null;

/**
 * @param confirmDiscard asks the person about unsaved changes; resolves to true if the page may be left
 * @param firstAppId ID of the app that Studio shows if the URL names no app; null if there are no apps
 */
export function useStudioRoute(confirmDiscard: () => Promise<boolean>, firstAppId: number | null): Navigation {
  const [fragment, setFragment] = useState(location.hash);
  const current = useRef({ fragment, step: readHistoryStep() ?? 0 });
  const isDirty = useRef(false);

  const setCurrentRoute = useCallback((next: string, step: number, from = current.current.fragment) => {
    if (isOtherItem(from, next)) isDirty.current = false;
    current.current = { fragment: next, step };
    setFragment(next);
  }, []);

  useEffect(() => {
    const onMove = () => {
      const next = location.hash;
      const step = readHistoryStep() ?? current.current.step + 1;
      // A history entry without a number is new, for example because the person has typed a URL. So it gets the next number.
      if (readHistoryStep() === null) history.replaceState({ step }, "");
      if (!isDirty.current || !isOtherItem(current.current.fragment, next)) return setCurrentRoute(next, step);
      // The browser has already changed the URL. Studio restores the previous URL until the person has answered.
      const stepDifference = step - current.current.step;
      history.go(-stepDifference);
      void confirmDiscard().then((isConfirmed) => {
        if (!isConfirmed) return;
        isDirty.current = false;
        history.go(stepDifference);
      });
    };
    const onUnload = (event: BeforeUnloadEvent) => {
      if (isDirty.current) event.preventDefault();
    };
    if (readHistoryStep() === null) history.replaceState({ step: current.current.step }, "");
    addEventListener("popstate", onMove);
    addEventListener("beforeunload", onUnload);
    return () => {
      removeEventListener("popstate", onMove);
      removeEventListener("beforeunload", onUnload);
    };
  }, [setCurrentRoute, confirmDiscard]);

  const confirmLeaving = useCallback(async () => !isDirty.current || (await confirmDiscard()), [confirmDiscard]);
  const go = useCallback<Navigation["go"]>(
    async (change, { skipsQuestion = false, replacesHistoryEntry = false, startRoute } = {}) => {
      if (startRoute && isOtherItem(createHref(startRoute), createHref(parseRoute(current.current.fragment)))) return;
      const route = parseRoute(current.current.fragment);
      // If the current URL names no app, Studio shows the first app. The next URL then names this app.
      const routeWithApp = { ...route, appId: route.appId ?? firstAppId };
      const next = createHref(changeRoute(routeWithApp, change));
      if (next === location.hash) return;
      if (!skipsQuestion && isOtherItem(createHref(routeWithApp), next) && !(await confirmLeaving())) return;
      const step = current.current.step + (replacesHistoryEntry ? 0 : 1);
      history[replacesHistoryEntry ? "replaceState" : "pushState"]({ step }, "", next);
      setCurrentRoute(next, step, createHref(routeWithApp));
    },
    [setCurrentRoute, confirmLeaving, firstAppId],
  );
  const setDirty = useCallback((value: boolean) => {
    isDirty.current = value;
  }, []);
  const route = useMemo(() => parseRoute(fragment), [fragment]);
  return { route, go, setDirty, confirmLeaving };
}
