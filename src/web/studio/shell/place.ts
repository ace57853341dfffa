/** Places in Studio and their URLs in the fragment: `#/1/actions/12`, `#/1/data?search=x`. use-place.ts changes the place. */
import { FORMER_VIEW_NAMES, isView, type View } from "./views.js";

export interface Place {
  /** ID of the app; null for the first app. */
  appId: number | null;
  view: View;
  /** The open item of the page, such as an action's ID. */
  item: string | null;
  /** How the page shows its items: search, filters and order. */
  query: Readonly<Record<string, string>>;
}

/** Returns a positive whole number, or null. */
export const idOf = (text: string | null | undefined) => (text && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null);

export function parsePlace(fragment: string): Place {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/");
  // The page `#/apps` belongs to no app.
  const [app, view = "", item = ""] = idOf(parts[0]) === null && parts[0] !== "" ? ["", ...parts] : parts;
  return {
    appId: idOf(app),
    view: isView(view) ? view : (FORMER_VIEW_NAMES[view] ?? "home"),
    item: item === "" ? null : item,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Returns the URL of a place for a link. */
export function hrefOf({ appId, view, item = null, query = {} }: Partial<Place> & Pick<Place, "view">): string {
  const search = new URLSearchParams(query).toString();
  const parts = [appId, view, item].filter((part) => part !== null && part !== undefined);
  return `#/${parts.join("/")}${search && `?${search}`}`;
}

/** Returns the query with some keys changed. Keys with an empty text are removed. */
export function changedQuery<Query extends object>(query: Query, change: Query): Record<string, string> {
  const all = Object.entries({ ...query, ...change }) as [string, string | undefined][];
  return Object.fromEntries(
    all.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

interface GoOptions {
  /** True to leave without asking about unsaved changes. */
  force?: boolean;
  /** Place from which a request was sent. If the person has opened another item since then, `go` does nothing. */
  from?: Place;
  /** True to replace the entry in the browser's history, so that Back does not stop at each letter of a search. */
  replace?: boolean;
}

export interface Navigation {
  place: Place;
  go(change: Partial<Place>, options?: GoOptions): void;
  /** True if leaving would lose unsaved changes. */
  setDirty(dirty: boolean): void;
  /** Asks the person if unsaved changes would be lost. @returns true if the place may change */
  mayGo(): Promise<boolean>;
}
