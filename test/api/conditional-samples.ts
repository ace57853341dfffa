/**
 * Sample changes for the REST routes and GraphQL mutations that accept a precondition. Each sample creates the resource that it changes.
 */
import { randomBytes } from "node:crypto";
import { createSignedInPerson } from "../harness/people.js";
import type { TestService } from "../harness/service.js";

export interface Sample {
  /** IDs for the parameters of the path, or for the arguments of the mutation. */
  ids: Record<string, string | number>;
  updatedAt: string;
  /** Token of the person who sends the change; by default the administrator's. */
  as?: string;
}

type MakeSample = (service: TestService) => Promise<Sample>;

export interface RestChange {
  make: MakeSample;
  body?: object | ((ids: Sample["ids"]) => object);
  /**
   * Path of the list that contains the resource, if no route reads the resource by itself. The change then accepts the ETag of the list.
   */
  list?: string;
}

export interface GraphqlChange {
  make: MakeSample;
  /** Arguments of the mutation, without `owner` and `ifUpdatedAt`. A text such as `$userId` stands for `ids.userId` of the sample. */
  call: string;
  /** Text of the argument that identifies the parent of the resource, such as `appId: 1, ` (the default). "" if there is none. */
  owner?: string;
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

const action: MakeSample = async (service) => {
  const { body } = await ask(service, "POST", ACTIONS, { name: nextName(), code: CODE });
  const { versions } = (await ask(service, "GET", `${ACTIONS}/${body.action.id}/versions`)).body;
  const { id, updatedAt } = body.action;
  return { ids: { id, actionId: id, versionId: versions[0].id }, updatedAt };
};

/** Creates an action of a published app. */
const makePublishable: MakeSample = async (service) => {
  await ask(service, "POST", `${APP}/publish`);
  return action(service);
};

const published: MakeSample = async (service) => {
  const sample = await makePublishable(service);
  await ask(service, "POST", `${ACTIONS}/${sample.ids["id"]}/publish`);
  return sample;
};

/** Creates an action with an HTTP trigger. The URL of the trigger ends with a secret. */
const makeActionWithSecret: MakeSample = async (service) => {
  const name = nextName();
  const triggers = [{ trigger: "http", where: { path: name, auth: { type: "secret" } } }];
  const { body } = await ask(service, "POST", ACTIONS, { name, code: CODE, triggers });
  return { ids: { id: body.action.id }, updatedAt: body.action.updatedAt };
};

const preset: MakeSample = async (service) => {
  const { ids } = await action(service);
  const { presets } = (await ask(service, "PUT", `${ACTIONS}/${ids["id"]}/presets/kept`, {})).body;
  return { ids: { ...ids, name: "kept" }, updatedAt: presets[0].updatedAt };
};

const dataSource: MakeSample = async (service) => {
  const data = { name: nextName(), entries: [{ n: 1 }, { n: 2 }] };
  const { id } = (await ask(service, "POST", `${APP}/data-sources`, data)).body.dataSource;
  // The import stores the entries that it replaces as a version.
  await ask(service, "POST", `${APP}/data-sources/${id}/import`, [{ n: 3 }]);
  const { versions } = (await ask(service, "GET", `${APP}/data-sources/${id}/versions`)).body;
  const { updatedAt } = (await ask(service, "GET", `${APP}/data-sources/${id}`)).body.dataSource;
  return { ids: { ds: id, id, versionId: versions[0].id }, updatedAt };
};

const entry: MakeSample = async (service) => {
  const { ids } = await dataSource(service);
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/data-sources/${ids["ds"]}/entries`, { n: 1 })).body;
  return { ids: { ds: ids["ds"]!, entryId: id }, updatedAt };
};

const folder: MakeSample = async (service) => {
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/media/folders`, { name: nextName() })).body.folder;
  return { ids: { id }, updatedAt };
};

