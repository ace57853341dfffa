/** The names of Studio's pages, in addresses and for people, in the order of the bar. What they show is elsewhere (routes.ts). */

interface Name {
  label: string;
  /** Reached from elsewhere than the bar. */
  hidden?: true;
}

const TABLE = {
  actions: { label: "Actions" },
  runs: { label: "Runs" },
  schedule: { label: "Schedule" },
  data: { label: "Data" },
  media: { label: "Media" },
  outbox: { label: "Outbox" },
  notifications: { label: "Notifications" },
  alerts: { label: "Alerts" },
  settings: { label: "Settings" },
  app: { label: "App" },
  account: { label: "Account", hidden: true },
  apps: { label: "Apps", hidden: true },
} satisfies Record<string, Name>;

export type View = keyof typeof TABLE;

export const VIEWS: Readonly<Record<View, Name>> = TABLE;

export const VIEW_NAMES = Object.keys(TABLE) as View[];

/** The parts of the page of the app, by the item of the address; the first is shown without one. */
export const APP_PARTS = {
  general: "General",
  tokens: "Tokens",
  editors: "Editors",
  audit: "Audit trail",
  versions: "Versions",
  transfer: "Import and export",
} as const;

export type AppPart = keyof typeof APP_PARTS;

/** What an address of before says now. */
export const FORMER_VIEWS: Readonly<Record<string, View>> = { log: "runs" };

export const isView = (name: string): name is View => Object.hasOwn(VIEWS, name);
