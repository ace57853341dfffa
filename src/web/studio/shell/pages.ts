/** Loaders of the pages' modules, which are separate files in the build. Add a new page here, in views.ts and in router.ts. */
import type { ComponentType } from "react";
import { withLoadError } from "./load-error.js";
import type { PageProps } from "./page-props.js";
import { preloadPart } from "./parts.js";
import type { View } from "./views.js";

const LOADERS: Readonly<Record<View, () => Promise<ComponentType<PageProps>>>> = {
  home: async () => (await import("../home/home-page.js")).HomePage,
  actions: async () => (await import("../actions/actions-page.js")).ActionsPage,
  runs: async () => (await import("../runs/runs-page.js")).RunsPage,
  schedule: async () => (await import("../schedules/schedule-page.js")).SchedulePage,
  data: async () => (await import("../data/data-view.js")).DataSourcesPage,
  media: async () => (await import("../media/media-view.js")).MediaPage,
  outbox: async () => (await import("../messages/outbox-view.js")).OutboxView,
  notifications: async () => (await import("../messages/notifications-view.js")).NotificationsView,
  alerts: async () => (await import("../alerts/alerts-view.js")).AlertsView,
  settings: async () => (await import("../settings/settings-view.js")).SettingsView,
  app: async () => (await import("../app/app-page.js")).AppPage,
  account: async () => (await import("../accounts/account-page.js")).AccountPage,
  people: async () => (await import("../people/people-page.js")).OrganizationPeople,
  access: async () => (await import("../people/organization-audit-page.js")).OrganizationAuditPage,
  service: async () => (await import("../people/service-page.js")).ServicePage,
  apps: async () => (await import("../app/apps-page.js")).AppsPage,
};

/** Loads the module of a page, with all its files at the same time. @throws LoadError */
export function loadPage(view: View): Promise<ComponentType<PageProps>> {
  preloadPart(view);
  return withLoadError(LOADERS[view]());
}
