/** One sample of each change that starts from a state, for REST and GraphQL: what to change, and the state that it is in. */
import type { TestService } from "../harness/service.js";

/** A resource, as the state that a change of it starts from. */
interface Sample {
  /** The ids of the path, or of the arguments. */
  ids: Record<string, string | number>;
  updatedAt: string;
}

type Make = (service: TestService) => Promise<Sample>;

export interface RestChange {
  make: Make;
  body?: object;
}

export interface GraphqlChange {
  make: Make;
  /** The call without `ifUpdatedAt`; `$name` stands for the ids of the sample. */
  call: string;
  selection?: string;
}

const APP = "/v1/apps/1";
const ACTIONS = "/v3/apps/1/actions";
const CODE = "async function execute() { return 1; }";

let made = 0;
function nextName(): string {
  made += 1;
  return `sample${made}`;
}

async function ask(service: TestService, method: string, path: string, body?: object) {
  const answer = await service.rest(method, path, { body, as: "admin" });
  if (answer.http >= 300) throw new Error(`${method} ${path}: ${answer.http} ${JSON.stringify(answer.body)}`);
  return answer;
}

const action: Make = async (service) => {
  const { body } = await ask(service, "POST", ACTIONS, { name: nextName(), code: CODE });
  const { versions } = (await ask(service, "GET", `${ACTIONS}/${body.action.id}/versions`)).body;
  const { id, updatedAt } = body.action;
  return { ids: { id, actionId: id, versionId: versions[0].id }, updatedAt };
};

/** In a published app. */
const publishable: Make = async (service) => {
  await ask(service, "POST", `${APP}/publish`);
  return action(service);
};

const published: Make = async (service) => {
  const sample = await publishable(service);
  await ask(service, "POST", `${ACTIONS}/${sample.ids["id"]}/publish`);
  return sample;
};

/** With a secret in its address. */
const withSecret: Make = async (service) => {
  const name = nextName();
  const triggers = [{ trigger: "http", where: { path: name, auth: { type: "secret" } } }];
  const { body } = await ask(service, "POST", ACTIONS, { name, code: CODE, triggers });
  return { ids: { id: body.action.id }, updatedAt: body.action.updatedAt };
};

const preset: Make = async (service) => {
  const { ids } = await action(service);
  const { presets } = (await ask(service, "PUT", `${ACTIONS}/${ids["id"]}/presets/kept`, {})).body;
  return { ids: { ...ids, name: "kept" }, updatedAt: presets[0].updatedAt };
};

const dataSource: Make = async (service) => {
  const data = { name: nextName(), entries: [{ n: 1 }, { n: 2 }] };
  const { id } = (await ask(service, "POST", `${APP}/data-sources`, data)).body.dataSource;
  // An import leaves a version of what it replaces.
  await ask(service, "POST", `${APP}/data-sources/${id}/import`, [{ n: 3 }]);
  const { versions } = (await ask(service, "GET", `${APP}/data-sources/${id}/versions`)).body;
  const { updatedAt } = (await ask(service, "GET", `${APP}/data-sources/${id}`)).body.dataSource;
  return { ids: { ds: id, id, versionId: versions[0].id }, updatedAt };
};

const entry: Make = async (service) => {
  const { ids } = await dataSource(service);
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/data-sources/${ids["ds"]}/entries`, { n: 1 })).body;
  return { ids: { ds: ids["ds"]!, entryId: id }, updatedAt };
};

const folder: Make = async (service) => {
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/media/folders`, { name: nextName() })).body.folder;
  return { ids: { id }, updatedAt };
};

const file: Make = async (service) => {
  const form = new FormData();
  form.append("file", new Blob(["text"]), "text.txt");
  const headers = { "auth-token": service.tokens.editor };
  const answer = await fetch(`${service.url}${APP}/media/files`, { method: "POST", headers, body: form });
  const { files } = (await answer.json()) as { files: { id: number; updatedAt: string }[] };
  return { ids: { id: files[0]!.id }, updatedAt: files[0]!.updatedAt };
};

const notification: Make = async (service) => {
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/notifications`, { data: { title: "a" } })).body;
  return { ids: { notificationId: id, id }, updatedAt };
};

const alert: Make = async (service) => {
  const rule = { name: nextName(), condition: "failed", channel: "email", to: ["ann@example.com"] };
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/alerts`, rule)).body.alert;
  return { ids: { alertId: id, id }, updatedAt };
};