const file: MakeSample = async (service) => {
  const form = new FormData();
  form.append("file", new Blob(["text"]), "text.txt");
  const headers = { "auth-token": service.tokens.editor };
  const answer = await fetch(`${service.url}${APP}/media/files`, { method: "POST", headers, body: form });
  const { files } = (await answer.json()) as { files: { id: number; updatedAt: string }[] };
  return { ids: { id: files[0]!.id }, updatedAt: files[0]!.updatedAt };
};

const notification: MakeSample = async (service) => {
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/notifications`, { data: { title: "a" } })).body;
  return { ids: { notificationId: id, id }, updatedAt };
};

const alert: MakeSample = async (service) => {
  const rule = { name: nextName(), condition: "failed", channel: "email", to: ["ann@example.com"] };
  const { id, updatedAt } = (await ask(service, "POST", `${APP}/alerts`, rule)).body.alert;
  return { ids: { alertId: id, id }, updatedAt };
};

/** Renames the app, and stores a version of the app that a restore can use. */
const app: MakeSample = async (service) => {
  const { updatedAt } = (await ask(service, "PUT", APP, { name: nextName() })).body.app;
  const { id } = (await ask(service, "POST", `${APP}/versions`)).body.version;
  return { ids: { versionId: id }, updatedAt };
};

const settings: MakeSample = async (service) => {
  await ask(service, "POST", `${APP}/settings`, { a: nextName(), _b: nextName() });
  const { headers } = await ask(service, "GET", `${APP}/settings`);
  return { ids: {}, updatedAt: headers.get("etag")!.slice(1, -1) };
};

const bindings: MakeSample = async (service) => {
  const list = [{ key: "_b", origin: "https://a.example", in: "header" }];
  const { headers } = await ask(service, "PUT", `${APP}/secret-bindings`, { bindings: list });
  return { ids: {}, updatedAt: headers.get("etag")!.slice(1, -1) };
};

const git: MakeSample = async (service) => {
  const connection = { provider: "github", url: `https://git.example/${nextName()}` };
  const { updatedAt } = (await ask(service, "PUT", `${APP}/git`, connection)).body.git;
  return { ids: {}, updatedAt };
};

const person = async (
  service: TestService,
): Promise<{ userId: number; organizationMember: string; appMember: string }> => {
  const names = { firstName: "Ann", lastName: "Lee", email: `${nextName()}@example.com`, organizationId: 1 };
  const { id: userId } = (await ask(service, "POST", "/v1/admin/users", names)).body.user;
  const giveRole = async (path: string) => {
    const { members } = (await ask(service, "PUT", `${path}/members/${userId}`, { role: "editor" })).body;
    return members.find(({ user }: { user: { id: number } }) => user.id === userId).updatedAt;
  };
  return { userId, organizationMember: await giveRole("/v1/organizations/1"), appMember: await giveRole(APP) };
};

const makeOrganizationMember: MakeSample = async (service) => {
  const { userId, organizationMember: updatedAt } = await person(service);
  return { ids: { organizationId: 1, userId }, updatedAt };
};

const makeAppMember: MakeSample = async (service) => {
  const { userId, appMember: updatedAt } = await person(service);
  return { ids: { userId }, updatedAt };
};

/** Creates an administrator with an account. At least one other administrator exists, because the last one cannot be removed. */
const administrator: MakeSample = async (service) => {
  const path = "/v1/admin/administrators";
  if ((await ask(service, "GET", path)).body.administrators.length === 0) await createSignedInPerson(service);
  const { user } = await createSignedInPerson(service);
  const { administrators } = (await ask(service, "GET", path)).body;
  const { updatedAt } = administrators.find(({ id }: { id: number }) => id === user.id);
  return { ids: { userId: user.id }, updatedAt };
};

const invitation: MakeSample = async (service) => {
  const data = { email: `${nextName()}@example.com`, role: "reader", appId: 1 };
  const { id, updatedAt } = (await ask(service, "POST", "/v1/organizations/1/invitations", data)).body.invitation;
  return { ids: { organizationId: 1, invitationId: id, id }, updatedAt };
};

