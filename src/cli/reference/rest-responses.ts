/** Sample responses for the reference of the REST routes, where the schema alone does not show the fields. */

const APP = "/v1/apps/{appId}";
const TIME = "2026-11-21T12:00:00.000Z";
const PASSKEYS = "/v1/auth/passkeys";
const USAGE = { inputTokens: 40, outputTokens: 12 };
const PERSON = { id: 2, organizationId: 1, firstName: "Ann", lastName: "Lee", email: "ann@example.com" };
const SIGNED_IN = { user: PERSON, expiresAt: TIME };
const PASSKEY = { id: 1, name: "Laptop", createdAt: TIME, updatedAt: TIME, lastUsedAt: null };
const FOLDER = { id: 1, name: "portraits", parentId: null, userId: 2, createdAt: TIME, updatedAt: TIME };
const FILE = {
  ...{ id: 1, name: "ann.jpg", folderId: 1, userId: 2, contentType: "image/jpeg", bytes: 20_480, checksum: "…" },
  ...{ size: [640, 480], url: "https://…", thumbnail: "https://…", createdAt: TIME, updatedAt: TIME },
};
const ENTRY = { id: 1, dataSourceId: 1, data: { Title: "On notation" }, order: 1, createdAt: TIME, updatedAt: TIME };
const SESSION = {
  ...{ appId: 1, environment: "production", user: null, awaits: null },
  entries: { dataSource: { id: 1, dataSourceId: 1, data: { Email: "ann@example.com" } } },
};

/** Sample responses by method and path of the OpenAPI document. */
export const SAMPLE_RESPONSES: Readonly<Record<string, unknown>> = {
  [`POST ${APP}/ai/completions`]: {
    message: { role: "assistant", content: "A lamp." },
    ...{ toolCalls: [], usage: USAGE, model: "gpt-4o-mini", finishReason: "stop" },
  },
  [`POST ${APP}/ai/embeddings`]: { vectors: [[0.12, -0.03]], usage: USAGE },
  [`POST ${APP}/ai/image`]: { images: [{ contentType: "image/png", data: "…" }] },
  [`POST ${APP}/ai/transcribe`]: { text: "Hello" },
  [`POST ${APP}/data-sources/{ds}/query`]: { entries: [ENTRY], pagination: { total: 1, limit: 10, offset: 0 } },
  [`GET ${APP}/data-sources/{ds}/indexes/{columns}`]: { Title: ["On notation", "The first bug"] },
  [`GET ${APP}/manifest`]: {
    version: 1,
    app: { icon: null, "…": "…" },
    settings: [{ key: "title", tier: "public", value: "for everyone" }],
    secretBindings: [{ key: "__stripe", origin: "https://api.stripe.com", "…": "…" }],
    dataSources: [{ name: "Talks", columns: ["Title"], "…": "…" }],
    actions: [{ name: "greet", "…": "…" }],
    alerts: [{ name: "jobs fail", "…": "…" }],
  },
  [`PUT ${APP}/media/folders/{id}`]: { folder: FOLDER },
  [`GET ${APP}/media/files`]: { files: [FILE], pagination: { total: 1, hasMore: false } },
  [`PUT ${APP}/media/files/{id}`]: { file: FILE },
  [`POST ${APP}/session`]: { session: SESSION },
  [`POST ${APP}/session/verify`]: { session: SESSION },
  [`GET ${APP}/settings`]: { title: "for everyone", _note: "for server actions" },
  [`POST ${APP}/settings`]: { title: "for everyone", _note: "for server actions" },
  [`DELETE ${APP}/settings`]: { _note: "for server actions" },
  [`PUT ${APP}/settings/secrecy`]: { details: { _note: { updatedAt: TIME, updatedBy: 2, secret: false } } },
  [`GET ${APP}/settings/status`]: { configured: { __apiKey: true } },
  [`POST ${APP}/stages`]: {
    app: {
      id: 2,
      organizationId: 1,
      name: "Shop (staging)",
      isPublished: false,
      createdAt: TIME,
      updatedAt: TIME,
      "…": "…",
    },
  },
  [`POST ${APP}/visitors`]: { token: "svc_live_…", expiresAt: TIME },
  "POST /v1/auth/setup": SIGNED_IN,
  "POST /v1/auth/sign-in": SIGNED_IN,
  "PUT /v1/auth/account": { user: PERSON },
  "GET /v1/auth/providers": { providers: [{ id: "google", name: "Google" }] },
  [`POST ${PASSKEYS}/authentication-options`]: {
    ...{ rpId: "127.0.0.1", challenge: "…", timeout: 60_000, userVerification: "required" },
  },
  [`POST ${PASSKEYS}/sign-in`]: SIGNED_IN,
  [`POST ${PASSKEYS}/registration-options`]: { challenge: "…", rp: { name: "…", id: "127.0.0.1" }, "…": "…" },
  [`POST ${PASSKEYS}`]: { passkey: PASSKEY },
  [`GET ${PASSKEYS}/{passkeyId}`]: { passkey: PASSKEY },
};
