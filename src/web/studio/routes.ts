/** Studio's pages: a new one is a row here, with its name in the bar and the file that its code is loaded from. */
import type { ComponentType } from "react";
import type { Api } from "./api.js";
import type { Ask } from "./confirm.js";
import type { App } from "./model.js";
import type { Navigation, Place } from "./place.js";
import type { Actions } from "./use-actions.js";

/** What every page is given. */
export interface PageProps {
  api: Api;
  apps: App[];
  app: App;
  appId: number;
  /** The page reads what it shows from `item` and `query`. */
  place: Place;
  go: Navigation["go"];
  setDirty: Navigation["setDirty"];
  ask: Ask;
  actions: Actions;
  /** The app itself has changed: it was renamed or published. */
  reloadApps: () => Promise<void>;
  /** Of all apps: makes apps and people. */
  isAdmin: boolean;
}

interface Route {
  label: string;
  /** Reached from elsewhere than the bar. */
  hidden?: true;
  /** Its code, a file of its own in the build. */
  load: () => Promise<ComponentType<PageProps>>;
}

const TABLE = {
  actions: { label: "Actions", load: async () => (await import("./actions-page.js")).ActionsPage },
  runs: { label: "Runs", load: async () => (await import("./runs-page.js")).RunsPage },
  schedule: { label: "Schedule", load: async () => (await import("./schedule-page.js")).SchedulePage },
  data: { label: "Data", load: async () => (await import("./data-view.js")).DataSourcesPage },
  media: { label: "Media", load: async () => (await import("./media-view.js")).MediaPage },
  outbox: { label: "Outbox", load: async () => (await import("./outbox-view.js")).OutboxView },
  notifications: {
    label: "Notifications",
    load: async () => (await import("./notifications-view.js")).NotificationsView,
  },
  settings: { label: "Settings", load: async () => (await import("./settings-view.js")).SettingsView },
  app: { label: "App", load: async () => (await import("./app-page.js")).AppPage },
  apps: { label: "Apps", hidden: true, load: async () => (await import("./apps-page.js")).AppsPage },
} satisfies Record<string, Route>;

export type View = keyof typeof TABLE;

export const ROUTES: Record<View, Route> = TABLE;

/** What an address of before says now. */
export const FORMER_VIEWS: Readonly<Record<string, View>> = { log: "runs" };

export const isView = (name: string): name is View => Object.hasOwn(ROUTES, name);
