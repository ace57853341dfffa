/** The permission table: which callers may perform which operation. Read this file before you add an operation. */
import type { Copy } from "../data/action-types.js";
import type { CredentialKind } from "../data/credential.js";
import type { ActionError } from "../errors.js";
import { COMMUNICATE_WINDOW_MS, RATE_WINDOW_MS } from "../limits.js";
import { ROLES, type Role } from "./roles.js";

/** Classes of operations that have separate rate limits (specification, Limits). */
export type RateClass = "manage" | "run" | "publish" | "communicate";

/** Caller of a request, as the credential of the request identifies it (contract, section 2). */
export interface Caller {
  credentialId: number;
  kind: CredentialKind;
  personId: number | null;
  /** ID of the app of an api, task, viewer or live credential; null for all other kinds. */
  appId: number | null;
  /** Role of a person on each app: the higher one of the roles on the app and on its organization. Empty for all other kinds. */
  roles: ReadonlyMap<number, Role>;
  /** Role of a person in each organization. Empty for all other kinds. */
  organizations: ReadonlyMap<number, Role>;
  /** Scopes of an API token; null for a token without scopes, and for all other kinds of credentials. */
  scopes: readonly Scope[] | null;
  /**
   * Role of the person who authorized a program, for an OAuth token: the program's rights never exceed the person's.
   * Null if the person has no role on the app any more; absent for all other credentials.
   */
  grantor?: Role | null;
  /** Set for a session of a person's sign-in; `provisional`, with no role, until the person registers a passkey. Absent for tokens. */
  session?: "full" | "provisional";
  /** ID of the run to which a task token belongs. */
  runId: number | null;
  /** Number of runs in the chain that led to this task token's run; each run of the chain started the next one. */
  runDepth: number;
  /** ID of the action if a viewer credential belongs to its debug page, which can read the action's script in any state. */
  debugs: number | null;
  /** Version of an action, draft or live, that this caller starts (specification, "Which version runs"). */
  copy: Copy;
  /** Unix time in milliseconds at which the credential expires; Infinity if it does not expire. */
  expiresAt: number;
  /** The network address of the request, if there is one. */
  address?: string;
  /** Hash of the Git commit from which the request deploys. Versions that the request creates store the hash. */
  commit?: string;
  /** Unknown field of the request's body. The operation reports it after all other faults, by `reportUnknownField`. */
  unknownField?: ActionError;
}

/** What an API token with scopes can do (contract, section 7). */
export const SCOPES = ["read", "run", "settings", "data", "manage", "publish"] as const;
export type Scope = (typeof SCOPES)[number];

/** Kinds of callers in the access table: administrators of the service, roles of people, and credentials of one app. */
export type CallerRole = "administrator" | Role | "api" | "task" | "viewer" | "live";

interface Rule {
  who: readonly CallerRole[];
  /** API tokens with scopes need one of these. If absent, such tokens are not allowed. */
  scopes?: readonly Scope[];
  rate?: RateClass;
}

const ADMIN_ROLES = ["administrator", "owner", "admin"] as const;
const AUTHOR_ROLES = ["administrator", "owner", "admin", "editor"] as const;
const OPERATOR_ROLES = ["administrator", "owner", "admin", "editor", "operator"] as const;
const READER_ROLES = ["administrator", "owner", "admin", "editor", "reader"] as const;
const MEMBER_ROLES = ["administrator", "owner", "admin", "editor", "operator", "reader"] as const;
const BACKEND_CALLERS = ["administrator", "owner", "admin", "editor", "api", "task"] as const;
/** Callers who may read app data, such as back ends of the app. */
const BACKEND_READERS = ["administrator", "owner", "admin", "editor", "reader", "api", "task"] as const;
const RUN_CALLERS = ["administrator", "owner", "admin", "editor", "operator", "api", "task", "viewer", "live"] as const;
/** Callers who can read the notifications of their own user. */
const NOTIFICATION_READERS = ["administrator", "owner", "admin", "editor", "api", "task", "viewer", "live"] as const;
/** Credentials that can open an app page. */
const CLIENT_CALLERS = ["administrator", "owner", "admin", "editor", "viewer", "live"] as const;
/** Credentials of pages, in which an app user can sign in. */
const PAGES = ["viewer", "live"] as const;

