/**
 * Sample responses for the reference of REST routes that the recording test does not call. rest-responses.json has the recorded responses.
 * test/api/openapi.test.ts compares the samples with the schema.
 */
import { SAMPLE_TIME as TIME } from "./shown-response.js";

const APP = "/v1/apps/{appId}";
const V3 = "/v3/apps/{appId}";
const AUTH = "/v1/auth";
const PASSKEYS = "/v1/auth/passkeys";
const MORE = { "…": "…" };
const USAGE = { inputTokens: 40, outputTokens: 12 };
const PERSON = { id: 2, organizationId: 1, firstName: "Ann", lastName: "Lee", email: "ann@example.com" };
const ADMINISTRATOR = { ...PERSON, updatedAt: TIME };
const SIGNED_IN = { user: PERSON, expiresAt: TIME };
const PASSKEY = { id: 1, name: "Laptop", createdAt: TIME, updatedAt: TIME, lastUsedAt: null };
const FILE = {
  ...{ id: 1, name: "ann.jpg", contentType: "image/jpeg", url: "https://…", thumbnail: "https://…" },
  ...{ size: [640, 480], bytes: 20_480, checksum: "…", ...MORE },
};
const READ_RULES = { accessRules: [{ type: ["read"], allow: "all" }] };
const SESSION = {
  ...{ appId: 1, environment: "production", user: null, awaits: null },
  entries: { dataSource: { id: 1, dataSourceId: 1, data: { Email: "ann@example.com" }, ...MORE } },
};
const ENTRY = {
  id: 14,
  dataSourceId: 1,
  data: { Title: "The first bug" },
  order: 14,
  createdAt: TIME,
  updatedAt: TIME,
};
const PROMOTION = { id: 1, appId: 1, fromAppId: 4, rolledBackTo: null, userId: 2 };

