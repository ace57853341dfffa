/**
 * Sample request bodies for the reference of REST routes whose schema alone gives no useful example. Also sample values of single fields.
 */

const SAMPLE_CODE = "async function execute({ payload }) { return payload.name; }";
const ACTION = { name: "greet", active: true, triggers: [{ trigger: "manual" }], code: SAMPLE_CODE };
const SAMPLE_ALERT = { name: "jobs fail", condition: "failed", channel: "email", to: ["ann@example.com"] };
const SAMPLE_EMAIL = {
  to: [{ email: "ann@example.com", name: "Ann" }],
  subject: "Order {{number}}",
  text: "Your order {{number}} has shipped.",
  attachments: [{ type: "text/plain", name: "a.txt", content: "Hello", encoding: "utf8" }],
};
const SMS = { to: "+41790000000", body: "Your order has shipped." };
const SAMPLE_NOTIFICATION = {
  status: "published",
  data: { title: "We ship today", message: "Orders before noon leave today." },
};
const SAMPLE_RULES = [{ type: ["select"], allow: "all" }];
const MEDIA_RULES = { accessRules: [{ type: ["read"], allow: "all" }] };
const SAMPLE_PERSON = { firstName: "Ann", lastName: "Lee" };
const SAMPLE_PASSPHRASE = "a long passphrase";

const APP = "/v1/apps/{appId}";
const V3 = "/v3/apps/{appId}";
const DS = `${APP}/data-sources/{ds}`;

