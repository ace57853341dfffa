/** One sample call for each operation of the access table. TypeScript reports an operation without a sample as an error. */
import type { Operation } from "../../src/rules/access.js";
import type { TestService } from "../harness/service.js";

/** Caller of a sample call, the IDs of the app and organization that the call names, and a queued run that the caller started. */
export interface SampleInput {
  token: string | null;
  organizationId: number;
  appId: number;
  runId: number;
}

/** Sends a sample call as `caller`. Returns the status of the error if the service refuses the call, otherwise null. */
type Sample = (service: TestService, input: SampleInput) => Promise<string | null>;

const UNKNOWN_SCRIPT_HASH = `sha256-${"A".repeat(43)}=`;

/** ID that no row has. A caller with permission gets a not-found error, and nothing changes. */
const UNKNOWN_ID = 2_000_000_000;

const rest =
  (method: string, path: string, body?: unknown): Sample =>
  async (service, { token, organizationId, appId, runId }) => {
    const ids = { ":app": appId, ":run": runId, ":organization": organizationId };
    const filled = path.replace(/:(app|run|organization)\b/g, (name) => String(ids[name as keyof typeof ids]));
    const answer = await service.rest(method, filled, { as: token, body });
    return answer.http < 400 ? null : answer.body.status;
  };

const query =
  (field: string): Sample =>
  async (service, { token, appId }) => {
    const { errors } = await service.graphql(`query ($app: Int!) { ${field} }`, { app: appId }, { as: token });
    return errors?.[0].extensions.status ?? null;
  };

/** Returns a sample that starts a subscription. The sample returns the status of the refusal, or null if the subscription sends data. */
const subscription =
  (field: string): Sample =>
  async (service, { token, appId }) => {
    const client = service.socket(token ?? "none");
    const received = client.iterate({ query: `subscription ($app: Int!) { ${field} }`, variables: { app: appId } });
    try {
      const { value } = await received.next();
      return (value?.errors?.[0]?.extensions?.["status"] as string | undefined) ?? null;
    } catch (error) {
      // graphql-ws throws the close event of the socket (4403: no valid credential), or the errors of a refused subscription.
      if ((error as { code?: number }).code === 4403) return "UNAUTHORIZED";
      return (error as { extensions: { status: string } }[])[0]!.extensions.status;
    } finally {
      await received.return?.();
      await client.dispose();
    }
  };

/** Returns a sample that opens a page. The page shows a refusal as HTML, so the sample derives the status from the HTTP status. */
const page =
  (path: string): Sample =>
  async (service, { token, appId }) => {
    const headers: Record<string, string> = token ? { cookie: `auth_token=${token}` } : {};
    const { http } = await service.rest("GET", path.replace(":app", String(appId)), { as: null, headers });
    return ({ 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "APP_NOT_FOUND" } as Record<number, string>)[http] ?? null;
  };

/** Scope of a route about people: an app, an organization, the service, or the account of the caller's session. */
type PeopleScope = "app" | "organization" | "service" | "session";

export const PEOPLE_ROUTES: Readonly<Record<string, readonly [Operation, PeopleScope]>> = {
  "GET /v1/auth/session": ["manageOwnAccount", "service"],
  "PUT /v1/auth/account": ["manageOwnAccount", "session"],
  "GET /v1/auth/sessions": ["manageOwnAccount", "session"],
  "DELETE /v1/auth/sessions/:sessionId": ["manageOwnAccount", "session"],
  "DELETE /v1/auth/sessions": ["manageOwnAccount", "session"],
  "POST /v1/auth/passkeys/registration-options": ["manageOwnAccount", "session"],
  "POST /v1/auth/passkeys": ["manageOwnAccount", "session"],
  "GET /v1/auth/passkeys": ["manageOwnAccount", "session"],
  "GET /v1/auth/passkeys/:passkeyId": ["manageOwnAccount", "session"],
  "DELETE /v1/auth/passkeys/:passkeyId": ["manageOwnAccount", "session"],
  "GET /v1/auth/identities": ["manageOwnAccount", "session"],
  "DELETE /v1/auth/identities/:identityId": ["manageOwnAccount", "session"],
  "GET /v1/organizations": ["listOrganizations", "service"],
  "POST /v1/organizations": ["createOrganization", "service"],
  "GET /v1/organizations/:organizationId/members": ["readOrganization", "organization"],
  "PUT /v1/organizations/:organizationId/members/:userId": ["manageOrganization", "organization"],
  "DELETE /v1/organizations/:organizationId/members/:userId": ["manageOrganization", "organization"],
  "POST /v1/organizations/:organizationId/members/:userId/reset-link": ["manageOrganization", "organization"],
  "GET /v1/organizations/:organizationId/invitations": ["manageOrganization", "organization"],
  "POST /v1/organizations/:organizationId/invitations": ["manageOrganization", "organization"],
  "DELETE /v1/organizations/:organizationId/invitations/:invitationId": ["manageOrganization", "organization"],
  "GET /v1/organizations/:organizationId/audit": ["readOrganization", "organization"],
  "GET /v1/apps/:appId/members": ["readMembers", "app"],
  "PUT /v1/apps/:appId/members/:userId": ["manageMembers", "app"],
  "DELETE /v1/apps/:appId/members/:userId": ["manageMembers", "app"],
  "GET /v1/apps/:appId/editors": ["manageEditors", "app"],
  "POST /v1/apps/:appId/editors": ["manageEditors", "app"],
  "DELETE /v1/apps/:appId/editors": ["manageEditors", "app"],
  "GET /v1/apps/:appId/tokens": ["manageTokens", "app"],
  "POST /v1/apps/:appId/tokens": ["manageTokens", "app"],
  "DELETE /v1/apps/:appId/tokens/:tokenId": ["manageTokens", "app"],
  "GET /v1/apps/:appId/origins": ["readOrigins", "app"],
  "PUT /v1/apps/:appId/origins": ["writeOrigins", "app"],
  "GET /v1/apps/:appId/audit": ["readAuditTrail", "app"],
  "PUT /v1/admin/apps/:appId": ["administrate", "app"],
  "POST /v1/admin/apps": ["administrate", "organization"],
  "POST /v1/admin/users": ["administrate", "organization"],
  "GET /v1/admin/administrators": ["manageAdministrators", "service"],
  "PUT /v1/admin/administrators/:userId": ["manageAdministrators", "service"],
  "DELETE /v1/admin/administrators/:userId": ["manageAdministrators", "service"],
};

