/**
 * Sample responses for the reference of REST routes whose real response is not recorded in rest-responses.json. test/api/openapi.test.ts
 * compares the samples with the schema.
 */
import { SAMPLE_TIME as TIME } from "./shown-response.js";

const APP_PATH = "/v1/apps/{appId}";
const V3 = "/v3/apps/{appId}";
const AUTH_PATH = "/v1/auth";
const PASSKEYS_PATH = "/v1/auth/passkeys";
const MORE_FIELDS = { "…": "…" };
const SAMPLE_AI_USAGE = { inputTokens: 40, outputTokens: 12 };
const SAMPLE_PERSON = { id: 2, organizationId: 1, firstName: "Ann", lastName: "Lee", email: "ann@example.com" };
const SAMPLE_ADMINISTRATOR = { ...SAMPLE_PERSON, updatedAt: TIME };
const SAMPLE_SIGN_IN = { user: SAMPLE_PERSON, expiresAt: TIME };
const SAMPLE_PASSKEY = { id: 1, name: "Laptop", createdAt: TIME, updatedAt: TIME, lastUsedAt: null };
const SAMPLE_FILE = {
  ...{ id: 1, name: "ann.jpg", contentType: "image/jpeg", url: "https://…", thumbnail: "https://…" },
  ...{ size: [640, 480], bytes: 20_480, checksum: "…", ...MORE_FIELDS },
};
const SAMPLE_READ_RULES = { accessRules: [{ type: ["read"], allow: "all" }] };
const SAMPLE_SESSION = {
  ...{ appId: 1, environment: "production", user: null, awaits: null },
  entries: { dataSource: { id: 1, dataSourceId: 1, data: { Email: "ann@example.com" }, ...MORE_FIELDS } },
};
const SAMPLE_ENTRY = {
  id: 14,
  dataSourceId: 1,
  data: { Title: "The first bug" },
  order: 14,
  createdAt: TIME,
  updatedAt: TIME,
};
const SAMPLE_PROMOTION = { id: 1, appId: 1, fromAppId: 4, rolledBackTo: null, userId: 2 };

