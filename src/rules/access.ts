/** Access table: which callers may perform which operation. Read this file before you add an operation. */
import type { DraftOrLive } from "../data/action-types.js";
import type { CredentialKind } from "../data/credential.js";
import type { ActionError } from "../errors.js";
import { COMMUNICATE_RATE_WINDOW_MS, RATE_WINDOW_MS } from "../limits.js";
import { ROLES, type Role } from "./roles.js";

/** Classes of operations that have separate rate limits (specification, Limits). */
export type RateLimitClass = "manage" | "run" | "publish" | "communicate";

/** Caller of a request. The credential in the request identifies the caller (contract, section 2). */
export interface Caller {
  credentialId: number;
  kind: CredentialKind;
  personId: number | null;
  /** ID of the app to which an api, task, viewer or live credential belongs; null for all other kinds. */
  appId: number | null;
  /** Role of a person on each app, by app ID: the highest one on the app and its organization. Empty if the caller is no person. */
  roles: ReadonlyMap<number, Role>;
  /** Role of a person in each organization, by organization ID. Empty if the caller is no person. */
  organizations: ReadonlyMap<number, Role>;
  /** Scopes of an API token; null for an API token without scopes, and for all other kinds of credentials. */
  scopes: readonly TokenScope[] | null;
  /** Only for an OAuth token: app role of the person who authorized the client; null for none. This role limits the client's rights. */
  grantor?: Role | null;
  /** Only for the session of a person. A `provisional` session has no role until the person registers a passkey or sets a passphrase. */
  session?: "full" | "provisional";
  /** ID of the run for which the service issued a task token; null for all other kinds of credentials. */
  runId: number | null;
  /** For a task token: number of earlier runs in the chain of runs that led to the token's run. Otherwise 0. */
  runDepth: number;
  /** Only for a credential of an action's debug page: ID of this action, whose script the page can read even if the action is inactive. */
  debugActionId: number | null;
  /** Version of an action that this caller runs if the request names none: the draft (`master`) or the live version (`production`). */
  copy: DraftOrLive;
  /** Unix time in milliseconds at which the credential expires; Infinity if it does not expire. */
  expiresAt: number;
  /** Network address of the client that sent the request; absent if the service itself makes the call. */
  address?: string;
  /** Hash of the Git commit that the request deploys. The versions that the request creates store this hash. */
  commit?: string;
  /** Error for an unknown field in the request's body. The operation throws it after all other checks (`throwIfUnknownField`). */
  unknownField?: ActionError;
}

/** Scopes of API tokens (contract, section 7): the kinds of operations that a token can perform. */
export const TOKEN_SCOPES = ["read", "run", "settings", "data", "manage", "publish"] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** Kinds of callers in the access table: administrators of the service, roles of people, and credentials of one app. */
export type CallerRole = "administrator" | Role | "api" | "task" | "viewer" | "live";

interface OperationRule {
  callers: readonly CallerRole[];
  /** An API token with scopes needs at least one of these scopes. If absent, the operation rejects API tokens with scopes. */
  scopes?: readonly TokenScope[];
  rateClass?: RateLimitClass;
}

const ADMIN_ROLES = ["administrator", "owner", "admin"] as const;
const AUTHOR_ROLES = ["administrator", "owner", "admin", "editor"] as const;
const OPERATOR_ROLES = ["administrator", "owner", "admin", "editor", "operator"] as const;
const READER_ROLES = ["administrator", "owner", "admin", "editor", "reader"] as const;
const MEMBER_ROLES = ["administrator", "owner", "admin", "editor", "operator", "reader"] as const;
const BACKEND_CALLERS = ["administrator", "owner", "admin", "editor", "api", "task"] as const;
/** Callers that may read all data of the app: people except operators, and the app's back ends, which have an API or task token. */
const BACKEND_READERS = ["administrator", "owner", "admin", "editor", "reader", "api", "task"] as const;
const RUN_CALLERS = ["administrator", "owner", "admin", "editor", "operator", "api", "task", "viewer", "live"] as const;
/** Callers that can read notifications. A page gets only the notifications for everyone and those for the app user who is signed in on it. */
const NOTIFICATION_READERS = ["administrator", "owner", "admin", "editor", "api", "task", "viewer", "live"] as const;
const CLIENT_CALLERS = ["administrator", "owner", "admin", "editor", "viewer", "live"] as const;
/** Credentials of pages. On a page, an app user (a user of one app, not of the service) can sign in. */
const PAGE_CALLERS = ["viewer", "live"] as const;