/** Returns a sample that requests a route. All IDs in the path are unknown, except those of the app and the organization. */
export function peopleSample(route: string): Sample {
  const [method = "", path = ""] = route.split(" ");
  return async (service, { token, organizationId, appId }) => {
    const filled = path
      .replace(":appId", String(appId))
      .replace(":organizationId", String(organizationId))
      .replace(/:\w+/g, String(UNKNOWN_ID));
    const body = method === "GET" || path.includes(":sessionId") ? undefined : { organizationId };
    const answer = await service.rest(method, filled, { as: token, ...(body && { body }) });
    return answer.http < 400 ? null : answer.body.status;
  };
}

const ACTION = `/v3/apps/:app/actions/${UNKNOWN_ID}`;

export const SAMPLES: Record<Operation, Sample> = {
  readSettings: rest("GET", "/v1/apps/:app/settings"),
  writeSettings: rest("POST", "/v1/apps/:app/settings", { sample: 1 }),
  markSettings: rest("PUT", "/v1/apps/:app/settings/secrecy", { keys: ["_none"], secret: false }),
  readSettingsStatus: rest("GET", "/v1/apps/:app/settings/status"),
  readSettingsUse: rest("GET", "/v1/apps/:app/settings/use"),
  readRuntimeSettings: rest("GET", "/v1/apps/:app/env.js"),
  readAuditTrail: rest("GET", "/v1/apps/:app/audit"),
  readOrigins: rest("GET", "/v1/apps/:app/origins"),
  writeOrigins: rest("PUT", "/v1/apps/:app/origins", { origins: [] }),
  updateApp: rest("PUT", "/v1/apps/:app", {}),
  administrate: rest("PUT", "/v1/admin/apps/:app", {}),
  listApps: rest("GET", "/v1/apps"),
  createOrganization: rest("POST", "/v1/organizations", {}),
  manageAdministrators: rest("GET", "/v1/admin/administrators"),
  listOrganizations: rest("GET", "/v1/organizations"),
  readOrganization: rest("GET", "/v1/organizations/:organization/members"),
  manageOrganization: rest("PUT", `/v1/organizations/:organization/members/${UNKNOWN_ID}`, {}),
  readMembers: rest("GET", "/v1/apps/:app/members"),
  manageMembers: rest("PUT", `/v1/apps/:app/members/${UNKNOWN_ID}`, {}),
  manageOwnAccount: rest("GET", "/v1/auth/session"),
  publishApp: rest("POST", "/v1/apps/:app/publish"),
  manageEditors: rest("DELETE", "/v1/apps/:app/editors", { userId: UNKNOWN_ID }),
  manageTokens: rest("GET", "/v1/apps/:app/tokens"),
  appVersions: rest("GET", "/v1/apps/:app/versions"),
  listActions: rest("GET", "/v3/apps/:app/actions"),
  getAction: rest("GET", ACTION),
  createAction: rest("POST", "/v3/apps/:app/actions", {}),
  updateAction: rest("PUT", ACTION, {}),
  removeAction: rest("DELETE", ACTION),
  listVersions: rest("GET", `${ACTION}/versions`),
  getVersion: rest("GET", `${ACTION}/versions/1`),
  restoreVersion: rest("POST", `${ACTION}/versions/1/restore`),
  compareVersions: rest("GET", `${ACTION}/diff`),
  exportActions: rest("GET", "/v3/apps/:app/actions/export"),
  importActions: rest("POST", "/v3/apps/:app/actions/import", {}),
  readManifest: rest("GET", "/v1/apps/:app/manifest"),
  readStages: rest("GET", "/v1/apps/:app/stages"),
  writeStages: rest("POST", "/v1/apps/:app/stages", {}),
  promote: rest("POST", `/v1/apps/:app/promotions/${UNKNOWN_ID}/rollback`),
  readGit: rest("GET", "/v1/apps/:app/git"),
  writeGit: rest("PUT", "/v1/apps/:app/git", {}),
  pullGit: rest("POST", "/v1/apps/:app/git/pull"),
  writeManifest: rest("PUT", "/v1/apps/:app/manifest", {}),
  publishAction: rest("POST", `${ACTION}/publish`),
  unpublishAction: rest("POST", `${ACTION}/unpublish`),
  runAction: rest("POST", `${ACTION}/run`),
  runDraft: rest("POST", `${ACTION}/run?copy=draft`),
  runLive: rest("POST", `${ACTION}/run?copy=live`),
  readLogs: rest("POST", "/v3/apps/:app/actions/logs"),
  listRuns: rest("GET", "/v3/apps/:app/runs"),
  replayRun: rest("POST", `/v3/apps/:app/runs/${UNKNOWN_ID}/replay`),
  readPresets: rest("GET", `${ACTION}/presets`),
  writePresets: rest("PUT", `${ACTION}/presets/one`, {}),
  checkCode: rest("POST", "/v3/apps/:app/actions/problems", { code: "" }),
  readDeclarations: rest(
    "GET",
    `/v3/apps/:app/packages/declarations?integrity=${encodeURIComponent(UNKNOWN_SCRIPT_HASH)}`,
  ),
  addLogEvent: rest("POST", "/v1/apps/:app/logs", {}),
  backtestTrigger: rest("POST", "/v3/apps/:app/triggers/backtest", {}),
  previewSchedule: rest("GET", "/v3/apps/:app/schedule/preview"),
  previewApp: page("/apps/:app/viewer"),
  recordAnalytics: rest("POST", "/v1/apps/:app/analytics", { events: [] }),
  clientTriggers: subscription("clientTriggers(appId: $app) { __typename }"),
  followActions: subscription("actionChanged(appId: $app) { __typename }"),
  compileAction: query(`compiledAction(appId: $app, id: ${UNKNOWN_ID}) { id }`),
  reportClientRun: rest("POST", `${ACTION}/clientRuns`, {}),
  readDataSources: rest("GET", "/v1/apps/:app/data-sources"),
  writeDataSources: rest("POST", "/v1/apps/:app/data-sources", {}),
  removeDataSources: rest("DELETE", `/v1/apps/:app/data-sources/${UNKNOWN_ID}`),
  readEntries: rest("GET", `/v1/apps/:app/data-sources/${UNKNOWN_ID}/entries/1`),
  writeEntries: rest("POST", `/v1/apps/:app/data-sources/${UNKNOWN_ID}/entries`, {}),
  removeEntries: rest("DELETE", `/v1/apps/:app/data-sources/${UNKNOWN_ID}/entries/1`),
  signInAppUser: rest("DELETE", "/v1/apps/:app/session"),
  verifyAppUser: rest("POST", "/v1/apps/:app/session/verify", {}),
  readSession: rest("GET", "/v1/apps/:app/session"),
  readMedia: rest("GET", `/v1/apps/:app/media/files/${UNKNOWN_ID}`),
  writeMedia: rest("PUT", `/v1/apps/:app/media/folders/${UNKNOWN_ID}`, {}),
  removeMedia: rest("DELETE", `/v1/apps/:app/media/files/${UNKNOWN_ID}`),
  useAi: rest("POST", "/v1/apps/:app/ai/completions", {}),
  sendMessage: rest("POST", "/v1/apps/:app/communicate/email", {}),
  readMessages: rest("GET", "/v1/apps/:app/communicate/messages"),
  decideMessage: rest("POST", `/v1/apps/:app/communicate/messages/${UNKNOWN_ID}/decide`, { decision: "sent" }),
  readSecretBindings: rest("GET", "/v1/apps/:app/secret-bindings"),
  writeSecretBindings: rest("PUT", "/v1/apps/:app/secret-bindings", {}),
  testSecretBinding: rest("POST", "/v1/apps/:app/secret-bindings/test", {}),
  readAlerts: rest("GET", "/v1/apps/:app/alerts"),
  manageAlerts: rest("POST", "/v1/apps/:app/alerts", {}),
  removeAlerts: rest("DELETE", `/v1/apps/:app/alerts/${UNKNOWN_ID}`),
  manageNotifications: rest("DELETE", `/v1/apps/:app/notifications/${UNKNOWN_ID}`),
  readNotifications: rest("GET", "/v1/apps/:app/notifications/unread"),
  markNotifications: rest("POST", "/v1/apps/:app/notifications/read", { ids: [] }),
  pushDevices: rest("DELETE", "/v1/apps/:app/push/subscriptions", { id: UNKNOWN_ID }),
  addPushDevice: rest("POST", "/v1/apps/:app/push/subscriptions", {}),
  cancelRun: rest("POST", "/v3/apps/:app/runs/:run/cancel"),
  pauseSchedules: rest("POST", "/v1/apps/:app/schedules/pause"),
  cancelBacklog: rest("POST", "/v3/apps/:app/backlog/cancel"),
};
