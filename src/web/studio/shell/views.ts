/** Table of Studio's pages: their names in URLs, their titles, and their order in the sidebar. Add a new page here and in routes.ts. */

import type { Role } from "../../../rules/roles.js";

interface ViewDetails {
  label: string;
  isHidden?: true;
  /** Roles with fewer rights than "editor" that can also use this page. */
  alsoForRoles?: readonly Role[];
}

const VIEW_TABLE = {
  home: { label: "Home", alsoForRoles: ["operator", "reader"] },
  actions: { label: "Actions", alsoForRoles: ["operator", "reader"] },
  runs: { label: "Runs", alsoForRoles: ["operator", "reader"] },
  schedule: { label: "Schedules", alsoForRoles: ["operator", "reader"] },
  data: { label: "Data", alsoForRoles: ["reader"] },
  media: { label: "Media", alsoForRoles: ["reader"] },
  outbox: { label: "Outbox" },
  notifications: { label: "Notifications" },
  alerts: { label: "Alerts" },
  settings: { label: "Settings", alsoForRoles: ["reader"] },
  app: { label: "App" },
  account: { label: "Account", isHidden: true, alsoForRoles: ["operator", "reader"] },
  apps: { label: "Apps", isHidden: true, alsoForRoles: ["operator", "reader"] },
  people: { label: "People", isHidden: true, alsoForRoles: ["operator", "reader"] },
  access: { label: "Audit log of access", isHidden: true, alsoForRoles: ["operator", "reader"] },
  service: { label: "Service", isHidden: true, alsoForRoles: ["operator", "reader"] },
} satisfies Record<string, ViewDetails>;

export type View = keyof typeof VIEW_TABLE;

export const VIEW_DETAILS: Readonly<Record<View, ViewDetails>> = VIEW_TABLE;

export const VIEW_NAMES = Object.keys(VIEW_TABLE) as View[];

/** Labels of the subpages of an app's page, by their name in the URL. If the URL names no subpage, Studio shows the first one. */
export const APP_SUBPAGE_LABELS = {
  general: "General",
  tokens: "Tokens",
  people: "People",
  connections: "Connections",
  audit: "Audit log",
  versions: "Versions",
  stages: "Stages",
  git: "Git repository",
  transfer: "Import and export",
} as const;

export type AppSubpage = keyof typeof APP_SUBPAGE_LABELS;

export const isAppSubpage = (item: string | null): item is AppSubpage =>
  item !== null && Object.hasOwn(APP_SUBPAGE_LABELS, item);

/** Link in the sidebar: the name of a page, or of a subpage of an app's page. */
export type SidebarLink =
  | Exclude<View, "app" | "account" | "apps" | "people" | "access" | "service">
  | `app/${AppSubpage}`;

/** Groups of links in the sidebar. The group without a label is at the top. */
export const SIDEBAR_GROUPS: readonly { label: string | null; links: readonly SidebarLink[] }[] = [
  { label: null, links: ["home"] },
  { label: "Build", links: ["actions", "data", "media"] },
  { label: "Run", links: ["runs", "schedule", "outbox", "notifications"] },
  { label: "Watch", links: ["alerts", "app/audit"] },
  {
    label: "Manage",
    links: [
      "settings",
      "app/connections",
      "app/people",
      "app/tokens",
      "app/versions",
      "app/stages",
      "app/git",
      "app/transfer",
      "app/general",
    ],
  },
];

/** Names of pages in the URLs of earlier releases, and the pages that such a URL opens now. */
export const FORMER_VIEW_NAMES: Readonly<Record<string, View>> = { log: "runs" };

export const isView = (name: string): name is View => Object.hasOwn(VIEW_DETAILS, name);