export const SAMPLE_RESPONSES: Readonly<Record<string, unknown>> = {
  [`POST ${V3}/actions/{id}/rotate-secret`]: {
    status: "SECRET_ROTATED",
    action: { name: "greet", active: true, ...MORE_FIELDS },
  },
  [`POST ${V3}/actions/{nameOrId}/runWithResult`]: { status: "ACTION_EXECUTED", runId: 1, result: "Ann" },
  [`POST ${V3}/actions/{id}/clientRuns/started`]: { status: "RUN_STARTED", runId: 1 },
  [`POST ${V3}/actions/{id}/clientRuns`]: { status: "RUN_RECORDED", runId: 1 },
  [`POST ${V3}/runs/{runId}/replay`]: { status: "ACTION_QUEUED", runId: 2 },
  [`GET ${V3}/runs/{runId}/console`]: {
    status: "CONSOLE_LISTED",
    lines: [{ seq: 0, level: "log", at: TIME, text: "greeting Ann" }],
  },
  [`GET ${V3}/runs/{runId}`]: {
    status: "RUN_RETRIEVED",
    run: {
      ...{ id: 1, actionId: 5, actionName: "greet", masterId: 5, copy: "master", trigger: "manual" },
      ...{ state: "completed", tick: null, ...MORE_FIELDS },
    },
  },
  [`POST ${APP_PATH}/ai/completions`]: {
    message: { role: "assistant", content: "A lamp." },
    ...{ toolCalls: [], usage: SAMPLE_AI_USAGE, model: "gpt-4o-mini", finishReason: "stop" },
  },
  [`POST ${APP_PATH}/ai/embeddings`]: { vectors: [[0.12, -0.03]], usage: SAMPLE_AI_USAGE },
  [`POST ${APP_PATH}/ai/image`]: { images: [{ contentType: "image/png", data: "…" }] },
  [`POST ${APP_PATH}/ai/transcribe`]: { text: "Hello" },
  "GET /v1/admin/administrators": { administrators: [SAMPLE_ADMINISTRATOR, "…"] },
  "PUT /v1/admin/administrators/{userId}": { administrators: [SAMPLE_ADMINISTRATOR, "…"] },
  "DELETE /v1/admin/administrators/{userId}": { administrators: [SAMPLE_ADMINISTRATOR] },
  [`POST ${APP_PATH}/communicate/messages/{messageId}/decide`]: {
    message: { id: 2, kind: "email", status: "sent", subject: "Order 7", recipients: 1, ...MORE_FIELDS },
  },
  [`POST ${APP_PATH}/data-sources/{ds}/versions/{versionId}/restore`]: { inserted: 2, columns: ["Title", "Room"] },
  [`POST ${APP_PATH}/data-sources/{ds}/commit`]: { entries: [SAMPLE_ENTRY, "…"], inserted: 1, updated: 1, deleted: 1 },
  [`PUT ${APP_PATH}/git`]: {
    git: {
      ...{ provider: "github", url: "https://github.com/example/shop", branch: "main", tagPattern: "v*" },
      ...{ hasToken: true, ...MORE_FIELDS },
    },
    webhookSecret: "…",
  },
  [`DELETE ${APP_PATH}/git`]: { status: "GIT_DISCONNECTED" },
  [`POST ${APP_PATH}/git/pull`]: {
    pull: {
      ...{ ref: "refs/tags/v1", commit: "…", published: ["greet"] },
      plan: { created: [], changed: [{ kind: "action", name: "greet", ...MORE_FIELDS }], removed: [], missing: [] },
    },
  },
  [`GET ${APP_PATH}/media/files/{id}`]: { file: SAMPLE_FILE },
  [`PUT ${APP_PATH}/media/files/{id}`]: { file: SAMPLE_FILE },
  [`DELETE ${APP_PATH}/media/files/{id}`]: { status: "FILE_DELETED" },
  [`POST ${APP_PATH}/media/files/{id}/link`]: { url: "https://…", expiresAt: TIME },
  [`GET ${APP_PATH}/media/files/{id}/accessRules`]: SAMPLE_READ_RULES,
  [`PUT ${APP_PATH}/media/files/{id}/accessRules`]: SAMPLE_READ_RULES,
  [`GET ${V3}/packages/declarations`]: { status: "DECLARATIONS_READ", files: ["…"] },
  [`POST ${APP_PATH}/promotions`]: {
    promotion: {
      ...SAMPLE_PROMOTION,
      plan: { created: [{ kind: "action", name: "greet", ...MORE_FIELDS }], changed: [], removed: [], missing: [] },
      createdAt: TIME,
    },
  },
  [`POST ${APP_PATH}/promotions/{promotionId}/rollback`]: {
    promotion: {
      ...SAMPLE_PROMOTION,
      ...{ id: 2, fromAppId: null, rolledBackTo: 1 },
      plan: { created: [], changed: [], removed: [{ kind: "action", name: "greet", ...MORE_FIELDS }], missing: [] },
      createdAt: TIME,
    },
  },
  [`POST ${APP_PATH}/push/subscriptions`]: { id: 1 },
  [`DELETE ${APP_PATH}/push/subscriptions`]: { count: 1 },
  [`POST ${APP_PATH}/secret-bindings/test`]: {
    trial: {
      ...{
        status: 200,
        durationMs: 118,
        receivedBytes: 231,
        body: '{"object": "balance", …}',
        code: null,
        error: null,
      },
    },
  },
  [`POST ${APP_PATH}/session`]: { session: SAMPLE_SESSION },
  [`PUT ${APP_PATH}/session`]: { session: SAMPLE_SESSION },
  [`DELETE ${APP_PATH}/session`]: { session: { appId: 1, user: null, environment: "production" } },
  [`POST ${APP_PATH}/session/verify`]: { session: SAMPLE_SESSION },
  [`DELETE ${APP_PATH}/stages/{stageAppId}`]: { status: "STAGE_REMOVED" },
  [`POST ${APP_PATH}/visitors`]: { token: "svc_live_…", expiresAt: TIME },
  [`POST ${AUTH_PATH}/invitations/accept`]: SAMPLE_SIGN_IN,
  [`POST ${AUTH_PATH}/setup`]: SAMPLE_SIGN_IN,
  [`POST ${AUTH_PATH}/sign-in`]: SAMPLE_SIGN_IN,
  [`PUT ${AUTH_PATH}/account`]: { user: { ...SAMPLE_PERSON, firstName: "Anna" } },
  [`GET ${AUTH_PATH}/sessions`]: {
    sessions: [
      { id: 1, device: "Firefox on Linux", address: "203.0.113.7", lastUsedAt: TIME, isCurrent: true, ...MORE_FIELDS },
    ],
  },
  [`DELETE ${AUTH_PATH}/sessions`]: { status: "SESSIONS_ENDED" },
  [`DELETE ${AUTH_PATH}/sessions/{sessionId}`]: { status: "SESSION_ENDED" },
  [`POST ${AUTH_PATH}/reset/confirm`]: { status: "PASSPHRASE_RESET" },
  [`POST ${PASSKEYS_PATH}/sign-in`]: SAMPLE_SIGN_IN,
  [`POST ${PASSKEYS_PATH}/registration-options`]: {
    challenge: "…",
    rp: { name: "…", id: "127.0.0.1" },
    ...MORE_FIELDS,
  },
  [`POST ${PASSKEYS_PATH}`]: { passkey: SAMPLE_PASSKEY },
  [`GET ${PASSKEYS_PATH}`]: { passkeys: [SAMPLE_PASSKEY] },
  [`GET ${PASSKEYS_PATH}/{passkeyId}`]: { passkey: SAMPLE_PASSKEY },
  [`DELETE ${PASSKEYS_PATH}/{passkeyId}`]: { status: "PASSKEY_REMOVED" },
  [`GET ${AUTH_PATH}/identities`]: {
    identities: [{ id: 1, provider: "oidc", issuer: "https://accounts.google.com", createdAt: TIME, ...MORE_FIELDS }],
  },
  [`DELETE ${AUTH_PATH}/identities/{identityId}`]: { status: "IDENTITY_REMOVED" },
};
