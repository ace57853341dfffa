/** Who may do what: one table of operations, and what a caller is. Knows no transport and no database. */
import type { Copy } from "../data/action-types.js";
import type { CredentialKind } from "../data/credential.js";
import { COMMUNICATE_WINDOW_MS, RATE_WINDOW_MS } from "../limits.js";

/** Classes of the rate limits (specification, Limits). */
export type RateClass = "manage" | "run" | "publish" | "communicate";

/** Who calls, as a credential says it (contract, section 2). */
export interface Caller {
  credentialId: number;
  kind: CredentialKind;
  personId: number | null;
  /** The app of an api, task, viewer or live credential; null for editors and admins. */
  appId: number | null;
  /** The apps that an editor edits; empty for all others. */
  editorOf: ReadonlySet<number>;
  /** The run that a task token was made for. */
  runId: number | null;
  /** How many runs caused one another up to that one. */
  runDepth: number;
  /** The action whose debug page a viewer credential was made for: its script may be read whatever its state. */
  debugs: number | null;
  /** The copy that this caller's runs use (specification, "Which version runs"). */
  copy: Copy;
  /** Unix time in milliseconds after which the credential is dead; Infinity when it has no end. */
  expiresAt: number;
  /** The network address of the request, where there is one. */
  address?: string;
}

interface Rule {
  who: readonly CredentialKind[];
  rate?: RateClass;
}

const AUTHORS = ["editor", "admin"] as const;
const BACKENDS = ["editor", "admin", "api", "task"] as const;
const RUNNERS = ["editor", "admin", "api", "task", "viewer", "live"] as const;
/** Whoever may stand before a page of the app: its users, and those who make it. */
const CLIENTS = ["editor", "admin", "viewer", "live"] as const;
/** A page of the app, whose credential a user is signed in to. */
const PAGES = ["viewer", "live"] as const;

/** The whole matrix. An operation that is not here does not exist. */
export const ACCESS = {
  readSettings: { who: BACKENDS },
  writeSettings: { who: BACKENDS },
  markSettings: { who: AUTHORS },
  readSettingsStatus: { who: BACKENDS },
  readSettingsUse: { who: AUTHORS, rate: "manage" },
  readRuntimeSettings: { who: CLIENTS },
  readTrail: { who: AUTHORS },
  updateApp: { who: AUTHORS },
  administrate: { who: ["admin"] },
  listApps: { who: RUNNERS },
  publishApp: { who: AUTHORS },
  manageEditors: { who: AUTHORS },
  manageTokens: { who: AUTHORS },
  appVersions: { who: AUTHORS },
  listActions: { who: AUTHORS, rate: "manage" },
  getAction: { who: AUTHORS, rate: "manage" },
  followActions: { who: AUTHORS },
  createAction: { who: AUTHORS, rate: "manage" },
  updateAction: { who: AUTHORS, rate: "manage" },
  removeAction: { who: AUTHORS, rate: "manage" },
  listVersions: { who: AUTHORS, rate: "manage" },
  getVersion: { who: AUTHORS, rate: "manage" },
  restoreVersion: { who: AUTHORS, rate: "publish" },
  compareVersions: { who: AUTHORS, rate: "manage" },
  exportActions: { who: AUTHORS, rate: "manage" },
  importActions: { who: AUTHORS, rate: "manage" },
  publishAction: { who: AUTHORS, rate: "publish" },
  unpublishAction: { who: AUTHORS, rate: "publish" },
  runAction: { who: RUNNERS, rate: "run" },
  listRuns: { who: ["editor", "admin", "api"] },
  replayRun: { who: AUTHORS, rate: "run" },
  readPresets: { who: AUTHORS },
  writePresets: { who: AUTHORS },
  checkCode: { who: AUTHORS },
  readDeclarations: { who: AUTHORS },
  addLogEvent: { who: BACKENDS },
  backtestTrigger: { who: AUTHORS },
  previewSchedule: { who: AUTHORS },
  readLogs: { who: ["editor", "admin", "api"] },
  previewApp: { who: AUTHORS },
  recordAnalytics: { who: CLIENTS },
  clientTriggers: { who: CLIENTS },
  compileAction: { who: CLIENTS },
  reportClientRun: { who: CLIENTS },
  cancelRun: { who: RUNNERS },
  cancelBacklog: { who: AUTHORS },
  pauseSchedules: { who: AUTHORS, rate: "manage" },
  readDataSources: { who: BACKENDS },
  writeDataSources: { who: BACKENDS },
  removeDataSources: { who: BACKENDS },
  // Of entries these may all; whom else, with a credential or none, the data source's own access rules say.
  readEntries: { who: BACKENDS },
  writeEntries: { who: BACKENDS },
  removeEntries: { who: BACKENDS },
  signInAppUser: { who: PAGES },
  verifyAppUser: { who: PAGES },
  readSession: { who: CLIENTS },
  // Of media these may all; whom else, with a credential or none, the app's own access rules say.
  readMedia: { who: BACKENDS },
  writeMedia: { who: BACKENDS },
  removeMedia: { who: BACKENDS },
  sendMessage: { who: BACKENDS, rate: "communicate" },
  readMessages: { who: BACKENDS },
  decideMessage: { who: AUTHORS },
  readAlerts: { who: AUTHORS },
  manageAlerts: { who: AUTHORS },
  removeAlerts: { who: AUTHORS },
  manageNotifications: { who: BACKENDS },
  readNotifications: { who: RUNNERS },
  markNotifications: { who: RUNNERS },
  pushDevices: { who: RUNNERS },
  addPushDevice: { who: RUNNERS },
} as const satisfies Record<string, Rule>;

