/**
 * Sample request bodies for the reference of REST routes whose schema alone gives no useful example. Also sample values of single fields.
 */

const SAMPLE_CODE = "async function execute({ payload }) { return payload.name; }";
const SAMPLE_ACTION = { name: "greet", active: true, triggers: [{ trigger: "manual" }], code: SAMPLE_CODE };
const SAMPLE_ALERT = { name: "jobs fail", condition: "failed", channel: "email", to: ["ann@example.com"] };
const SAMPLE_EMAIL = {
  to: [{ email: "ann@example.com", name: "Ann" }],
  subject: "Order {{number}}",
  text: "Your order {{number}} has shipped.",
  attachments: [{ type: "text/plain", name: "a.txt", content: "Hello", encoding: "utf8" }],
};
const SAMPLE_SMS = { to: "+41790000000", body: "Your order has shipped." };
const SAMPLE_NOTIFICATION = {
  status: "published",
  data: { title: "We ship today", message: "Orders before noon leave today." },
};
const SAMPLE_ACCESS_RULES = [{ type: ["select"], allow: "all" }];
const SAMPLE_MEDIA_RULES = { accessRules: [{ type: ["read"], allow: "all" }] };
const SAMPLE_PERSON_NAME = { firstName: "Ann", lastName: "Lee" };
const SAMPLE_PASSPHRASE = "a long passphrase";

const APP_PATH = "/v1/apps/{appId}";
const V3 = "/v3/apps/{appId}";
const DS = `${APP_PATH}/data-sources/{ds}`;

