/** A valid body for each route that reads one. The test of unknown fields fails for a route without a sample. */
import { AI_CALL_KINDS } from "../../src/rules/ai/options.js";
import { createAccounts, PASSPHRASE } from "../harness/people.js";
import type { TestService } from "../harness/service.js";

export interface BodySample {
  /** Body of the sample. A text such as `{stage}` stands for the ID or token of this name. */
  body: unknown;
  /** Paths of values that no schema describes; "" is the whole body. */
  free?: readonly string[];
}

const CODE = "async function execute() { return 1; }";
const FREE_COLUMN_PATHS = ["data", "where", "payload"];

/** IDs that the samples refer to, by the names of path parameters. */
export type Ids = Record<string, string | number>;

export async function prepareSamples(service: TestService): Promise<Ids> {
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await service.rest(method, path, { as: "admin", body });
    if (answer.http >= 300) throw new Error(`${method} ${path}: ${answer.http} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const manual = { active: true, triggers: [{ trigger: "manual" }], code: CODE };
  const { action } = await ask("POST", "/v3/apps/1/actions", { name: "bodySample", ...manual });
  const clientAction = { ...manual, name: "bodySampleClient", environment: "any" };
  const client = (await ask("POST", "/v3/apps/1/actions", clientAction)).action;
  const { runId } = await ask("POST", `/v3/apps/1/actions/${action.id}/run`, {});
  const users = await ask("POST", "/v1/apps/1/data-sources", {
    name: "users",
    columns: ["Email", "Password"],
    hooks: [{ type: "operations", runOn: ["insert"], fields: { Password: ["hash"] } }],
    isUsers: true,
    entries: [{ Email: "ann@example.com", Password: "secret" }],
  });
  await ask("POST", "/v1/apps/1/settings", { _a: "set", _verify: { dataSource: "users", email: "Email" } });
  const entry = await ask("POST", "/v1/apps/1/data-sources/1/entries", { Name: "Ann" });
  const { folder } = await ask("POST", "/v1/apps/1/media/folders", { name: "sample" });
  const form = new FormData();
  form.append("file", new Blob(["text"]), "text.txt");
  const headers = { "auth-token": service.tokens.editor };
  const upload = await fetch(`${service.url}/v1/apps/1/media/files`, { method: "POST", headers, body: form });
  const { files } = (await upload.json()) as { files: { id: number }[] };
  const notification = await ask("POST", "/v1/apps/1/notifications", { data: { title: "a" } });
  const { alert } = await ask("POST", "/v1/apps/1/alerts", { ...ALERT, name: "sample" });
  const link = await createAccounts(service).accounts.createSetupLink();
  const person = { firstName: "A", lastName: "B", email: "setup@example.com", passphrase: PASSPHRASE };
  const setup = await service.rest("POST", "/v1/auth/setup", { as: null, body: { token: link.token, ...person } });
  const { accounts } = createAccounts(service);
  const { user } = setup.body;
  const invitation = { email: "invited@example.com", role: "reader" };
  const invited = await ask("POST", `/v1/organizations/${service.organizationId}/invitations`, invitation);
  const { app: stage } = await ask("POST", "/v1/apps/1/stages", { name: "next" });
  const [, session = ""] = /auth_token=([^;]*)/.exec(setup.headers.get("set-cookie") ?? "") ?? [];
  return {
    session,
    ...{
      setupToken: (await accounts.createSetupLink()).token,
      resetToken: (await accounts.createResetLink(user.id, { personId: null }, async () => undefined)).token,
    },
    ...{ invitationToken: String(invited.link).split("#token=")[1]!, stage: stage.id },
    ...{ appId: 1, actionId: action.id, nameOrId: action.id, action: action.id, client: client.id, runId },
    ...{ ds: 1, users: users.dataSource.id, entryId: entry.id, folder: folder.id, file: files[0]!.id },
    ...{ notificationId: notification.id, alertId: alert.id, messageId: 1, name: "kept" },
    ...{ organizationId: service.organizationId, userId: 1 },
  };
}

const ALERT = { name: "later", condition: "failed", channel: "email", to: ["ann@example.com"] };
const ACTION = {
  name: "other",
  code: CODE,
  triggers: [{ trigger: "log", where: { type: "app.view", data: {} } }],
  concurrency: { policy: "skip", limit: 1 },
  debounce: { delayMs: 50 },
};
const RULE = { type: ["select"], allow: { user: { Role: { equals: "a" } } }, require: [{ Name: { contains: "b" } }] };
const HOOKS = [
  { type: "operations", runOn: ["insert"], fields: { Name: ["trim"] } },
  { type: "email", runOn: ["insert"], to: [{ email: "a@example.com" }], subject: "a", text: "b", headers: {} },
  { type: "sms", runOn: ["insert"], to: "+41790000000", body: "a" },
];
const FREE_HOOK_PATHS = ["hooks[0].fields", "hooks[1].headers"];
const SOURCE = { columns: ["Name"], accessRules: [RULE], hooks: HOOKS, indexes: [{ columns: ["Name"] }] };
const FREE_SOURCE_PATHS = [...FREE_HOOK_PATHS, "accessRules[0].allow.user", "accessRules[0].require[0]"];
const EMAIL = {
  to: [{ email: "a@example.com", type: "cc" }],
  subject: "a",
  text: "b",
  headers: {},
  attachments: [{ type: "text/plain", name: "a.txt", content: "a" }],
};
const SMS = { to: "+41790000000", body: "a" };
const NOTIFICATION = { data: {}, pushNotification: { payload: {} } };
const FREE_NOTIFICATION_PATHS = ["data", "pushNotification.payload"];
const MEDIA_RULES = { accessRules: [{ type: ["read"], allow: { user: { Role: { equals: "a" } } } }] };
const PUSH = {
  endpoint: "https://push.example/1",
  expirationTime: null,
  keys: { p256dh: "A".repeat(87), auth: "A".repeat(22) },
};

/** Sample of a route for whose body the OpenAPI document describes no fields, for example because the body is a payload. */
const FREE_BODY: BodySample = { body: { any: 1 }, free: [""] };

const APP = "/v1/apps/{appId}";
const V3 = "/v3/apps/{appId}";
const DS = `${APP}/data-sources/{ds}`;

export const BODY_SAMPLES: Record<string, BodySample> = {
  [`POST ${V3}/actions`]: { body: ACTION, free: ["triggers[0].where.data"] },
  [`PUT ${V3}/actions/{id}`]: {
    body: {
      ...{ ...ACTION, name: "changed", source: { language: "javascript", files: { "action.js": CODE } } },
      triggers: [
        ...ACTION.triggers,
        { trigger: "http", where: { method: "POST", path: "other", auth: { type: "none" } } },
      ],
    },
    // The service takes the code from `source`, and does not check the value of `code`.
    free: ["triggers[0].where.data", "source.files", "code"],
  },
  [`POST ${V3}/actions/logs`]: { body: { where: { type: "app.task.failed", data: { taskId: 1 } }, limit: 1 } },
  [`POST ${V3}/actions/import`]: { body: { format: "svc-app-actions/1", actions: [{ name: "imported", code: CODE }] } },
  [`POST ${V3}/actions/{nameOrId}/run`]: FREE_BODY,
  [`POST ${V3}/actions/{nameOrId}/runWithResult`]: FREE_BODY,
  [`POST ${V3}/backlog/cancel`]: { body: { actionId: 1 } },
  [`POST ${V3}/actions/{id}/clientRuns/started`]: { body: { payload: {} }, free: FREE_COLUMN_PATHS },
  [`POST ${V3}/actions/{id}/clientRuns`]: {
    body: { payload: {}, duration: 1, error: { name: "a", message: "b", stack: "c" } },
    free: FREE_COLUMN_PATHS,
  },
  [`POST ${APP}/analytics`]: {
    body: { events: [{ createdAt: 1, type: "analytics.event", data: {} }] },
    free: ["events[0].data"],
  },
  [`POST ${APP}/logs`]: { body: { type: "app.view", data: {} }, free: ["data"] },
  [`POST ${V3}/triggers/backtest`]: { body: { where: { type: "app.view" } } },
  [`POST ${V3}/runs/{runId}/replay`]: { body: { copy: "master", payload: {} }, free: ["payload"] },
  [`PUT ${V3}/actions/{actionId}/presets/{name}`]: FREE_BODY,
  [`POST ${V3}/actions/problems`]: { body: { code: CODE, dependencies: [] } },
  [`POST ${APP}/settings`]: FREE_BODY,
  [`DELETE ${APP}/settings`]: { body: { keys: ["a"] } },
  [`POST ${APP}/settings/secure`]: { body: { settingKey: "a", value: {} }, free: ["value"] },
  [`PUT ${APP}/secret-bindings`]: {
    body: { bindings: [{ key: "_a", origin: "https://a.example", in: "header", value: {} }] },
    free: ["bindings[0].value"],
  },
  [`POST ${APP}/secret-bindings/test`]: { body: { key: "_a", origin: "https://a.example", path: "/" } },
  [`PUT ${APP}/settings/secrecy`]: { body: { keys: ["_a"], secret: false } },
  [`PUT ${APP}`]: { body: { name: "App", hooks: [], dependencies: [] }, free: ["hooks", "settings"] },
  "PUT /v1/admin/apps/{appId}": { body: { name: "App" } },
  "POST /v1/admin/apps": { body: { name: "Other" } },
  "POST /v1/admin/users": { body: { firstName: "A", lastName: "B", email: "made@example.com" } },
  // No schema describes the options of AI calls. The AI operation validates them itself, and its error names the faulty field.
  ...Object.fromEntries(AI_CALL_KINDS.map((call) => [`POST ${APP}/ai/${call}`, FREE_BODY])),
  [`PUT ${APP}/origins`]: { body: { origins: ["https://shop.example"] } },
  [`POST ${APP}/editors`]: { body: { userId: 1 } },
  [`DELETE ${APP}/editors`]: { body: { userId: 1 } },
  [`POST ${APP}/tokens`]: { body: { kind: "api" } },
  "POST /v1/organizations": { body: { name: "sample" } },
  "PUT /v1/organizations/{organizationId}/members/{userId}": { body: { role: "reader" } },
  "POST /v1/organizations/{organizationId}/invitations": {
    body: { email: "d@example.com", role: "reader", appId: 1, expiresInHours: 1 },
  },
  [`PUT ${APP}/members/{userId}`]: { body: { role: "reader" } },
  "POST /v1/auth/invitations/accept": {
    body: { token: "{invitationToken}", firstName: "A", lastName: "B", passphrase: PASSPHRASE },
  },
  [`PUT ${APP}/manifest`]: { body: { version: 1 } },
  [`POST ${APP}/stages`]: { body: { name: "sample", expiresInHours: 1 } },
  [`PUT ${APP}/git`]: { body: { provider: "github", url: "https://git.example/a/b", prune: false } },
  [`POST ${APP}/git/pull`]: { body: { ref: "refs/heads/main" } },
  [`POST ${APP}/promotions`]: { body: { fromAppId: "{stage}" } },
  // The browser defines the JSON of passkeys (WebAuthn). The OpenAPI document has no schema for its fields.
  "POST /v1/auth/passkeys": FREE_BODY,
  "POST /v1/auth/passkeys/sign-in": FREE_BODY,
  "POST /v1/auth/setup": {
    body: { token: "{setupToken}", email: "c@example.com", firstName: "A", lastName: "B", passphrase: PASSPHRASE },
  },
  "POST /v1/auth/sign-in": { body: { email: "setup@example.com", passphrase: PASSPHRASE } },
  "PUT /v1/auth/account": { body: { firstName: "A" } },
  "POST /v1/auth/reset": { body: { email: "c@example.com" } },
  "POST /v1/auth/reset/confirm": { body: { token: "{resetToken}", passphrase: PASSPHRASE } },
  [`POST ${APP}/data-sources`]: {
    body: { name: "new", ...SOURCE, entries: [{ a: 1 }] },
    free: [...FREE_SOURCE_PATHS, "entries[0]"],
  },
  [`PUT ${DS}`]: { body: SOURCE, free: FREE_SOURCE_PATHS },
  [`POST ${DS}/try`]: {
    body: { user: { data: {} }, accessRules: [RULE], where: {} },
    free: ["user.data", "where", "accessRules[0].allow.user", "accessRules[0].require[0]"],
  },
  [`POST ${DS}/entries`]: FREE_BODY,
  [`PUT ${DS}/entries/{entryId}`]: FREE_BODY,
  [`POST ${DS}/query`]: {
    body: {
      type: "select",
      where: { $filters: [{ column: "Name", condition: "between", value: { from: 1, to: 2 } }] },
      join: { Others: { dataSourceId: 1, on: { "data.Name": "data.Name" }, where: {} } },
    },
    free: ["where", "join", "join.Others.on", "join.Others.where"],
  },
  [`POST ${DS}/commit`]: { body: { entries: [{ data: {} }], append: true }, free: ["entries[0].data"] },
  [`POST ${APP}/session`]: {
    body: { dataSourceName: "users", where: { Email: "ann@example.com", Password: "secret" } },
    free: ["where"],
  },
  [`PUT ${APP}/session`]: { body: { locale: "en" } },
  [`POST ${APP}/session/verify`]: { body: { email: "ann@example.com" } },
  [`POST ${APP}/media/folders`]: { body: { name: "new" } },
  [`PUT ${APP}/media/folders/{id}`]: { body: { name: "renamed" } },
  [`PUT ${APP}/media/files/{id}`]: { body: { name: "renamed.txt" } },
  [`POST ${APP}/media/files/{id}/link`]: { body: { expiresIn: 60 } },
  [`PUT ${APP}/media/files/{id}/accessRules`]: { body: MEDIA_RULES, free: ["accessRules[0].allow.user"] },
  [`PUT ${APP}/media/folders/{id}/accessRules`]: { body: MEDIA_RULES, free: ["accessRules[0].allow.user"] },
  [`POST ${APP}/communicate/email`]: { body: EMAIL, free: ["headers"] },
  [`POST ${APP}/communicate/email/batch`]: {
    body: [{ options: EMAIL, data: {} }],
    free: ["[0].options.headers", "[0].data"],
  },
  [`POST ${APP}/communicate/sms`]: { body: SMS },
  [`POST ${APP}/communicate/sms/batch`]: { body: [{ data: SMS, provider: null }] },
  [`POST ${APP}/communicate/messages/{messageId}/decide`]: { body: { decision: "sent" } },
  [`POST ${APP}/notifications`]: { body: NOTIFICATION, free: FREE_NOTIFICATION_PATHS },
  [`POST ${APP}/notifications/batch`]: {
    body: [NOTIFICATION],
    free: FREE_NOTIFICATION_PATHS.map((path) => `[0].${path}`),
  },
  [`POST ${APP}/notifications/read`]: { body: { ids: "all" } },
  [`PUT ${APP}/notifications/{notificationId}`]: { body: NOTIFICATION, free: FREE_NOTIFICATION_PATHS },
  [`POST ${APP}/push/subscriptions`]: { body: PUSH },
  [`DELETE ${APP}/push/subscriptions`]: { body: { endpoint: PUSH.endpoint } },
  [`POST ${APP}/alerts`]: { body: ALERT },
  [`PUT ${APP}/alerts/{alertId}`]: { body: ALERT },
};

/** Returns the URL of a sample's route. */
export function fillPath(route: string, ids: Ids): string {
  const idsByRoute: Record<string, string | number | undefined> = {
    ...(route.includes("/clientRuns") && { id: ids["client"] }),
    ...(route.includes("/media/files") && { id: ids["file"] }),
    ...(route.includes("/media/folders") && { id: ids["folder"] }),
  };
  const path = route.split(" ")[1]!;
  return path.replace(/\{(\w+)\}/g, (_, name: string) => String(idsByRoute[name] ?? ids[name] ?? ids["action"]));
}

export function fillIds(body: unknown, ids: Ids): unknown {
  const [, name] = /^\{(\w+)\}$/.exec(typeof body === "string" ? body : "") ?? [];
  if (name !== undefined) return ids[name];
  if (Array.isArray(body)) return body.map((item) => fillIds(item, ids));
  if (typeof body !== "object" || body === null) return body;
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [key, fillIds(value, ids)]));
}

export const UNKNOWN = "unknwn";

const FAULTY_VALUE = -1;

/**
 * Returns one body for each top-level field that a schema describes. This field has the value -1, which most fields reject. An unknown
 * field precedes all others.
 */
export function bodiesWithFaults({ body, free = [] }: BodySample): { field: string; body: unknown }[] {
  const isList = Array.isArray(body);
  const object = (isList ? body[0] : body) as Record<string, unknown>;
  const path = (field: string) => (isList ? `[0].${field}` : field);
  if (free.includes("")) return [];
  return Object.keys(object)
    .filter((field) => !free.includes(path(field)))
    .map((field) => {
      const faulty = { [UNKNOWN]: 1, ...object, [field]: FAULTY_VALUE };
      return { field, body: isList ? [faulty] : faulty };
    });
}

/** Returns one body for each object with a schema. This object has an additional unknown field. */
export function bodiesWithUnknownField({ body, free = [] }: BodySample): { path: string; body: unknown }[] {
  const found: { path: string; body: unknown }[] = [];
  const visit = (value: unknown, path: string, put: (changed: unknown) => unknown) => {
    const isFree = free.includes(path);
    if (Array.isArray(value)) {
      for (const [at, item] of value.entries())
        visit(item, `${path}[${at}]`, (changed) => put(value.with(at, changed)));
    } else if (typeof value === "object" && value !== null) {
      if (!isFree)
        found.push({ path: path === "" ? UNKNOWN : `${path}.${UNKNOWN}`, body: put({ ...value, [UNKNOWN]: 1 }) });
      for (const [name, member] of Object.entries(value)) {
        visit(member, path === "" ? name : `${path}.${name}`, (changed) => put({ ...value, [name]: changed }));
      }
    }
  };
  if (!free.includes("")) visit(body, "", (changed) => changed);
  return found;
}

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI schema has no static type
export type Schema = Record<string, any>;

/**
 * Returns the schema of the value at the path, and the name of its type. The schema is empty if the document does not describe the value.
 */
function schemaAt(path: string, schema: Schema, components: Schema): { type: string; schema: Schema } {
  const resolve = (reference: Schema | undefined) => {
    const inner: Schema = reference?.["anyOf"]?.find((each: Schema) => "$ref" in each) ?? reference ?? {};
    const type = String(inner["$ref"]?.split("/").at(-1) ?? path);
    return { type, schema: components[type] ?? inner };
  };
  const steps = path.match(/\w+/g) ?? [];
  return steps.reduce(
    (at, step) => resolve(/^\d/.test(step) ? at.schema["items"] : at.schema["properties"]?.[step]),
    resolve(schema),
  );
}

/** Returns one body for each field that the schema describes. The body has null in this field, and an unknown field after it. */
export function bodiesWithNullFields(sample: BodySample, body: Schema, components: Schema) {
  return bodiesWithUnknownField(sample).flatMap(({ path, body: unknown }) => {
    const parent = path.slice(0, -UNKNOWN.length);
    const { type, schema } = schemaAt(parent, body, components);
    const text = JSON.stringify(unknown);
    return Object.keys(schema["properties"] ?? {}).map((name) => {
      const described: unknown = JSON.parse(text.replace(`"${UNKNOWN}":`, `"${name}":null,"${UNKNOWN}":`));
      return { field: `${parent}${name}`, ofType: `${type}.${name}`, body: described };
    });
  });
}