export type Operation = keyof typeof ACCESS;

/**
 * What an operation leaves in the database: `rows` are refused first when the disk is nearly full, `runs` last. `nothing` is also for
 * what removes, and for operations that read as well: those look for room themselves where they write.
 */
export const ADDS: Record<Operation, "nothing" | "rows" | "runs"> = {
  readSettings: "nothing",
  writeSettings: "nothing",
  markSettings: "nothing",
  readSettingsStatus: "nothing",
  readSettingsUse: "nothing",
  readRuntimeSettings: "nothing",
  readTrail: "nothing",
  updateApp: "rows",
  administrate: "rows",
  listApps: "nothing",
  publishApp: "rows",
  manageEditors: "nothing",
  manageTokens: "nothing",
  appVersions: "nothing",
  listActions: "nothing",
  getAction: "nothing",
  followActions: "nothing",
  createAction: "rows",
  updateAction: "rows",
  removeAction: "nothing",
  listVersions: "nothing",
  getVersion: "nothing",
  restoreVersion: "rows",
  compareVersions: "nothing",
  exportActions: "nothing",
  importActions: "rows",
  publishAction: "rows",
  unpublishAction: "nothing",
  runAction: "runs",
  listRuns: "nothing",
  replayRun: "runs",
  readPresets: "nothing",
  writePresets: "rows",
  checkCode: "nothing",
  readDeclarations: "nothing",
  addLogEvent: "rows",
  backtestTrigger: "nothing",
  previewSchedule: "nothing",
  readLogs: "nothing",
  previewApp: "nothing",
  recordAnalytics: "rows",
  clientTriggers: "nothing",
  compileAction: "nothing",
  reportClientRun: "rows",
  cancelRun: "nothing",
  cancelBacklog: "nothing",
  pauseSchedules: "rows",
  readDataSources: "nothing",
  writeDataSources: "rows",
  removeDataSources: "nothing",
  readEntries: "nothing",
  writeEntries: "rows",
  removeEntries: "nothing",
  signInAppUser: "nothing",
  verifyAppUser: "rows",
  readSession: "nothing",
  readMedia: "nothing",
  writeMedia: "rows",
  removeMedia: "nothing",
  sendMessage: "rows",
  readMessages: "nothing",
  decideMessage: "nothing",
  readAlerts: "nothing",
  manageAlerts: "rows",
  removeAlerts: "nothing",
  manageNotifications: "rows",
  readNotifications: "nothing",
  markNotifications: "rows",
  pushDevices: "nothing",
  addPushDevice: "rows",
};

/** Over which span the requests of a class are counted, in milliseconds. */
export const rateWindowOf = (rateClass: RateClass): number =>
  rateClass === "communicate" ? COMMUNICATE_WINDOW_MS : RATE_WINDOW_MS;

export function rateClassOf(operation: Operation): RateClass | undefined {
  return (ACCESS[operation] as Rule).rate;
}

/** Who makes the app, and knows the others who do. */
export const isAuthor = ({ kind }: Pick<Caller, "kind">): boolean => kind === "editor" || kind === "admin";

/** Whether it is a page's user, with what an app's page gives to anybody. */
export const isVisitor = ({ kind }: Pick<Caller, "kind">): boolean => kind === "live" || kind === "viewer";

/** Whether the caller's kind has the right, and the app is one of its own. An admin's every app is; that it exists is asked elsewhere. */
export function mayEnter(caller: Caller, operation: Operation, appId: number): boolean {
  return (ACCESS[operation].who as readonly CredentialKind[]).includes(caller.kind) && reachesApp(caller, appId);
}

function reachesApp(caller: Caller, appId: number): boolean {
  switch (caller.kind) {
    case "admin":
      return true;
    case "editor":
      return caller.editorOf.has(appId);
    default:
      return caller.appId === appId;
  }
}
