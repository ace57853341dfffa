/** Where the code of each page is, a file of its own in the build: a new page is a row here, and one in views.ts. */
import type { ComponentType } from "react";
import type { PageProps } from "./page-props.js";
import type { View } from "./views.js";

export const ROUTES: Readonly<Record<View, () => Promise<ComponentType<PageProps>>>> = {
  actions: async () => (await import("./actions-page.js")).ActionsPage,
  runs: async () => (await import("./runs-page.js")).RunsPage,
  schedule: async () => (await import("./schedule-page.js")).SchedulePage,
  data: async () => (await import("./data-view.js")).DataSourcesPage,
  media: async () => (await import("./media-view.js")).MediaPage,
  outbox: async () => (await import("./outbox-view.js")).OutboxView,
  notifications: async () => (await import("./notifications-view.js")).NotificationsView,
  alerts: async () => (await import("./alerts-view.js")).AlertsView,
  settings: async () => (await import("./settings-view.js")).SettingsView,
  app: async () => (await import("./app-page.js")).AppPage,
  account: async () => (await import("./account-page.js")).AccountPage,
  people: async () => (await import("./people-page.js")).OrganizationPeople,
  apps: async () => (await import("./apps-page.js")).AppsPage,
};
