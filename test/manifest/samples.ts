/** A manifest that uses every field, its plan for an empty app, and invalid documents. */
export const CODE = "async function execute() {\n  return 1;\n}";

/** A manifest that uses every field. */
export const WHOLE_MANIFEST = {
  version: 1,
  app: { icon: "rocket", hooks: { b: 1, a: [2] }, dependencies: null, isTemplate: false },
  settings: [
    { key: "__stripe", tier: "protected" },
    { key: "_mailFrom", tier: "private", secret: false },
    { key: "_token", tier: "private", secret: true },
    { key: "title", tier: "public", value: { en: "Hotel", de: null } },
  ],
  secretBindings: [
    {
      ...{ key: "__stripe", origin: "https://api.stripe.com", in: "header", name: "Authorization" },
      ...{ format: "Bearer {value}", sealed: true, tokenUrl: null, clientId: null, scopes: [], grant: null },
    },
    {
      ...{ key: "_token", origin: "https://api.example.com", in: "oauth2", name: null, format: null, sealed: false },
      ...{ tokenUrl: "https://id.example.com/token", clientId: "shop", scopes: ["read"], grant: "refresh_token" },
    },
  ],
  dataSources: [
    {
      name: "bookings",
      columns: ["Email", "Room"],
      accessRules: [{ type: ["select"], allow: "all", include: ["Room"] }],
      hooks: [{ type: "operations", runOn: ["insert"], fields: { Email: ["trim", "lower"] } }],
      indexes: ["Room", { columns: ["Email"], unique: true }],
      isUsers: false,
    },
    {
      name: "people",
      columns: ["Email", "Password"],
      accessRules: [],
      hooks: [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }],
      indexes: [],
      isUsers: true,
    },
  ],
  actions: [
    {
      name: "nightly",
      code: CODE,
      description: "each night",
      active: true,
      environment: "server",
      triggers: [
        { trigger: "schedule" },
        { trigger: "log", where: { type: "dataSource.entry.create", dataSource: "bookings" } },
        { trigger: "http", where: { method: "POST", path: "in/:id", auth: { type: "none" } } },
      ],
      dependencies: ["svc-csv"],
      access: { user: { Role: { equals: "owner" } } },
      integrationOrigins: ["https://api.example.com"],
      frequency: "0 3 * * *",
      timezone: "Europe/Paris",
      concurrency: { policy: "queue", limit: 2, key: null },
      debounce: null,
      timeoutMs: 5000,
      jitterSeconds: null,
    },
    {
      name: "plain",
      code: CODE,
      description: null,
      active: false,
      environment: "server",
      triggers: [],
      dependencies: [],
      access: "everyone",
      integrationOrigins: [],
      frequency: null,
      timezone: null,
      concurrency: null,
      debounce: null,
      timeoutMs: null,
      jitterSeconds: null,
    },
  ],
  alerts: [
    {
      name: "nightly failed",
      condition: "failed",
      action: "nightly",
      failures: 1,
      of: 3,
      minutes: 60,
      channel: "email",
      to: ["ops@example.com"],
      setting: null,
      enabled: true,
    },
    {
      name: "queue",
      condition: "queued",
      action: null,
      failures: 1,
      of: 1,
      minutes: 5,
      channel: "webhook",
      to: [],
      setting: "__hook",
      enabled: false,
    },
  ],
};

/** Plan of the manifest for an empty app. */
export const WHOLE_PLAN = {
  created: [
    { kind: "setting", name: "__stripe" },
    { kind: "setting", name: "_mailFrom" },
    { kind: "setting", name: "_token" },
    { kind: "setting", name: "title" },
    { kind: "secretBinding", name: "__stripe https://api.stripe.com" },
    { kind: "secretBinding", name: "_token https://api.example.com" },
    { kind: "dataSource", name: "bookings" },
    { kind: "dataSource", name: "people" },
    { kind: "action", name: "nightly" },
    { kind: "action", name: "plain" },
    { kind: "alert", name: "nightly failed" },
    { kind: "alert", name: "queue" },
  ],
  changed: [
    { kind: "app", name: "icon" },
    { kind: "app", name: "hooks" },
  ],
  removed: [],
  missing: [
    { kind: "secretBinding", name: "__stripe https://api.stripe.com" },
    { kind: "secretBinding", name: "_token https://api.example.com" },
  ],
};
export const NOTHING = { created: [], changed: [], removed: [] };
/** Plan of the manifest for an app that already has all its definitions. Only the values of the secret bindings are missing. */
export const UNCHANGED_PLAN = { ...NOTHING, missing: WHOLE_PLAN.missing };

const deep = JSON.parse(`${"[".repeat(600)}${"]".repeat(600)}`);
/** Documents that are no manifest, or that have an invalid part. */
export const INVALID: readonly unknown[] = [
  null,
  [],
  "x",
  {},
  { version: 2 },
  { version: "1" },
  { version: 1, action: [] },
  { version: 1, actions: {} },
  { version: 1, actions: [null] },
  { version: 1, settings: [{ key: 1 }] },
  { version: 1, settings: [{ key: "" }] },
  { version: 1, settings: [{ key: "__proto__", value: 1 }] },
  { version: 1, app: [] },
  { version: 1, app: { icon: 1 } },
  { version: 1, app: { name: "x" } },
  { version: 1, app: { hooks: deep } },
  { version: 1, settings: [{ key: "a", value: deep }] },
  { version: 1, alerts: [{}] },
  { version: 1, secretBindings: [null] },
  { version: 1, secretBindings: [{ key: "__a", in: "header" }] },
  { version: 1, secretBindings: [{ key: "title", origin: "https://a.example", in: "header" }] },
  { version: 1, secretBindings: Array(2).fill({ key: "__a", origin: "https://a.example", in: "header" }) },
  { version: 1, alerts: Array(101).fill(WHOLE_MANIFEST.alerts[1]) },
  { version: 1, actions: [{ name: "a\u0000" }] },
  { version: 1, dataSources: [{ name: {} }] },
  { version: 1, dataSources: [{ name: "a\u0000" }] },
  { version: 1, dataSources: [{ name: "a", entries: [] }] },
  {
    version: 1,
    actions: [{ name: "a", code: CODE, triggers: [{ trigger: "log", where: { type: "x", dataSource: {} } }] }],
  },
  { version: 1, dataSources: [{ name: "a", indexes: [{ columns: ["a"], unique: 1 }] }] },
  { version: 1, actions: [{ name: "a", code: CODE, assets: 1 }] },
];
