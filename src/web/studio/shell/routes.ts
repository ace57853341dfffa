/** Functions that load the modules of the pages. Each page is a separate file in the build. Add a new page here and in views.ts. */
import type { ComponentType } from "react";
import type { PageProps } from "./page-props.js";
import { preloadStudioPart } from "./preload-parts.js";
import type { View } from "./views.js";

const PAGE_LOADERS: Readonly<Record<View, () => Promise<ComponentType<PageProps>>>> = {
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

const loadedPages = new Map<View, ComponentType<PageProps>>();

export async function loadStudioPage(view: View): Promise<ComponentType<PageProps>> {
  preloadStudioPart(view);
  const page = await PAGE_LOADERS[view]();
  loadedPages.set(view, page);
  return page;
}

/** Returns the component of a page if its code is loaded. For a lazy component, React would show the fallback for 300 ms at least. */
export const getLoadedStudioPage = (view: View): ComponentType<PageProps> | undefined => loadedPages.get(view);
