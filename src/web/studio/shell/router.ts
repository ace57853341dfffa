/**
 * Routes of Studio in the fragment of its URL, such as `#/1/runs/12?state=failed`, with the types of their items and search parameters. Pages
 * read both by `getRouteApi`. Add a new page here, in views.ts and in pages.ts.
 */
import { createHashHistory, createRootRoute, createRoute, createRouter, redirect } from "@tanstack/react-router";
import { createElement } from "react";
import { CHANNELS, MESSAGE_STATUSES } from "../messages/outbox-query.js";
import { RUNS_SEARCH } from "../runs/runs-query.js";
import { PAGES } from "./lazy-pages.js";
import { idOf, oneOf, searchOf, textOf } from "./search.js";
import { StudioFrame } from "./studio.js";
import { APP_PARTS, type AppPart, PATHS, type View } from "./views.js";

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createStudioRouter>;
  }
  interface StaticDataRouteOption {
    view?: View;
  }
}

interface Params {
  appId?: string;
  item?: string;
}

/** Reads the ID of the app. `false` tells the router that the URL has no app and begins with the name of a page. */
function parseApp<Item extends object>({ appId }: Params, item: Item): ({ appId?: number } & Item) | false {
  const id = idOf(appId) ?? undefined;
  return appId !== undefined && id === undefined ? false : { appId: id, ...item };
}

const ofApp = { parse: ({ appId }: Params) => parseApp({ appId }, {}) };

/** Params of a route whose item `read` reads. A wrong item counts as missing. */
const withItem = <Item>(read: (text: string) => Item | null) => ({
  parse: (params: Params) =>
    parseApp(params, { item: params.item === undefined ? undefined : (read(params.item) ?? undefined) } as {
      item?: Item;
    }),
});

const root = createRootRoute({ component: StudioFrame });

const page = <Name extends View>(view: Name) => ({
  getParentRoute: () => root,
  path: PATHS[view],
  component: PAGES[view],
  staticData: { view },
});

const newOrId = (text: string) => (text === "new" ? "new" : idOf(text));
const channelOrId = (text: string) => oneOf(CHANNELS)(text) ?? idOf(text);

const routes = [
  createRoute({ ...page("home"), params: ofApp }),
  createRoute({ ...page("home"), path: "/{-$appId}", params: ofApp }),
  createRoute({ ...page("home"), path: "/{-$appId}/$", params: ofApp }),
  createRoute({
    ...page("actions"),
    params: withItem(newOrId),
    validateSearch: searchOf({ template: textOf, copyOf: idOf, line: idOf, column: idOf }),
  }),
  createRoute({ ...page("runs"), params: withItem(idOf), validateSearch: searchOf(RUNS_SEARCH) }),
  createRoute({ ...page("schedule"), params: ofApp }),
  createRoute({
    ...page("data"),
    params: withItem(idOf),
    validateSearch: searchOf({ tab: textOf, search: textOf, sort: textOf, order: oneOf(["desc"]) }),
  }),
  createRoute({
    ...page("media"),
    params: withItem(idOf),
    validateSearch: searchOf({ search: textOf, file: idOf, folder: idOf }),
  }),
  createRoute({
    ...page("outbox"),
    params: withItem(channelOrId),
    validateSearch: searchOf({ status: oneOf(MESSAGE_STATUSES) }),
  }),
  createRoute({ ...page("notifications"), params: withItem(newOrId) }),
  createRoute({ ...page("alerts"), params: withItem(newOrId) }),
  createRoute({ ...page("settings"), params: ofApp, validateSearch: searchOf({ key: textOf }) }),
  createRoute({ ...page("app"), params: withItem(oneOf(Object.keys(APP_PARTS) as AppPart[])) }),
  createRoute({ ...page("account"), params: ofApp }),
  createRoute({ ...page("apps"), params: ofApp }),
  createRoute({ ...page("people"), params: withItem(idOf) }),
  createRoute({ ...page("access"), params: withItem(idOf) }),
  createRoute({ ...page("service"), params: ofApp }),
  // The name that the page of runs had in earlier releases. Messages of alerts still use it.
  createRoute({
    getParentRoute: () => root,
    path: "/{-$appId}/log",
    beforeLoad: () => {
      throw redirect({ to: PATHS.runs, params: true, search: true, replace: true });
    },
  }),
] as const;

/** Called once, and not on pages of one-time links, whose fragment is no address of Studio. */
export function createStudioRouter() {
  const replaceState = history.replaceState.bind(history);
  /** Gives an entry of the browser's history that a link or the address bar has made its position, to which the router can return. */
  const numberEntry = (position: number) => {
    if (history.state?.__TSR_index !== undefined) return;
    const { hash } = location;
    // The router expects the slash, which a person may leave out.
    const address = hash === "" || hash.startsWith("#/") ? hash : `#/${hash.slice(1)}`;
    replaceState({ __TSR_index: position }, "", address || undefined);
  };
  numberEntry(0);
  // Registered before the listener of the router's history, which reads the position.
  addEventListener("popstate", () => numberEntry(router.history.location.state.__TSR_index + 1));
  const router = createRouter({
    routeTree: root.addChildren(routes),
    history: createHashHistory(),
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const values = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
      const text = String(new URLSearchParams(values.map(([key, value]) => [key, String(value)])));
      return text && `?${text}`;
    },
    defaultPendingComponent: () => createElement("p", { className: "welcome" }, "Loading…"),
    defaultPendingMs: 0,
    defaultPendingMinMs: 0,
  });
  return router;
}