/** Access table: the callers and token scopes that each operation allows. Every operation has a row. */
export const ACCESS_TABLE = {
  readSettings: { who: BACKEND_READERS, scopes: ["settings", "read"] },
  writeSettings: { who: BACKEND_CALLERS, scopes: ["settings"] },
  markSettings: { who: AUTHOR_ROLES },
  readSettingsStatus: { who: BACKEND_CALLERS, scopes: ["settings"] },
  readSecretBindings: { who: AUTHOR_ROLES },
  writeSecretBindings: { who: AUTHOR_ROLES, rate: "manage" },
  testSecretBinding: { who: AUTHOR_ROLES, rate: "manage" },
  readSettingsUse: { who: AUTHOR_ROLES, rate: "manage" },
  readRuntimeSettings: { who: [...CLIENT_CALLERS, "reader"] },
  readTrail: { who: AUTHOR_ROLES },
  updateApp: { who: AUTHOR_ROLES, scopes: ["manage"] },
  readOrigins: { who: READER_ROLES, scopes: ["read", "manage"] },
  writeOrigins: { who: AUTHOR_ROLES, scopes: ["manage"] },
  administrate: { who: ADMIN_ROLES },
  ownAccount: { who: MEMBER_ROLES },
  createOrganization: { who: ["administrator"] },
  manageAdministrators: { who: ["administrator"] },
  listOrganizations: { who: MEMBER_ROLES },
  readOrganization: { who: ADMIN_ROLES },
  manageOrganization: { who: ADMIN_ROLES },
  readMembers: { who: AUTHOR_ROLES },
  manageMembers: { who: ADMIN_ROLES },
  listApps: { who: [...MEMBER_ROLES, "api", "task", "viewer", "live"], scopes: SCOPES },
  publishApp: { who: AUTHOR_ROLES, scopes: ["publish"] },
  manageEditors: { who: AUTHOR_ROLES },
  manageTokens: { who: AUTHOR_ROLES },
  appVersions: { who: AUTHOR_ROLES },
  listActions: { who: MEMBER_ROLES, scopes: ["read", "manage", "publish"], rate: "manage" },
  getAction: { who: READER_ROLES, scopes: ["read", "manage"], rate: "manage" },
  followActions: { who: MEMBER_ROLES, scopes: ["read", "manage"] },
  createAction: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  updateAction: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  removeAction: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  listVersions: { who: READER_ROLES, scopes: ["read", "manage"], rate: "manage" },
  getVersion: { who: READER_ROLES, scopes: ["read", "manage"], rate: "manage" },
  restoreVersion: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "publish" },
  compareVersions: { who: READER_ROLES, scopes: ["read", "manage"], rate: "manage" },
  exportActions: { who: READER_ROLES, scopes: ["read", "manage"], rate: "manage" },
  importActions: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  readManifest: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  writeManifest: { who: AUTHOR_ROLES, scopes: ["manage"], rate: "manage" },
  readStages: { who: AUTHOR_ROLES, scopes: ["manage"] },
  writeStages: { who: AUTHOR_ROLES, rate: "manage" },
  promote: { who: AUTHOR_ROLES, rate: "manage" },
  readGit: { who: AUTHOR_ROLES },
  writeGit: { who: AUTHOR_ROLES, rate: "manage" },
  pullGit: { who: AUTHOR_ROLES, rate: "publish" },
  publishAction: { who: AUTHOR_ROLES, scopes: ["publish"], rate: "publish" },
  unpublishAction: { who: AUTHOR_ROLES, scopes: ["publish"], rate: "publish" },
  runAction: { who: RUN_CALLERS, scopes: ["run"], rate: "run" },
  // This applies only to requests that name the version: `runAction` runs the version that belongs to the credential.
  runDraft: { who: OPERATOR_ROLES, scopes: ["manage"], rate: "run" },
  runLive: { who: [...OPERATOR_ROLES, "api"], scopes: ["run"], rate: "run" },
  listRuns: { who: [...MEMBER_ROLES, "api"], scopes: ["read"] },
  replayRun: { who: OPERATOR_ROLES, rate: "run" },
  readPresets: { who: MEMBER_ROLES, scopes: ["read", "manage"] },
  writePresets: { who: AUTHOR_ROLES, scopes: ["manage"] },
  checkCode: { who: AUTHOR_ROLES, scopes: ["manage"] },
  readDeclarations: { who: READER_ROLES, scopes: ["read", "manage"] },
  addLogEvent: { who: BACKEND_CALLERS, scopes: ["data"] },
  backtestTrigger: { who: AUTHOR_ROLES, scopes: ["manage"] },
  previewSchedule: { who: MEMBER_ROLES, scopes: ["read", "manage"] },
  readLogs: { who: [...MEMBER_ROLES, "api"], scopes: ["read"] },
  previewApp: { who: AUTHOR_ROLES },
  recordAnalytics: { who: CLIENT_CALLERS },
  clientTriggers: { who: CLIENT_CALLERS },
  compileAction: { who: CLIENT_CALLERS },
  reportClientRun: { who: CLIENT_CALLERS },
  cancelRun: { who: RUN_CALLERS, scopes: ["run"] },
  cancelBacklog: { who: OPERATOR_ROLES },
  pauseSchedules: { who: OPERATOR_ROLES, scopes: ["manage"], rate: "manage" },
  readDataSources: { who: BACKEND_READERS, scopes: ["read", "data", "manage"] },
  writeDataSources: { who: BACKEND_CALLERS, scopes: ["manage"] },
  removeDataSources: { who: BACKEND_CALLERS, scopes: ["manage"] },
  // Other callers, with or without a credential, are subject to the access rules of the data source.
  readEntries: { who: BACKEND_READERS, scopes: ["read", "data"] },
  writeEntries: { who: BACKEND_CALLERS, scopes: ["data"] },
  removeEntries: { who: BACKEND_CALLERS, scopes: ["data"] },
  signInAppUser: { who: PAGES },
  verifyAppUser: { who: PAGES },
  readSession: { who: CLIENT_CALLERS },
  // Other callers, with or without a credential, are subject to the media access rules of the app.
  readMedia: { who: BACKEND_READERS, scopes: ["read", "data"] },
  writeMedia: { who: BACKEND_CALLERS, scopes: ["data"] },
  removeMedia: { who: BACKEND_CALLERS, scopes: ["data"] },
  useAi: { who: ["task"] },
  sendMessage: { who: BACKEND_CALLERS, scopes: ["data"], rate: "communicate" },
  // Messages contain sign-in codes of app users, so readers cannot see them.
  readMessages: { who: BACKEND_CALLERS, scopes: ["data"] },
  decideMessage: { who: AUTHOR_ROLES },
  readAlerts: { who: AUTHOR_ROLES, scopes: ["manage"] },
  manageAlerts: { who: AUTHOR_ROLES, scopes: ["manage"] },
  removeAlerts: { who: AUTHOR_ROLES, scopes: ["manage"] },
  manageNotifications: { who: BACKEND_CALLERS, scopes: ["data"] },
  readNotifications: { who: NOTIFICATION_READERS, scopes: ["data"] },
  markNotifications: { who: NOTIFICATION_READERS, scopes: ["data"] },
  pushDevices: { who: NOTIFICATION_READERS, scopes: ["data"] },
  addPushDevice: { who: NOTIFICATION_READERS, scopes: ["data"] },
} as const satisfies Record<string, Rule>;