/** Access table: the callers and token scopes that each operation allows. Every operation has a row. */
export const ACCESS_TABLE = {
  readSettings: { callers: BACKEND_READERS, scopes: ["settings", "read"] },
  writeSettings: { callers: BACKEND_CALLERS, scopes: ["settings"] },
  markSettings: { callers: AUTHOR_ROLES },
  readSettingsStatus: { callers: BACKEND_CALLERS, scopes: ["settings"] },
  readSecretBindings: { callers: AUTHOR_ROLES },
  writeSecretBindings: { callers: AUTHOR_ROLES, rateClass: "manage" },
  testSecretBinding: { callers: AUTHOR_ROLES, rateClass: "manage" },
  readSettingsUse: { callers: AUTHOR_ROLES, rateClass: "manage" },
  readRuntimeSettings: { callers: [...CLIENT_CALLERS, "reader"] },
  readAuditTrail: { callers: AUTHOR_ROLES },
  updateApp: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  readOrigins: { callers: READER_ROLES, scopes: ["read", "manage"] },
  writeOrigins: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  administrate: { callers: ADMIN_ROLES },
  manageOwnAccount: { callers: MEMBER_ROLES },
  createOrganization: { callers: ["administrator"] },
  manageAdministrators: { callers: ["administrator"] },
  listOrganizations: { callers: MEMBER_ROLES },
  readOrganization: { callers: ADMIN_ROLES },
  manageOrganization: { callers: ADMIN_ROLES },
  readMembers: { callers: AUTHOR_ROLES },
  manageMembers: { callers: ADMIN_ROLES },
  listApps: { callers: [...MEMBER_ROLES, "api", "task", "viewer", "live"], scopes: TOKEN_SCOPES },
  publishApp: { callers: AUTHOR_ROLES, scopes: ["publish"] },
  manageEditors: { callers: AUTHOR_ROLES },
  manageTokens: { callers: AUTHOR_ROLES },
  appVersions: { callers: AUTHOR_ROLES },
  listActions: { callers: MEMBER_ROLES, scopes: ["read", "manage", "publish"], rateClass: "manage" },
  getAction: { callers: READER_ROLES, scopes: ["read", "manage"], rateClass: "manage" },
  followActions: { callers: MEMBER_ROLES, scopes: ["read", "manage"] },
  createAction: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  updateAction: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  removeAction: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  listVersions: { callers: READER_ROLES, scopes: ["read", "manage"], rateClass: "manage" },
  getVersion: { callers: READER_ROLES, scopes: ["read", "manage"], rateClass: "manage" },
  restoreVersion: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "publish" },
  compareVersions: { callers: READER_ROLES, scopes: ["read", "manage"], rateClass: "manage" },
  exportActions: { callers: READER_ROLES, scopes: ["read", "manage"], rateClass: "manage" },
  importActions: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  readManifest: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  writeManifest: { callers: AUTHOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  readStages: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  writeStages: { callers: AUTHOR_ROLES, rateClass: "manage" },
  promote: { callers: AUTHOR_ROLES, rateClass: "manage" },
  readGit: { callers: AUTHOR_ROLES },
  writeGit: { callers: AUTHOR_ROLES, rateClass: "manage" },
  pullGit: { callers: AUTHOR_ROLES, rateClass: "publish" },
  publishAction: { callers: AUTHOR_ROLES, scopes: ["publish"], rateClass: "publish" },
  unpublishAction: { callers: AUTHOR_ROLES, scopes: ["publish"], rateClass: "publish" },
  runAction: { callers: RUN_CALLERS, scopes: ["run"], rateClass: "run" },
  // If a request names a version (draft or live), the service checks `runDraft` or `runLive`; otherwise `runAction`.
  runDraft: { callers: OPERATOR_ROLES, scopes: ["manage"], rateClass: "run" },
  runLive: { callers: [...OPERATOR_ROLES, "api"], scopes: ["run"], rateClass: "run" },
  listRuns: { callers: [...MEMBER_ROLES, "api"], scopes: ["read"] },
  replayRun: { callers: OPERATOR_ROLES, rateClass: "run" },
  readPresets: { callers: MEMBER_ROLES, scopes: ["read", "manage"] },
  writePresets: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  checkCode: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  readDeclarations: { callers: READER_ROLES, scopes: ["read", "manage"] },
  addLogEvent: { callers: BACKEND_CALLERS, scopes: ["data"] },
  backtestTrigger: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  previewSchedule: { callers: MEMBER_ROLES, scopes: ["read", "manage"] },
  readLogs: { callers: [...MEMBER_ROLES, "api"], scopes: ["read"] },
  previewApp: { callers: AUTHOR_ROLES },
  recordAnalytics: { callers: CLIENT_CALLERS },
  clientTriggers: { callers: CLIENT_CALLERS },
  compileAction: { callers: CLIENT_CALLERS },
  reportClientRun: { callers: CLIENT_CALLERS },
  cancelRun: { callers: RUN_CALLERS, scopes: ["run"] },
  cancelBacklog: { callers: OPERATOR_ROLES },
  pauseSchedules: { callers: OPERATOR_ROLES, scopes: ["manage"], rateClass: "manage" },
  readDataSources: { callers: BACKEND_READERS, scopes: ["read", "data", "manage"] },
  writeDataSources: { callers: BACKEND_CALLERS, scopes: ["manage"] },
  removeDataSources: { callers: BACKEND_CALLERS, scopes: ["manage"] },
  // All other callers, even those without a credential, need an access rule of the data source for these operations.
  readEntries: { callers: BACKEND_READERS, scopes: ["read", "data"] },
  writeEntries: { callers: BACKEND_CALLERS, scopes: ["data"] },
  removeEntries: { callers: BACKEND_CALLERS, scopes: ["data"] },
  signInAppUser: { callers: PAGE_CALLERS },
  verifyAppUser: { callers: PAGE_CALLERS },
  readSession: { callers: CLIENT_CALLERS },
  // All other callers, even those without a credential, need an access rule of the folder or file for these operations.
  readMedia: { callers: BACKEND_READERS, scopes: ["read", "data"] },
  writeMedia: { callers: BACKEND_CALLERS, scopes: ["data"] },
  removeMedia: { callers: BACKEND_CALLERS, scopes: ["data"] },
  useAi: { callers: ["task"] },
  sendMessage: { callers: BACKEND_CALLERS, scopes: ["data"], rateClass: "communicate" },
  // Messages contain sign-in codes of app users, so the role "reader" cannot read messages.
  readMessages: { callers: BACKEND_CALLERS, scopes: ["data"] },
  decideMessage: { callers: AUTHOR_ROLES },
  readAlerts: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  manageAlerts: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  removeAlerts: { callers: AUTHOR_ROLES, scopes: ["manage"] },
  manageNotifications: { callers: BACKEND_CALLERS, scopes: ["data"] },
  readNotifications: { callers: NOTIFICATION_READERS, scopes: ["data"] },
  markNotifications: { callers: NOTIFICATION_READERS, scopes: ["data"] },
  pushDevices: { callers: NOTIFICATION_READERS, scopes: ["data"] },
  addPushDevice: { callers: NOTIFICATION_READERS, scopes: ["data"] },
} as const satisfies Record<string, OperationRule>;

