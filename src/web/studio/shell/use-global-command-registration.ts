/** Hook for the commands of the palette that are available on every page: they open pages, apps, and actions by name. */
import CircleUser from "icon:circle-user";
import LayoutGrid from "icon:layout-grid";
import LogOut from "icon:log-out";
import Plus from "icon:plus";
import Server from "icon:server";
import { useCallback, useEffect, useMemo } from "react";
import type { ActionsState } from "../actions/use-actions.js";
import type { IconComponent } from "../shared/icon.js";
import type { App } from "../shared/model.js";
import { type PaletteCommand, useCommandRegistration } from "./commands.js";
import { PAGE_ICONS } from "./page-icons.js";
import type { Navigation } from "./studio-route.js";
import { APP_SUBPAGE_LABELS, type AppSubpage, VIEW_DETAILS, VIEW_NAMES, type View } from "./views.js";

/** Pages without a command, because their URL must name the item that they show. */
const VIEWS_OF_ONE_ITEM: readonly View[] = ["app", "people", "access"];

/** Icons of pages by the page's name. */
const VIEW_ICONS: Partial<Record<View, IconComponent>> = {
  ...PAGE_ICONS,
  account: CircleUser,
  apps: LayoutGrid,
  service: Server,
};

interface GlobalCommandsOptions {
  isAdmin: boolean;
  apps: App[];
  go: Navigation["go"];
  actions: ActionsState;
  signOut: () => void;
}

export function useGlobalCommandRegistration({ isAdmin, apps, go, actions, signOut }: GlobalCommandsOptions): void {
  const { actionList } = actions;
  const createAction = useCallback(() => go({ view: "actions", item: "new", query: {} }), [go]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!event.altKey || event.code !== "KeyN" || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      createAction();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [createAction]);
  const commands = useMemo<PaletteCommand[]>(() => {
    return [
      { name: "New action", shortcut: "Alt N", icon: Plus, run: createAction },
      ...VIEW_NAMES.filter((view) => !VIEWS_OF_ONE_ITEM.includes(view) && (view !== "service" || isAdmin)).map(
        (view) => ({
          name: `Go to ${VIEW_DETAILS[view].label}`,
          icon: VIEW_ICONS[view],
          run: () => go({ view, item: null }),
        }),
      ),
      ...Object.entries(APP_SUBPAGE_LABELS).map(([item, label]) => ({
        name: `Go to ${label}`,
        icon: PAGE_ICONS[`app/${item as AppSubpage}`],
        run: () => go({ view: "app", item }),
      })),
      ...(actionList?.actions ?? []).map(({ id, name }) => ({
        name: `Open ${name}`,
        icon: PAGE_ICONS.actions,
        run: () => go({ view: "actions", item: String(id), query: {} }),
      })),
      ...apps.map(({ id, name }) => ({
        name: `Switch to the app ${name} · ${id}`,
        icon: LayoutGrid,
        run: () => go({ appId: id }),
      })),
      { name: "Sign out", icon: LogOut, run: signOut },
    ];
  }, [isAdmin, apps, go, actionList, signOut, createAction]);
  useCommandRegistration(commands);
}
