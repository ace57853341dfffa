/**
 * Parses and builds the fragments of Studio's URLs, such as `#/1/actions/12` and `#/1/data?search=x`. A route is the app, the page and the
 * item that such a fragment names.
 */
import { FORMER_VIEW_NAMES, isView, type View } from "./views.js";

export interface StudioRoute {
  /** ID of the open app. If null, the URL names no app, and Studio shows the first app. */
  appId: number | null;
  view: View;
  /** ID or name of the item that the page shows, such as an action's ID; null if it shows no single item. */
  item: string | null;
  query: Readonly<Record<string, string>>;
}

/** Parses a positive integer. Returns null if the text is missing or is something else. */
export const parseId = (text: string | null | undefined) =>
  text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;

export function parseRoute(fragment: string): StudioRoute {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/");
  // The page `#/apps` belongs to no app, so its URL has no app ID.
  const [app, view = "", item = ""] = parseId(parts[0]) === null && parts[0] !== "" ? ["", ...parts] : parts;
  return {
    appId: parseId(app),
    view: isView(view) ? view : (FORMER_VIEW_NAMES[view] ?? "home"),
    item: item === "" ? null : item,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Returns the fragment of the URL for a route, for the `href` of a link. */
export function createHref({
  appId,
  view,
  item = null,
  query = {},
}: Partial<StudioRoute> & Pick<StudioRoute, "view">): string {
  const search = new URLSearchParams(query).toString();
  const parts = [appId, view, item].filter((part) => part !== null && part !== undefined);
  return `#/${parts.join("/")}${search && `?${search}`}`;
}

/** Returns a copy of the query parameters with those of `change`. Removes parameters whose value is "" or undefined. */
export function mergeQuery<Query extends object>(query: Query, change: Query): Record<string, string> {
  const entries = Object.entries({ ...query, ...change }) as [string, string | undefined][];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

interface GoOptions {
  /** True: leaves the page without a question about unsaved changes. */
  skipsQuestion?: boolean;
  /** Route that was open when a request was sent. If the person has opened another item since, `go` does nothing. */
  startRoute?: StudioRoute;
  /** True: replaces the entry in the browser's history. Searches use this, so that the button Back does not stop at each typed letter. */
  replacesHistoryEntry?: boolean;
}

export interface Navigation {
  route: StudioRoute;
  go(change: Partial<StudioRoute>, options?: GoOptions): void;
  /** Call this with true when the page gets unsaved changes, and with false when it has none. */
  setDirty(dirty: boolean): void;
  /** If there are unsaved changes, asks the person whether to discard them. Returns true if Studio may leave the page. */
  confirmLeaving(): Promise<boolean>;
}