/** Changed first, so that a state of the past is another one. */
const app: Make = async (service) => {
  const { updatedAt } = (await ask(service, "PUT", APP, { name: nextName() })).body.app;
  const { id } = (await ask(service, "POST", `${APP}/versions`)).body.version;
  return { ids: { versionId: id }, updatedAt };
};

const settings: Make = async (service) => {
  await ask(service, "POST", `${APP}/settings`, { a: nextName(), _b: nextName() });
  const { headers } = await ask(service, "GET", `${APP}/settings`);
  return { ids: {}, updatedAt: headers.get("etag")!.slice(1, -1) };
};

const bindings: Make = async (service) => {
  const list = [{ key: "_b", origin: "https://a.example", in: "header" }];
  const { headers } = await ask(service, "PUT", `${APP}/secret-bindings`, { bindings: list });
  return { ids: {}, updatedAt: headers.get("etag")!.slice(1, -1) };
};

const V1 = "/v1/apps/:appId";
const V3 = "/v3/apps/:appId/actions";
const SOURCE = `${V1}/data-sources/:ds`;

/** By method and path of the REST table. */
export const REST_CHANGES: Record<string, RestChange> = {
  [`PUT ${V3}/:id`]: { make: action, body: { description: "changed" } },
  [`DELETE ${V3}/:id`]: { make: action },
  [`POST ${V3}/:id/publish`]: { make: publishable },
  [`POST ${V3}/:id/unpublish`]: { make: published },
  [`POST ${V3}/:id/rotate-secret`]: { make: withSecret },
  [`POST ${V3}/:actionId/versions/:versionId/restore`]: { make: action },
  [`PUT ${V3}/:actionId/presets/:name`]: { make: preset, body: { a: 1 } },
  [`DELETE ${V3}/:actionId/presets/:name`]: { make: preset },
  [`PUT ${SOURCE}`]: { make: dataSource, body: { hooks: [] } },
  [`DELETE ${SOURCE}`]: { make: dataSource },
  [`POST ${SOURCE}/versions/:versionId/restore`]: { make: dataSource },
  [`PUT ${SOURCE}/entries/:entryId`]: { make: entry, body: { n: 2 } },
  [`DELETE ${SOURCE}/entries/:entryId`]: { make: entry },
  [`PUT ${V1}/media/folders/:id`]: { make: folder, body: { parentId: null } },
  [`DELETE ${V1}/media/folders/:id`]: { make: folder },
  [`PUT ${V1}/media/files/:id`]: { make: file, body: { name: "other.txt" } },
  [`DELETE ${V1}/media/files/:id`]: { make: file },
  [`PUT ${V1}/media/folders/:id/accessRules`]: { make: folder, body: { accessRules: null } },
  [`PUT ${V1}/media/files/:id/accessRules`]: { make: file, body: { accessRules: null } },
  [`PUT ${V1}/notifications/:notificationId`]: { make: notification, body: { data: { title: "b" } } },
  [`DELETE ${V1}/notifications/:notificationId`]: { make: notification },
  [`PUT ${V1}/alerts/:alertId`]: { make: alert, body: { enabled: false } },
  [`DELETE ${V1}/alerts/:alertId`]: { make: alert },
  [`PUT ${V1}`]: { make: app, body: { icon: "star" } },
  "PUT /v1/admin/apps/:appId": { make: app, body: { icon: "star" } },
  [`POST ${V1}/publish`]: { make: app },
  [`POST ${V1}/unpublish`]: { make: app },
  [`POST ${V1}/versions/:versionId/restore`]: { make: app },
  [`POST ${V1}/settings`]: { make: settings, body: { a: "changed" } },
  [`DELETE ${V1}/settings`]: { make: settings, body: { keys: ["a"] } },
  [`POST ${V1}/settings/secure`]: { make: settings, body: { settingKey: "c", value: "kept" } },
  [`PUT ${V1}/secret-bindings`]: { make: bindings, body: { bindings: [] } },
  [`PUT ${V1}/settings/secrecy`]: { make: settings, body: { keys: ["_b"], secret: true } },
};

const ID = " { id }";