const token: MakeSample = async (service) => {
  const { id } = (await ask(service, "POST", `${APP}/tokens`, { kind: "api", name: nextName() })).body;
  const { tokens } = (await ask(service, "GET", `${APP}/tokens`)).body;
  return {
    ids: { tokenId: id, id },
    updatedAt: tokens.find((candidate: { id: number }) => candidate.id === id).updatedAt,
  };
};

/** Creates a session, passkey or sign-in identity of a person's account. The time of its last change comes from the list of such items. */
const makeAccountItem =
  (list: string, key: string, make: (service: TestService, personId: number) => Promise<unknown>): MakeSample =>
  async (service) => {
    const { user, token: as } = await createSignedInPerson(service);
    await make(service, user.id);
    const found = await service.rest("GET", `/v1/auth/${list}`, { as });
    const { id, updatedAt } = found.body[list].find((candidate: { isCurrent?: boolean }) => !candidate.isCurrent);
    return { ids: { [key]: id, id }, updatedAt, as };
  };

const session = makeAccountItem("sessions", "sessionId", async (service, personId) => {
  const issue = `INSERT INTO credential (kind, hash, name, person_id, expires_at)
    VALUES ('editor', $1, 'session', $2, now() + interval '1 hour') RETURNING id`;
  const [{ id }] = await service.db.query(issue, [randomBytes(32), personId]);
  await service.db.query("INSERT INTO person_session (credential_id, person_id, device) VALUES ($1, $2, 'A')", [
    id,
    personId,
  ]);
});
const passkey = makeAccountItem("passkeys", "passkeyId", (service, personId) =>
  service.db.query(
    `INSERT INTO passkey (person_id, credential_id, public_key, counter, transports, name)
     VALUES ($1, $2, '\\x00', 0, '[]', 'a key')`,
    [personId, nextName()],
  ),
);
const identity = makeAccountItem("identities", "identityId", (service, personId) =>
  service.db.query(
    `INSERT INTO person_identity (person_id, issuer, subject, provider, manages_roles)
     VALUES ($1, 'https://id.example', $2, 'example', false)`,
    [personId, nextName()],
  ),
);

const V1 = "/v1/apps/:appId";
const ORGANIZATION = "/v1/organizations/:organizationId";
const V3 = "/v3/apps/:appId/actions";
const SOURCE = `${V1}/data-sources/:ds`;

export const REST_CHANGES: Record<string, RestChange> = {
  [`PUT ${V3}/:id`]: { make: action, body: { description: "changed" } },
  [`DELETE ${V3}/:id`]: { make: action },
  [`POST ${V3}/:id/publish`]: { make: makePublishable },
  [`POST ${V3}/:id/unpublish`]: { make: published },
  [`POST ${V3}/:id/rotate-secret`]: { make: makeActionWithSecret },
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
  [`PUT ${V1}/origins`]: { make: app, body: { origins: ["https://a.example"] } },
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
  [`PUT ${V1}/git`]: { make: git, body: { provider: "gitea", url: "https://git.example/a/b" } },
  [`DELETE ${V1}/git`]: { make: git },
  [`PUT ${V1}/secret-bindings`]: { make: bindings, body: { bindings: [] } },
  [`DELETE ${V1}/editors`]: { make: makeAppMember, body: ({ userId }) => ({ userId }), list: `${V1}/editors` },
  [`DELETE ${V1}/tokens/:tokenId`]: { make: token, list: `${V1}/tokens` },
  [`PUT ${V1}/members/:userId`]: { make: makeAppMember, body: { role: "reader" }, list: `${V1}/members` },
  [`DELETE ${V1}/members/:userId`]: { make: makeAppMember, list: `${V1}/members` },
  [`PUT ${ORGANIZATION}/members/:userId`]: {
    make: makeOrganizationMember,
    body: { role: "reader" },
    list: `${ORGANIZATION}/members`,
  },
  [`DELETE ${ORGANIZATION}/members/:userId`]: { make: makeOrganizationMember, list: `${ORGANIZATION}/members` },
  [`DELETE ${ORGANIZATION}/invitations/:invitationId`]: { make: invitation, list: `${ORGANIZATION}/invitations` },
  "DELETE /v1/admin/administrators/:userId": { make: administrator, list: "/v1/admin/administrators" },
  "DELETE /v1/auth/sessions/:sessionId": { make: session, list: "/v1/auth/sessions" },
  "DELETE /v1/auth/passkeys/:passkeyId": { make: passkey, list: "/v1/auth/passkeys" },
  "DELETE /v1/auth/identities/:identityId": { make: identity, list: "/v1/auth/identities" },
  [`PUT ${V1}/settings/secrecy`]: { make: settings, body: { keys: ["_b"], secret: true } },
};

