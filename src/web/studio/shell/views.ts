/** The names of Studio's pages, in addresses and for people, in the order of the bar. What they show is elsewhere (routes.ts). */

import type { Role } from "../../../rules/roles.js";

interface Name {
  label: string;
  /** Reached from elsewhere than the bar. */
  hidden?: true;
  /** Also for people with these roles; without it only for editors and above. */
  also?: readonly Role[];
}

const TABLE = {
  actions: { label: "Actions", also: ["operator", "reader"] },
  runs: { label: "Runs", also: ["operator", "reader"] },
  schedule: { label: "Schedule", also: ["operator", "reader"] },
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
} satisfies Record<string, Name>;

export type View = keyof typeof TABLE;

export const VIEWS: Readonly<Record<View, Name>> = TABLE;

export const VIEW_NAMES = Object.keys(TABLE) as View[];

/** The parts of the page of the app, by the item of the address; the first is shown without one. */
export const APP_PARTS = {
  general: "General",
  tokens: "Tokens",
  people: "People",
  connections: "Connections",
  audit: "Audit trail",
  versions: "Versions",
  transfer: "Import and export",
} as const;

export type AppPart = keyof typeof APP_PARTS;

/** What an address of before says now. */
export const FORMER_VIEWS: Readonly<Record<string, View>> = { log: "runs" };

export const isView = (name: string): name is View => Object.hasOwn(VIEWS, name);