/** Sample request bodies by method and path, as in the OpenAPI document. */
export const SAMPLE_BODIES: Readonly<Record<string, unknown>> = {
  [`POST ${V3}/actions`]: ACTION,
  [`PUT ${V3}/actions/{id}`]: { description: "says hello", timeoutMs: 10_000 },
  [`POST ${V3}/actions/logs`]: { where: { type: "app.task.failed", data: { taskId: 12 } }, limit: 10 },
  [`POST ${V3}/actions/import`]: { format: "svc-app-actions/1", actions: [ACTION] },
  [`POST ${V3}/actions/{nameOrId}/run`]: { name: "Ann" },
  [`POST ${V3}/actions/{nameOrId}/runWithResult`]: { name: "Ann" },
  [`POST ${V3}/actions/{id}/clientRuns/started`]: { payload: { name: "Ann" } },
  [`POST ${V3}/actions/{id}/clientRuns`]: { payload: { name: "Ann" }, duration: 12, result: "Hello Ann" },
  [`PUT ${V3}/actions/{actionId}/presets/{name}`]: { name: "Ann" },
  [`POST ${V3}/actions/problems`]: { code: SAMPLE_CODE, dependencies: ["svc-csv"] },
  [`POST ${V3}/runs/{runId}/replay`]: { copy: "draft", payload: { name: "Ann" } },
  [`POST ${V3}/triggers/backtest`]: { where: { type: "dataSource.entry.create" } },
  [`POST ${APP}/ai/completions`]: { messages: [{ role: "user", content: "Summarize: …" }], maxTokens: 100 },
  [`POST ${APP}/ai/embeddings`]: { input: ["a text"] },
  [`POST ${APP}/ai/image`]: { prompt: "a lamp" },
  [`POST ${APP}/ai/transcribe`]: { file: { name: "call.mp3", contentType: "audio/mpeg", data: "…" } },
  [`POST ${APP}/alerts`]: SAMPLE_ALERT,
  [`PUT ${APP}/alerts/{alertId}`]: SAMPLE_ALERT,
  [`POST ${APP}/analytics`]: {
    events: [{ createdAt: 1_795_262_400_000, type: "analytics.event", data: { button: "buy" } }],
  },
  [`PUT ${APP}`]: { name: "Shop" },
  "PUT /v1/admin/apps/{appId}": { name: "Shop" },
  "POST /v1/admin/apps": { name: "Shop", organizationId: 1 },
  "POST /v1/admin/users": { ...SAMPLE_PERSON, email: "ann@example.com" },
  "POST /v1/organizations": { name: "Example" },
  "POST /v1/organizations/{organizationId}/invitations": { email: "bob@example.com", role: "editor", appId: 1 },
  [`POST ${APP}/communicate/email`]: SAMPLE_EMAIL,
  [`POST ${APP}/communicate/email/batch`]: [{ options: SAMPLE_EMAIL, data: { number: 7 } }],
  [`POST ${APP}/communicate/sms`]: SMS,
  [`POST ${APP}/communicate/sms/batch`]: [SMS],
  [`POST ${APP}/data-sources`]: {
    name: "Talks",
    columns: ["Title"],
    accessRules: SAMPLE_RULES,
    entries: [{ Title: "On notation" }],
  },
  [`PUT ${DS}`]: { indexes: [{ columns: ["Title"], unique: true }] },
  [`POST ${DS}/try`]: { user: { data: { Email: "ann@example.com" } }, where: { Email: "ann@example.com" } },
  [`POST ${DS}/entries`]: { data: { Title: "The analytical engine", Room: "B" } },
  [`PUT ${DS}/entries/{entryId}`]: { Room: "A" },
  [`POST ${DS}/query`]: { where: { Room: "A" }, order: [["data.Title", "ASC"]], limit: 10 },
  [`POST ${DS}/commit`]: {
    entries: [{ data: { Title: "The first bug" } }, { id: 12, data: { Room: "A" } }],
    delete: [13],
    extend: true,
  },
  [`POST ${APP}/logs`]: { type: "order.shipped", data: { number: 7 } },
  [`PUT ${APP}/manifest`]: { version: 1, actions: [ACTION] },
  [`POST ${APP}/media/folders`]: { name: "avatars" },
  [`PUT ${APP}/media/folders/{id}`]: { name: "portraits" },
  [`PUT ${APP}/media/files/{id}`]: { name: "ann.jpg" },
  [`POST ${APP}/media/files/{id}/link`]: { expiresIn: 3600 },
  [`PUT ${APP}/media/files/{id}/accessRules`]: MEDIA_RULES,
  [`PUT ${APP}/media/folders/{id}/accessRules`]: MEDIA_RULES,
  [`POST ${APP}/notifications`]: SAMPLE_NOTIFICATION,
  [`POST ${APP}/notifications/batch`]: [SAMPLE_NOTIFICATION],
  [`POST ${APP}/notifications/read`]: { ids: [1] },
  [`PUT ${APP}/notifications/{notificationId}`]: { status: "draft" },
  [`POST ${APP}/push/subscriptions`]: { endpoint: "https://push.example.com/1", keys: { p256dh: "…", auth: "…" } },
  [`DELETE ${APP}/push/subscriptions`]: { endpoint: "https://push.example.com/1" },
  [`PUT ${APP}/origins`]: { origins: ["https://shop.example"] },
  [`PUT ${APP}/secret-bindings`]: {
    bindings: [{ key: "__stripe", origin: "https://api.stripe.com", in: "header", sealed: true, value: "sk_live_…" }],
  },
  [`POST ${APP}/secret-bindings/test`]: { key: "__stripe", origin: "https://api.stripe.com", path: "/v1/balance" },
  [`POST ${APP}/session`]: {
    passport: "dataSource",
    dataSourceName: "Users",
    where: { Email: "ann@example.com", Password: "a long password" },
  },
  [`PUT ${APP}/session`]: { locale: "en" },
  [`POST ${APP}/session/verify`]: { email: "ann@example.com", code: "123456" },
  [`POST ${APP}/settings`]: {
    title: "for everyone",
    _note: "for server actions",
    __apiKey: "key of the other service",
  },
  [`DELETE ${APP}/settings`]: { keys: ["title"] },
  [`POST ${APP}/settings/secure`]: { settingKey: "apiKey", value: "key of the model" },
  [`PUT ${APP}/settings/secrecy`]: { keys: ["_note"], secret: false },
  [`PUT ${APP}/git`]: {
    provider: "github",
    url: "https://github.com/example/shop",
    branch: "main",
    tagPattern: "v*",
    token: "github_pat_example",
  },
  [`POST ${APP}/git/pull`]: { ref: "refs/tags/v1" },
  [`POST ${APP}/stages`]: { name: "staging" },
  [`POST ${APP}/tokens`]: { kind: "api", name: "shop back end", scopes: ["run", "data"] },
  "POST /v1/auth/invitations/accept": {
    token: "the token of the link",
    ...SAMPLE_PERSON,
    passphrase: SAMPLE_PASSPHRASE,
  },
  "POST /v1/auth/setup": {
    token: "svc_setup_…",
    email: "ann@example.com",
    ...SAMPLE_PERSON,
    passphrase: SAMPLE_PASSPHRASE,
  },
  "POST /v1/auth/sign-in": { email: "ann@example.com", passphrase: SAMPLE_PASSPHRASE },
  "PUT /v1/auth/account": { firstName: "Anna" },
  "POST /v1/auth/reset": { email: "ann@example.com" },
  "POST /v1/auth/reset/confirm": { token: "the token of the link", passphrase: SAMPLE_PASSPHRASE },
};

/** Sample query strings of the routes that require query parameters. */
export const QUERIES: Readonly<Record<string, string>> = {
  [`GET ${V3}/schedule/preview`]: "?frequency=0+13+*+*+*&timezone=Europe/Berlin",
  [`GET ${V3}/packages/declarations`]: "?integrity=sha256-…",
};

/** Routes whose body is WebAuthn JSON, which the browser creates. */
export const WEBAUTHN: readonly string[] = ["POST /v1/auth/passkeys", "POST /v1/auth/passkeys/sign-in"];

/** Sample values by field name, for fields whose schema allows any value or any text. */
export const SAMPLE_VALUES: Readonly<Record<string, unknown>> = {
  accessRules: [{ type: ["…"], allow: "all" }],
  code: SAMPLE_CODE,
  columns: ["Title"],
  data: { Title: "On notation" },
  description: "says hello",
  email: "ann@example.com",
  error: { name: "Error", message: "no e-mail address" },
  firstName: "Ann",
  frequency: "0 9 * * 1-5",
  hooks: [],
  indexes: [],
  lastName: "Lee",
  name: "example",
  nextCursor: "…",
  payload: { name: "Ann" },
  result: "Hello Ann",
  subject: "Your order",
  timezone: "Europe/Berlin",
  token: "svc_api_…",
  url: "https://…",
  where: { Room: "A" },
};
