/**
 * Places in Studio and their notation in the URL's fragment, such as `#/1/actions/12` and `#/1/data?search=x`. use-place.ts changes the
 * place.
 */
import { FORMER_VIEW_NAMES, isView, type View } from "./views.js";

export interface Place {
  /** ID of the open app; null if the URL names none, which opens the first app. */
  appId: number | null;
  view: View;
  /** ID or name of what the page has opened, such as an action's ID; null for none. */
  item: string | null;
  /** Query parameters of the page, such as search, filters and order. */
  query: Readonly<Record<string, string>>;
}

/** Parses a positive integer. Returns null if the text is missing or is something else. */
export const parseId = (text: string | null | undefined) =>
  text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;

export function parsePlace(fragment: string): Place {
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

/** Returns the link to a place, as a fragment. */
export function hrefOf({ appId, view, item = null, query = {} }: Partial<Place> & Pick<Place, "view">): string {
  const search = new URLSearchParams(query).toString();
  const parts = [appId, view, item].filter((part) => part !== null && part !== undefined);
  return `#/${parts.join("/")}${search && `?${search}`}`;
}

/** Returns the query parameters with some of them changed. Parameters with an empty text are removed. */
export function mergeQuery<Query extends object>(query: Query, change: Query): Record<string, string> {
  const all = Object.entries({ ...query, ...change }) as [string, string | undefined][];
  return Object.fromEntries(
    all.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

interface GoOptions {
  /** True to leave the page without a question about unsaved changes. */
  force?: boolean;
  /** Place at which the person was when a request was sent. If the person has opened another item since, `go` does nothing. */
  from?: Place;
  /** True to replace the entry in the browser's history. A search uses this, so that the button Back does not stop at each typed letter. */
  replacesHistoryEntry?: boolean;
}

export interface Navigation {
  place: Place;
  go(change: Partial<Place>, options?: GoOptions): void;
  /** Call this with true when the page gets unsaved changes, and with false when it has none. */
  setDirty(dirty: boolean): void;
  /** If there are unsaved changes, asks the person if they may be lost. Returns true if the place may change. */
  confirmLeaving(): Promise<boolean>;
}