const ID = " { id }";
const MEMBERS = " { updatedAt }";
const OF_ORGANIZATION = "organizationId: 1, ";

/** GraphQL changes by name of the mutation. */
export const GRAPHQL_CHANGES: Record<string, GraphqlChange> = {
  removeEditor: { make: makeAppMember, call: "userId: $userId", selection: ID },
  revokeToken: { make: token, call: "id: $id" },
  setAppMember: { make: makeAppMember, call: "userId: $userId, role: reader", selection: MEMBERS },
  removeAppMember: { make: makeAppMember, call: "userId: $userId", selection: MEMBERS },
  setOrganizationMember: {
    make: makeOrganizationMember,
    owner: OF_ORGANIZATION,
    call: "userId: $userId, role: reader",
    selection: MEMBERS,
  },
  removeOrganizationMember: {
    make: makeOrganizationMember,
    owner: OF_ORGANIZATION,
    call: "userId: $userId",
    selection: MEMBERS,
  },
  revokeInvitation: { make: invitation, owner: OF_ORGANIZATION, call: "id: $id" },
  removeAdministrator: { make: administrator, owner: "", call: "userId: $userId", selection: ID },
  endAuthSession: { make: session, owner: "", call: "id: $id" },
  removePasskey: { make: passkey, owner: "", call: "id: $id" },
  removeAuthIdentity: { make: identity, owner: "", call: "id: $id" },
  connectGit: {
    make: git,
    call: 'data: { provider: "gitea", url: "https://git.example/a/b" }',
    selection: " { webhookSecret }",
  },
  disconnectGit: { make: git, call: "" },
  setSecretBindings: { make: bindings, call: "bindings: []", selection: " { updatedAt }" },
  updateAction: { make: action, call: 'id: $id, data: { description: "b" }', selection: ID },
  removeAction: { make: action, call: "id: $id" },
  publishAction: { make: makePublishable, call: "id: $id", selection: " { action { id } }" },
  unpublishAction: { make: published, call: "id: $id" },
  rotateTriggerSecret: { make: makeActionWithSecret, call: "id: $id", selection: ID },
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
  setAppOrigins: { make: app, call: 'origins: ["https://a.example"]' },
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

/** Mutations that take no precondition, by their names in the GraphQL schema. */
export const STATELESS_MUTATIONS = [
  "applyManifest",
  "createStage",
  "removeStage",
  "promote",
  "rollbackPromotion",
  "pullGit",
  // Mutations that add or remove one member of a set: repeating the request changes nothing.
  ...["addEditor", "addPushSubscription", "removePushSubscription", "markNotificationsRead"],
  // Mutations of accounts and invitations.
  ...["updateOwnAccount", "endOtherAuthSessions", "createResetLink", "acceptInvitation"],
  // Mutation that sets a flag of a person: repeating the request changes nothing.
  "addAdministrator",
  // Mutations of a page's session.
  ...["authorizeAppUser", "logoutAppUser", "setSessionLocale", "verifyAppUser"],
  // Mutations that set a state: repeating the request changes nothing.
  ...["cancelRun", "cancelBacklog", "decideMessage", "pauseSchedules", "resumeSchedules"],
  // Mutations that change many resources at once. A commit states the expected state of each entry.
  ...["commitEntries", "deleteEntries", "importEntries", "importActions"],
];

/** Names of mutations that create something, or start something. No earlier state exists with which the service could compare. */
export const CREATING_MUTATION = /^(create|insert|add|run|replay|report|record|start|send|batchSend|test)[A-Z]/;
