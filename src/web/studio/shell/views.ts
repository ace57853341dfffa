/** Names of Studio's pages in addresses and for people, and their order in the sidebar. Read it when you add a page (with routes.ts). */

import type { Role } from "../../../rules/roles.js";

interface Name {
  label: string;
  /** Reached from elsewhere than the sidebar. */
  hidden?: true;
  /** Also for people with these roles; without it only for editors and above. */
  also?: readonly Role[];
}

const TABLE = {
  home: { label: "Home", also: ["operator", "reader"] },
  actions: { label: "Actions", also: ["operator", "reader"] },
  runs: { label: "Runs", also: ["operator", "reader"] },
  schedule: { label: "Schedules", also: ["operator", "reader"] },
  data: { label: "Data", also: ["reader"] },
  media: { label: "Media", also: ["reader"] },
  outbox: { label: "Outbox" },
  notifications: { label: "Notifications" },
  alerts: { label: "Alerts" },
  settings: { label: "Settings", also: ["reader"] },
  app: { label: "App" },
  account: { label: "Account", hidden: true, also: ["operator", "reader"] },
  apps: { label: "Apps", hidden: true, also: ["operator", "reader"] },
  people: { label: "People", hidden: true, also: ["operator", "reader"] },
  access: { label: "Audit log of access", hidden: true, also: ["operator", "reader"] },
  service: { label: "Service", hidden: true, also: ["operator", "reader"] },
} satisfies Record<string, Name>;

export type View = keyof typeof TABLE;

export const VIEWS: Readonly<Record<View, Name>> = TABLE;

export const VIEW_NAMES = Object.keys(TABLE) as View[];

/** Parts of the page of the app, by the item of the address. The first is shown without an item. */
export const APP_PARTS = {
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

export type AppPart = keyof typeof APP_PARTS;

export const isAppPart = (item: string | null): item is AppPart => item !== null && Object.hasOwn(APP_PARTS, item);

/** Link of the sidebar: a page, or a part of the page of the app. */
export type SidebarLink =
  | Exclude<View, "app" | "account" | "apps" | "people" | "access" | "service">
  | `app/${AppPart}`;

/** Groups of the sidebar; a group without a label comes first. */
export const SIDEBAR: readonly { label: string | null; links: readonly SidebarLink[] }[] = [
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

/** Addresses of earlier releases and the pages that they lead to. */
export const FORMER_VIEWS: Readonly<Record<string, View>> = { log: "runs" };

export const isView = (name: string): name is View => Object.hasOwn(VIEWS, name);