/** By mutation. */
export const GRAPHQL_CHANGES: Record<string, GraphqlChange> = {
  setSecretBindings: { make: bindings, call: "bindings: []", selection: " { updatedAt }" },
  updateAction: { make: action, call: 'id: $id, data: { description: "b" }', selection: ID },
  removeAction: { make: action, call: "id: $id" },
  publishAction: { make: publishable, call: "id: $id", selection: " { action { id } }" },
  unpublishAction: { make: published, call: "id: $id" },
  rotateTriggerSecret: { make: withSecret, call: "id: $id", selection: ID },
  restoreActionVersion: {
    make: action,
    call: "actionId: $id, versionId: $versionId",
    selection: " { restoredFromVersionId }",
  },
  savePayloadPreset: { make: preset, call: 'actionId: $id, name: "kept", payload: {}', selection: " { name }" },
  deletePayloadPreset: { make: preset, call: 'actionId: $id, name: "kept"', selection: " { name }" },
  updateDataSource: { make: dataSource, call: "id: $id, data: { hooks: [] }", selection: ID },
  deleteDataSource: { make: dataSource, call: "id: $id" },
  restoreDataSourceVersion: {
    make: dataSource,
    call: "dataSourceId: $id, versionId: $versionId",
    selection: " { inserted }",
  },
  updateEntry: { make: entry, call: "dataSourceId: $ds, id: $entryId, data: { n: 2 }", selection: ID },
  deleteEntry: { make: entry, call: "dataSourceId: $ds, id: $entryId", selection: ID },
  updateMediaFolder: { make: folder, call: "id: $id, parentId: null, accessRules: null", selection: ID },
  deleteMediaFolder: { make: folder, call: "id: $id" },
  updateMediaFile: { make: file, call: 'id: $id, name: "b.txt", accessRules: null', selection: ID },
  deleteMediaFile: { make: file, call: "id: $id" },
  updateNotification: { make: notification, call: "id: $id, notification: { data: {} }", selection: ID },
  deleteNotification: { make: notification, call: "id: $id" },
  updateAlertRule: { make: alert, call: "id: $id, rule: { enabled: false }", selection: ID },
  deleteAlertRule: { make: alert, call: "id: $id" },
  updateApp: { make: app, call: 'data: { icon: "star" }', selection: ID },
  administrateApp: { make: app, call: 'data: { icon: "star" }', selection: ID },
  publishApp: { make: app, call: "", selection: ID },
  unpublishApp: { make: app, call: "", selection: ID },
  restoreAppVersion: { make: app, call: "versionId: $versionId", selection: ID },
  setSettings: { make: settings, call: 'settings: { a: "b" }' },
  deleteSettings: { make: settings, call: 'keys: ["a"]' },
  markSettings: { make: settings, call: 'keys: ["_b"], secret: true', selection: " { key }" },
  setSecureField: { make: settings, call: 'settingKey: "c", value: "d"' },
};

/** Changes of what has no state of its own, by their names in the GraphQL schema. */
export const STATELESS_MUTATIONS = [
  "applyManifest",
  "createStage",
  "promote",
  "rollbackPromotion",
  // Members of a set, added and removed one by one: a repeat changes nothing.
  ...[
    "setAppOrigins",
    "addEditor",
    "removeEditor",
    "addPushSubscription",
    "removePushSubscription",
    "markNotificationsRead",
  ],
  // The caller's own account and sessions.
  ...["updateOwnAccount", "endAuthSession", "endOtherAuthSessions"],
  // Members and invitations: each change names the person, and the last one counts.
  ...["setOrganizationMember", "removeOrganizationMember", "setAppMember", "removeAppMember", "createResetLink"],
  ...["revokeInvitation", "acceptInvitation"],
  ...["removePasskey", "removeAuthIdentity"],
  // The caller's own session of a page.
  ...["authorizeAppUser", "logoutAppUser", "setSessionLocale", "verifyAppUser"],
  // Never changed, only revoked, cancelled or decided, once.
  ...["revokeToken", "cancelRun", "cancelBacklog", "decideMessage", "pauseSchedules", "resumeSchedules"],
  // Many at once; a commit names the state of each entry.
  ...["commitEntries", "deleteEntries", "importEntries", "importActions"],
];

/** New things, which no state precedes. */
export const MAKES = /^(create|insert|add|run|replay|report|record|start|send|batchSend|test)[A-Z]/;