/** Sample responses by method and path, as in the OpenAPI document. */
export const SAMPLE_RESPONSES: Readonly<Record<string, unknown>> = {
  [`POST ${V3}/actions/{id}/rotate-secret`]: {
    status: "SECRET_ROTATED",
    action: { name: "greet", active: true, ...MORE },
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
      ...{ state: "completed", tick: null, ...MORE },
    },
  },
  [`POST ${APP}/ai/completions`]: {
    message: { role: "assistant", content: "A lamp." },
    ...{ toolCalls: [], usage: USAGE, model: "gpt-4o-mini", finishReason: "stop" },
  },
  [`POST ${APP}/ai/embeddings`]: { vectors: [[0.12, -0.03]], usage: USAGE },
  [`POST ${APP}/ai/image`]: { images: [{ contentType: "image/png", data: "…" }] },
  [`POST ${APP}/ai/transcribe`]: { text: "Hello" },
  "GET /v1/admin/administrators": { administrators: [ADMINISTRATOR, "…"] },
  "PUT /v1/admin/administrators/{userId}": { administrators: [ADMINISTRATOR, "…"] },
  "DELETE /v1/admin/administrators/{userId}": { administrators: [ADMINISTRATOR] },
  [`POST ${APP}/communicate/messages/{messageId}/decide`]: {
    message: { id: 2, kind: "email", status: "sent", subject: "Order 7", recipients: 1, ...MORE },
  },
  [`POST ${APP}/data-sources/{ds}/versions/{versionId}/restore`]: { inserted: 2, columns: ["Title", "Room"] },
  [`POST ${APP}/data-sources/{ds}/commit`]: { entries: [ENTRY, "…"], inserted: 1, updated: 1, deleted: 1 },
  [`PUT ${APP}/git`]: {
    git: {
      ...{ provider: "github", url: "https://github.com/example/shop", branch: "main", tagPattern: "v*" },
      ...{ hasToken: true, ...MORE },
    },
    webhookSecret: "…",
  },
  [`DELETE ${APP}/git`]: { status: "GIT_DISCONNECTED" },
  [`POST ${APP}/git/pull`]: {
    pull: {
      ...{ ref: "refs/tags/v1", commit: "…", published: ["greet"] },
      plan: { created: [], changed: [{ kind: "action", name: "greet", ...MORE }], removed: [], missing: [] },
    },
  },
  [`GET ${APP}/media/files/{id}`]: { file: FILE },
  [`PUT ${APP}/media/files/{id}`]: { file: FILE },
  [`DELETE ${APP}/media/files/{id}`]: { status: "FILE_DELETED" },
  [`POST ${APP}/media/files/{id}/link`]: { url: "https://…", expiresAt: TIME },
  [`GET ${APP}/media/files/{id}/accessRules`]: READ_RULES,
  [`PUT ${APP}/media/files/{id}/accessRules`]: READ_RULES,
  [`GET ${V3}/packages/declarations`]: { status: "DECLARATIONS_READ", files: ["…"] },
  [`POST ${APP}/promotions`]: {
    promotion: {
      ...PROMOTION,
      plan: { created: [{ kind: "action", name: "greet", ...MORE }], changed: [], removed: [], missing: [] },
      createdAt: TIME,
    },
  },
  [`POST ${APP}/promotions/{promotionId}/rollback`]: {
    promotion: {
      ...PROMOTION,
      ...{ id: 2, fromAppId: null, rolledBackTo: 1 },
      plan: { created: [], changed: [], removed: [{ kind: "action", name: "greet", ...MORE }], missing: [] },
      createdAt: TIME,
    },
  },
  [`POST ${APP}/push/subscriptions`]: { id: 1 },
  [`DELETE ${APP}/push/subscriptions`]: { count: 1 },
  [`POST ${APP}/secret-bindings/test`]: {
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
  [`POST ${APP}/session`]: { session: SESSION },
  [`PUT ${APP}/session`]: { session: SESSION },
  [`DELETE ${APP}/session`]: { session: { appId: 1, user: null, environment: "production" } },
  [`POST ${APP}/session/verify`]: { session: SESSION },
  [`DELETE ${APP}/stages/{stageAppId}`]: { status: "STAGE_REMOVED" },
  [`POST ${APP}/visitors`]: { token: "svc_live_…", expiresAt: TIME },
  [`POST ${AUTH}/invitations/accept`]: SIGNED_IN,
  [`POST ${AUTH}/setup`]: SIGNED_IN,
  [`POST ${AUTH}/sign-in`]: SIGNED_IN,
  [`PUT ${AUTH}/account`]: { user: { ...PERSON, firstName: "Anna" } },
  [`GET ${AUTH}/sessions`]: {
    sessions: [
      { id: 1, device: "Firefox on Linux", address: "203.0.113.7", lastUsedAt: TIME, isCurrent: true, ...MORE },
    ],
  },
  [`DELETE ${AUTH}/sessions`]: { status: "SESSIONS_ENDED" },
  [`DELETE ${AUTH}/sessions/{sessionId}`]: { status: "SESSION_ENDED" },
  [`POST ${AUTH}/reset/confirm`]: { status: "PASSPHRASE_RESET" },
  [`POST ${PASSKEYS}/sign-in`]: SIGNED_IN,
  [`POST ${PASSKEYS}/registration-options`]: { challenge: "…", rp: { name: "…", id: "127.0.0.1" }, ...MORE },
  [`POST ${PASSKEYS}`]: { passkey: PASSKEY },
  [`GET ${PASSKEYS}`]: { passkeys: [PASSKEY] },
  [`GET ${PASSKEYS}/{passkeyId}`]: { passkey: PASSKEY },
  [`DELETE ${PASSKEYS}/{passkeyId}`]: { status: "PASSKEY_REMOVED" },
  [`GET ${AUTH}/identities`]: {
    identities: [{ id: 1, provider: "oidc", issuer: "https://accounts.google.com", createdAt: TIME, ...MORE }],
  },
  [`DELETE ${AUTH}/identities/{identityId}`]: { status: "IDENTITY_REMOVED" },
};
