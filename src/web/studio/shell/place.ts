/** Places in Studio and their addresses, in the fragment: `#/1/actions/12`, `#/1/data?search=x`. Read use-place.ts for moving between them. */
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