export type Operation = keyof typeof ACCESS_TABLE;

/**
 * Rows that each operation adds to the database. When the disk is nearly full, the service rejects operations that add `rows` first, and
 * those that add `runs` last. It does not reject those with `nothing`, because they add no or few rows.
 */
export const ADDED_RESOURCE_BY_OPERATION: Record<Operation, "nothing" | "rows" | "runs"> = {
  readSettings: "nothing",
  writeSettings: "nothing",
  markSettings: "nothing",
  readSettingsStatus: "nothing",
  readSettingsUse: "nothing",
  readSecretBindings: "nothing",
  writeSecretBindings: "rows",
  testSecretBinding: "rows",
  readRuntimeSettings: "nothing",
  readAuditTrail: "nothing",
  updateApp: "rows",
  readOrigins: "nothing",
  writeOrigins: "nothing",
  administrate: "rows",
  manageOwnAccount: "nothing",
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

export const getRateLimitWindowMs = (rateClass: RateLimitClass): number =>
  rateClass === "communicate" ? COMMUNICATE_RATE_WINDOW_MS : RATE_WINDOW_MS;

export function getRateLimitClass(operation: Operation): RateLimitClass | undefined {
  return (ACCESS_TABLE[operation] as OperationRule).rateClass;
}

/** True for the session of a person, with any role. */
export const isPersonCaller = ({ kind }: Pick<Caller, "kind">): boolean => kind === "editor" || kind === "admin";

/** True for the credential of an app's page (live or viewer). An app user can sign in on this page. */
export const isPageCaller = ({ kind }: Pick<Caller, "kind">): boolean => kind === "live" || kind === "viewer";

export function getCallerRole(caller: Caller, appId: number): CallerRole | null {
  switch (caller.kind) {
    case "admin":
      return "administrator";
    case "editor":
      return caller.roles.get(appId) ?? null;
    default:
      return caller.appId === appId ? caller.kind : null;
  }
}

/**
 * True if the access table allows the operation for this role.
 * @param scopes scopes of an API token, which then decide instead of the role; otherwise null
 */
export function isOperationAllowedForRole(
  operation: Operation,
  callerRole: CallerRole,
  scopes: readonly TokenScope[] | null = null,
): boolean {
  const { callers, scopes: allowedScopes = [] }: OperationRule = ACCESS_TABLE[operation];
  if (callerRole === "api" && scopes !== null) return allowedScopes.some((scope) => scopes.includes(scope));
  return callers.includes(callerRole);
}

/** True if the caller may perform the operation on the app. For administrators, also true if the app does not exist. */
export function mayPerformOnApp(caller: Caller, operation: Operation, appId: number): boolean {
  const callerRole = getCallerRole(caller, appId);
  if (callerRole === null || !isOperationAllowedForRole(operation, callerRole, caller.scopes)) return false;
  return (
    caller.grantor === undefined || (caller.grantor !== null && isOperationAllowedForRole(operation, caller.grantor))
  );
}

/** True if the caller may perform the operation in the organization. For administrators, also true if the organization does not exist. */
export function mayPerformOnOrganization(caller: Caller, operation: Operation, organizationId: number): boolean {
  const callerRole = caller.kind === "admin" ? "administrator" : caller.organizations.get(organizationId);
  return callerRole !== undefined && isOperationAllowedForRole(operation, callerRole);
}

/**
 * True if the caller may perform an operation that belongs to no app and no organization. Administrators and people need no role on an app.
 * An OAuth token has no right if the person who authorized it has no role on its app any more.
 */
export function mayPerformOnService({ kind, scopes, grantor }: Caller, operation: Operation): boolean {
  if (grantor === null) return false;
  if (kind === "admin") return isOperationAllowedForRole(operation, "administrator");
  return kind === "editor"
    ? ROLES.some((role) => isOperationAllowedForRole(operation, role))
    : isOperationAllowedForRole(operation, kind, scopes);
}
