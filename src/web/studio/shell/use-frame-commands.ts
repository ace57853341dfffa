/** Commands that are available on every page: to open pages, apps, and actions by name. */
import { useCallback, useEffect, useMemo } from "react";
import type { Actions } from "../actions/use-actions.js";
import type { App } from "../shared/model.js";
import { type Command, useCommands } from "./commands.js";
import type { Navigation } from "./place.js";
import { APP_PARTS, VIEW_NAMES, VIEWS, type View } from "./views.js";

/** Pages without a command, because they show one item that the URL must name. */
const OF_ONE_THING: readonly View[] = ["app", "people", "access"];

interface FrameCommands {
  isAdmin: boolean;
  apps: App[];
  go: Navigation["go"];
  actions: Actions;
  signOut: () => void;
}

export function useFrameCommands({ isAdmin, apps, go, actions, signOut }: FrameCommands): void {
  const { list } = actions;
  const begin = useCallback(() => go({ view: "actions", item: "new", query: {} }), [go]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!event.altKey || event.code !== "KeyN" || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      begin();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [begin]);
  const commands = useMemo<Command[]>(() => {
    return [
      { name: "New action", keys: "Alt N", run: begin },
      ...VIEW_NAMES.filter((view) => !OF_ONE_THING.includes(view) && (view !== "service" || isAdmin)).map((view) => ({
        name: `Go to ${VIEWS[view].label}`,
        run: () => go({ view, item: null }),
      })),
      ...Object.entries(APP_PARTS).map(([item, label]) => ({
        name: `Go to ${label}`,
        run: () => go({ view: "app", item }),
      })),
      ...(list?.actions ?? []).map(({ id, name }) => ({
        name: `Open ${name}`,
        run: () => go({ view: "actions", item: String(id), query: {} }),
      })),
      ...apps.map(({ id, name }) => ({ name: `Switch to the app ${name} · ${id}`, run: () => go({ appId: id }) })),
      { name: "Sign out", run: signOut },
    ];
  }, [isAdmin, apps, go, list, signOut, begin]);
  useCommands(commands);
}