export const SAMPLE_BODIES: Readonly<Record<string, unknown>> = {
  [`POST ${V3}/actions`]: SAMPLE_ACTION,
  [`PUT ${V3}/actions/{id}`]: { description: "says hello", timeoutMs: 10_000 },
  [`POST ${V3}/actions/logs`]: { where: { type: "app.task.failed", data: { taskId: 12 } }, limit: 10 },
  [`POST ${V3}/actions/import`]: { format: "svc-app-actions/1", actions: [SAMPLE_ACTION] },
  [`POST ${V3}/actions/{nameOrId}/run`]: { name: "Ann" },
  [`POST ${V3}/actions/{nameOrId}/runWithResult`]: { name: "Ann" },
  [`POST ${V3}/actions/{id}/clientRuns/started`]: { payload: { name: "Ann" } },
  [`POST ${V3}/actions/{id}/clientRuns`]: { payload: { name: "Ann" }, duration: 12, result: "Hello Ann" },
  [`PUT ${V3}/actions/{actionId}/presets/{name}`]: { name: "Ann" },
  [`POST ${V3}/actions/problems`]: { code: SAMPLE_CODE, dependencies: ["svc-csv"] },
  [`POST ${V3}/runs/{runId}/replay`]: { copy: "draft", payload: { name: "Ann" } },
  [`POST ${V3}/triggers/backtest`]: { where: { type: "dataSource.entry.create" } },
  [`POST ${APP_PATH}/ai/completions`]: { messages: [{ role: "user", content: "Summarize: …" }], maxTokens: 100 },
  [`POST ${APP_PATH}/ai/embeddings`]: { input: ["a text"] },
  [`POST ${APP_PATH}/ai/image`]: { prompt: "a lamp" },
  [`POST ${APP_PATH}/ai/transcribe`]: { file: { name: "call.mp3", contentType: "audio/mpeg", data: "…" } },
  [`POST ${APP_PATH}/alerts`]: SAMPLE_ALERT,
  [`PUT ${APP_PATH}/alerts/{alertId}`]: SAMPLE_ALERT,
  [`POST ${APP_PATH}/analytics`]: {
    events: [{ createdAt: 1_795_262_400_000, type: "analytics.event", data: { button: "buy" } }],
  },
  [`PUT ${APP_PATH}`]: { name: "Shop" },
  "PUT /v1/admin/apps/{appId}": { name: "Shop" },
  "POST /v1/admin/apps": { name: "Shop", organizationId: 1 },
  "POST /v1/admin/users": { ...SAMPLE_PERSON_NAME, email: "ann@example.com" },
  "POST /v1/organizations": { name: "Example" },
  "POST /v1/organizations/{organizationId}/invitations": { email: "bob@example.com", role: "editor", appId: 1 },
  [`POST ${APP_PATH}/communicate/email`]: SAMPLE_EMAIL,
  [`POST ${APP_PATH}/communicate/email/batch`]: [{ options: SAMPLE_EMAIL, data: { number: 7 } }],
  [`POST ${APP_PATH}/communicate/sms`]: SAMPLE_SMS,
  [`POST ${APP_PATH}/communicate/sms/batch`]: [SAMPLE_SMS],
  [`POST ${APP_PATH}/data-sources`]: {
    name: "Talks",
    columns: ["Title"],
    accessRules: SAMPLE_ACCESS_RULES,
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
  [`POST ${APP_PATH}/logs`]: { type: "order.shipped", data: { number: 7 } },
  [`PUT ${APP_PATH}/manifest`]: { version: 1, actions: [SAMPLE_ACTION] },
  [`POST ${APP_PATH}/media/folders`]: { name: "avatars" },
  [`PUT ${APP_PATH}/media/folders/{id}`]: { name: "portraits" },
  [`PUT ${APP_PATH}/media/files/{id}`]: { name: "ann.jpg" },
  [`POST ${APP_PATH}/media/files/{id}/link`]: { expiresIn: 3600 },
  [`PUT ${APP_PATH}/media/files/{id}/accessRules`]: SAMPLE_MEDIA_RULES,
  [`PUT ${APP_PATH}/media/folders/{id}/accessRules`]: SAMPLE_MEDIA_RULES,
  [`POST ${APP_PATH}/notifications`]: SAMPLE_NOTIFICATION,
  [`POST ${APP_PATH}/notifications/batch`]: [SAMPLE_NOTIFICATION],
  [`POST ${APP_PATH}/notifications/read`]: { ids: [1] },
  [`PUT ${APP_PATH}/notifications/{notificationId}`]: { status: "draft" },
  [`POST ${APP_PATH}/push/subscriptions`]: { endpoint: "https://push.example.com/1", keys: { p256dh: "…", auth: "…" } },
  [`DELETE ${APP_PATH}/push/subscriptions`]: { endpoint: "https://push.example.com/1" },
  [`PUT ${APP_PATH}/origins`]: { origins: ["https://shop.example"] },
  [`PUT ${APP_PATH}/secret-bindings`]: {
    bindings: [{ key: "__stripe", origin: "https://api.stripe.com", in: "header", sealed: true, value: "sk_live_…" }],
  },
  [`POST ${APP_PATH}/secret-bindings/test`]: { key: "__stripe", origin: "https://api.stripe.com", path: "/v1/balance" },
  [`POST ${APP_PATH}/session`]: {
    passport: "dataSource",
    dataSourceName: "Users",
    where: { Email: "ann@example.com", Password: "a long password" },
  },
  [`PUT ${APP_PATH}/session`]: { locale: "en" },
  [`POST ${APP_PATH}/session/verify`]: { email: "ann@example.com", code: "123456" },
  [`POST ${APP_PATH}/settings`]: {
    title: "for everyone",
    _note: "for server actions",
    __apiKey: "key of the other service",
  },
  [`DELETE ${APP_PATH}/settings`]: { keys: ["title"] },
  [`POST ${APP_PATH}/settings/secure`]: { settingKey: "apiKey", value: "key of the model" },
  [`PUT ${APP_PATH}/settings/secrecy`]: { keys: ["_note"], secret: false },
  [`PUT ${APP_PATH}/git`]: {
    provider: "github",
    url: "https://github.com/example/shop",
    branch: "main",
    tagPattern: "v*",
    token: "github_pat_example",
  },
  [`POST ${APP_PATH}/git/pull`]: { ref: "refs/tags/v1" },
  [`POST ${APP_PATH}/stages`]: { name: "staging" },
  [`POST ${APP_PATH}/tokens`]: { kind: "api", name: "shop back end", scopes: ["run", "data"] },
  "POST /v1/auth/invitations/accept": {
    token: "the token of the link",
    ...SAMPLE_PERSON_NAME,
    passphrase: SAMPLE_PASSPHRASE,
  },
  "POST /v1/auth/setup": {
    token: "svc_setup_…",
    email: "ann@example.com",
    ...SAMPLE_PERSON_NAME,
    passphrase: SAMPLE_PASSPHRASE,
  },
  "POST /v1/auth/sign-in": { email: "ann@example.com", passphrase: SAMPLE_PASSPHRASE },
  "PUT /v1/auth/account": { firstName: "Anna" },
  "POST /v1/auth/reset": { email: "ann@example.com" },
  "POST /v1/auth/reset/confirm": { token: "the token of the link", passphrase: SAMPLE_PASSPHRASE },
};

export const SAMPLE_QUERY_STRINGS: Readonly<Record<string, string>> = {
  [`GET ${V3}/schedule/preview`]: "?frequency=0+13+*+*+*&timezone=Europe/Berlin",
  [`GET ${V3}/packages/declarations`]: "?integrity=sha256-…",
};

/** Routes whose request body is JSON that the browser's WebAuthn API creates. */
export const WEBAUTHN_ROUTES: readonly string[] = ["POST /v1/auth/passkeys", "POST /v1/auth/passkeys/sign-in"];

/** Sample values by field name, for fields whose schema allows any value or any text. */
export const SAMPLE_FIELD_VALUES: Readonly<Record<string, unknown>> = {
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