export type Operation = keyof typeof ACCESS_TABLE;

/**
 * Kind of rows that an operation adds to the database. When the disk is nearly full, operations that add `rows` are
 * rejected first and those that add `runs` last. `nothing` also stands for removals, and for operations that mostly
 * read: they check the free space where they write.
 */
export const RESOURCE_ADDED_BY: Record<Operation, "nothing" | "rows" | "runs"> = {
  readSettings: "nothing",
  writeSettings: "nothing",
  markSettings: "nothing",
  readSettingsStatus: "nothing",
  readSettingsUse: "nothing",
  readSecretBindings: "nothing",
  writeSecretBindings: "rows",
  testSecretBinding: "rows",
  readRuntimeSettings: "nothing",
  readTrail: "nothing",
  updateApp: "rows",
  readOrigins: "nothing",
  writeOrigins: "nothing",
  administrate: "rows",
  ownAccount: "nothing",
  createOrganization: "rows",
  manageAdministrators: "nothing",
  listOrganizations: "nothing",
  readOrganization: "nothing",
  manageOrganization: "rows",
  readMembers: "nothing",
  manageMembers: "rows",
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
  readManifest: "nothing",
  writeManifest: "rows",
  readStages: "nothing",
  writeStages: "rows",
  promote: "rows",
  readGit: "nothing",
  writeGit: "rows",
  pullGit: "rows",
  publishAction: "rows",
  unpublishAction: "nothing",
  runAction: "runs",
  runDraft: "runs",
  runLive: "runs",
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
  useAi: "rows",
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

/** Returns the length of the rate limit's window for a class, in milliseconds. */
export const rateWindowOf = (rateClass: RateClass): number =>
  rateClass === "communicate" ? COMMUNICATE_WINDOW_MS : RATE_WINDOW_MS;

export function rateClassOf(operation: Operation): RateClass | undefined {
  return (ACCESS_TABLE[operation] as Rule).rate;
}

/** True for a session of a person, whatever the person's roles are. */
export const isPersonCaller = ({ kind }: Pick<Caller, "kind">): boolean => kind === "editor" || kind === "admin";

/** True for the credential of an app user's page. */
export const isVisitor = ({ kind }: Pick<Caller, "kind">): boolean => kind === "live" || kind === "viewer";

/** Returns the role of the caller on an app, as in the access table; null if the caller has none. */
export function callerRoleIn(caller: Caller, appId: number): CallerRole | null {
  switch (caller.kind) {
    case "admin":
      return "administrator";
    case "editor":
      return caller.roles.get(appId) ?? null;
    default:
      return caller.appId === appId ? caller.kind : null;
  }
}

/** True if the access table allows the operation for this role, and for the scopes of an API token. */
export function allowsOperation(
  operation: Operation,
  callerRole: CallerRole,
  scopes: readonly Scope[] | null = null,
): boolean {
  const { who, scopes: permitted = [] }: Rule = ACCESS_TABLE[operation];
  if (callerRole === "api" && scopes !== null) return permitted.some((scope) => scopes.includes(scope));
  return who.includes(callerRole);
}

/** True if the caller may perform the operation on the app. For administrators it is also true if the app does not exist. */
export function mayEnter(caller: Caller, operation: Operation, appId: number): boolean {
  const standing = callerRoleIn(caller, appId);
  if (standing === null || !allowsOperation(operation, standing, caller.scopes)) return false;
  return caller.grantor === undefined || (caller.grantor !== null && allowsOperation(operation, caller.grantor));
}

/**
 * True if the caller may perform the operation in the organization. For administrators it is also true if the
 * organization does not exist.
 */
export function mayEnterOrganization(caller: Caller, operation: Operation, organizationId: number): boolean {
  const standing = caller.kind === "admin" ? "administrator" : caller.organizations.get(organizationId);
  return standing !== undefined && allowsOperation(operation, standing);
}

/** True if the caller may perform an operation that belongs to no app and no organization. A person needs no role for it. */
export function mayEnterService({ kind, scopes }: Caller, operation: Operation): boolean {
  if (kind === "admin") return allowsOperation(operation, "administrator");
  return kind === "editor"
    ? ROLES.some((role) => allowsOperation(operation, role))
    : allowsOperation(operation, kind, scopes);
}
