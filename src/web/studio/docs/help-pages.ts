/** Table with one documentation page for each page of Studio. The button "?" opens it. Add a row for a new page of Studio. */
import { type AppSubpage, isAppSubpage, type View } from "../shell/views.js";

const VIEW_HELP_PATHS: Readonly<Record<Exclude<View, "app">, string>> = {
  home: "start/studio",
  actions: "reference/actions",
  runs: "reference/runs",
  schedule: "guides/schedules",
  data: "reference/data-sources",
  media: "reference/media",
  outbox: "reference/messages",
  notifications: "reference/messages",
  alerts: "reference/alerts",
  settings: "reference/settings",
  account: "operate/people",
  apps: "guides/manage-apps",
  people: "operate/people",
  access: "operate/people",
  service: "operate/operating",
};

const APP_SUBPAGE_HELP_PATHS: Readonly<Record<AppSubpage, string>> = {
  general: "guides/manage-apps",
  tokens: "guides/api-token",
  people: "operate/people",
  connections: "reference/requests",
  audit: "operate/people",
  versions: "guides/publish-and-roll-back",
  stages: "reference/stages",
  git: "reference/git",
  transfer: "reference/manifest",
};

export function findHelpPath(view: View, item: string | null): string {
  if (view !== "app") return `/docs/${VIEW_HELP_PATHS[view]}`;
  return `/docs/${APP_SUBPAGE_HELP_PATHS[isAppSubpage(item) ? item : "general"]}`;
}
