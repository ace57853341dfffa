/** Tests the manifest of an app: the service validates it completely and applies it in one transaction, over REST and GraphQL. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { CODE, INVALID, NOTHING, UNCHANGED_PLAN, WHOLE_MANIFEST, WHOLE_PLAN } from "./samples.js";

describe("the manifest", () => {
  let service: TestService;

  before(async () => {
    service = await useSharedService("api");
  });
  after(() => service.stop());

  async function newApp(): Promise<string> {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "hotel" } });
    return `/v1/apps/${body.app.id}`;
  }
  const put = (app: string, body: unknown, { query = "", tag }: { query?: string; tag?: string } = {}) => {
    const headers: Record<string, string> = tag === undefined ? {} : { "if-match": tag };
    return service.rest("PUT", `${app}/manifest${query}`, { as: "admin", body, headers });
  };
  const get = (app: string) => service.rest("GET", `${app}/manifest`, { as: "admin" });

  it("is read, written to an empty app and read again unchanged", async () => {
    const app = await newApp();
    const first = await put(app, WHOLE_MANIFEST);
    expect(first.body).to.deep.equal({ plan: WHOLE_PLAN });
    const read = await get(app);
    expect(read.body).to.deep.equal(WHOLE_MANIFEST);
    expect(read.headers.get("etag")).to.equal(first.headers.get("etag"));
    const other = await newApp();
    expect((await put(other, read.body)).body).to.deep.equal({ plan: WHOLE_PLAN });
    const again = await get(other);
    expect(again.body).to.deep.equal(read.body);
    expect(again.headers.get("etag")).to.equal(read.headers.get("etag"));
    expect((await put(other, again.body)).body).to.deep.equal({ plan: UNCHANGED_PLAN });
  });

  it("comes with types at an address: settings, columns and Svc, for callers who may read the manifest", async () => {
    const app = await newApp();
    await put(app, {
      version: 1,
      settings: [{ key: "title", value: "Hotel" }, { key: "_region" }],
      dataSources: [{ name: "guests", columns: ["Name"] }],
    });
    const read = (token: string) => fetch(`${service.url}${app}/svc.d.ts`, { headers: { "auth-token": token } });
    const answer = await read(service.tokens.admin);
    expect(answer.headers.get("content-type")).to.equal("text/plain; charset=utf-8");
    const text = await answer.text();
    for (const part of ['"title": string;', '"_region"?: any;', '"guests": { "Name": any; };', "interface HttpWhere"])
      expect(text).to.include(part);
    expect(text).not.to.include("Hotel");
    const id = Number(app.split("/").at(-1));
    const { data } = await service.graphql("query ($id: Int!) { appTypes(appId: $id) }", { id }, { as: "admin" });
    expect(data.appTypes).to.equal(text);
    for (const kind of ["editor", "api", "viewer", "live"] as const)
      expect((await read(service.tokens[kind])).status, kind).to.equal(403);
    expect((await fetch(`${service.url}${app}/svc.d.ts`)).status).to.equal(401);
  });

  it("is applied if If-Match has the current state, and changes nothing with a plan", async () => {
    const app = await newApp();
    const tag = (await get(app)).headers.get("etag")!;
    const plan = await put(app, WHOLE_MANIFEST, { query: "?plan=true", tag });
    expect(plan.body).to.deep.equal({ plan: WHOLE_PLAN });
    expect(plan.headers.get("etag")).to.equal(tag);
    expect((await get(app)).headers.get("etag")).to.equal(tag);
    expect((await put(app, WHOLE_MANIFEST, { tag })).http).to.equal(200);
    for (const query of ["", "?plan=true"]) {
      const stale = await put(app, { ...WHOLE_MANIFEST, actions: [] }, { tag, query });
      expect([stale.http, stale.body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    }
    expect((await put(app, WHOLE_MANIFEST, { tag: "*" })).body).to.deep.equal({ plan: UNCHANGED_PLAN });
  });

  it("keeps items that it does not contain, and removes them with prune, but never a data source with entries", async () => {
    const app = await newApp();
    await put(app, WHOLE_MANIFEST);
    expect((await put(app, { version: 1 })).body).to.deep.equal({ plan: NOTHING });
    expect((await put(app, { version: 1, actions: [{ name: "plain", active: true }] })).body.plan).to.deep.equal({
      ...NOTHING,
      changed: [{ kind: "action", name: "plain" }],
    });
    const entries = `${app}/data-sources/bookings/entries`;
    const entry = await service.rest("POST", entries, { as: "admin", body: { Email: "a@b.c" } });
    const before = (await get(app)).body;
    for (const query of ["?prune=true", "?prune=true&plan=true"]) {
      const refused = await put(app, { version: 1 }, { query });
      expect([refused.http, refused.body.status]).to.deep.equal([409, "DATA_SOURCE_NOT_EMPTY"]);
      expect(refused.body.error).to.include("bookings");
    }
    expect((await get(app)).body).to.deep.equal(before);
    await service.rest("DELETE", `${entries}/${entry.body.id}`, { as: "admin" });
    const { plan } = (await put(app, { version: 1 }, { query: "?prune=true" })).body;
    expect(plan.removed).to.deep.equal(WHOLE_PLAN.created.filter(({ kind }) => kind !== "secretBinding"));
    const empty = { ...WHOLE_MANIFEST, settings: [], dataSources: [], actions: [], alerts: [] };
    expect((await get(app)).body).to.deep.equal(empty);
    await put(app, { version: 1, secretBindings: [] }, { query: "?prune=true" });
    expect((await get(app)).body).to.deep.equal({ ...empty, secretBindings: [] });
  });

  it("keeps columns that entries added unless it prunes", async () => {
    const app = await newApp();
    await put(app, { version: 1, dataSources: [{ name: "d", columns: ["A"] }] });
    await service.rest("POST", `${app}/data-sources/d/entries`, { as: "admin", body: { B: 1 } });
    expect((await put(app, { version: 1, dataSources: [{ name: "d", columns: ["A"] }] })).body.plan).to.deep.equal(
      NOTHING,
    );
    expect((await get(app)).body.dataSources[0].columns).to.deep.equal(["A", "B"]);
    await put(app, { version: 1, dataSources: [{ name: "d", columns: ["A"] }] }, { query: "?prune=true" });
    expect((await get(app)).body.dataSources[0].columns).to.deep.equal(["A"]);
  });

  it("reports every error by its path, and then changes nothing", async () => {
    const app = await newApp();
    const before = (await get(app)).body;
    const [nightly, plain] = WHOLE_MANIFEST.actions;
    const answer = await put(app, {
      version: 1,
      app: { nam: "x" },
      settings: [{ key: "_a", value: 1 }, { key: "b", tier: "private" }, { key: "ok", value: 1 }, { key: "ok" }],
      dataSources: [
        { name: "d", hooks: [{ type: "none" }] },
        { name: " " },
        { name: "e", columns: [1] },
        { name: "f", baz: 1 },
      ],
      actions: [
        { ...nightly, name: "a b", frequency: "* * * * *" },
        { ...plain, code: "const x = 1;", extra: 1 },
        { ...plain, triggers: [{ trigger: "log", where: { type: "t", dataSource: "none" } }] },
        { code: CODE },
        { ...plain, name: "p", timeoutMs: "1", codes: 1 },
        { name: "q", code: CODE, bar: 1 },
      ],
      secretBindings: [
        { key: "__k", origin: "https://a.example", in: "header", value: "never here" },
        { key: "__k", origin: "https://b.example/path", in: "header" },
      ],
      alerts: [
        { ...WHOLE_MANIFEST.alerts[0], action: "none" },
        { name: "x", condition: "failed", channel: "email", to: ["x"] },
      ],
    });
    expect([answer.http, answer.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    const faults = answer.body.faults.map(({ path, status }: { path: string; status: string }) => `${path} ${status}`);
    expect(answer.body.faults.find(({ path }: { path: string }) => path === "app.nam").error).not.to.contain('"name"');
    expect(faults).to.have.members([
      "app.nam REQUEST_INVALID",
      "settings[0].value REQUEST_INVALID",
      "settings[1].tier REQUEST_INVALID",
      "settings[3].key NAME_ALREADY_EXISTS",
      "secretBindings[0].value REQUEST_INVALID",
      "secretBindings[1].origin REQUEST_INVALID",
      "dataSources[0].hooks[0].type REQUEST_INVALID",
      "dataSources[1].name NAME_EMPTY",
      "dataSources[2].columns[0] REQUEST_INVALID",
      "dataSources[3].baz REQUEST_INVALID",
      "actions[0].name NAME_INVALID_CHARS",
      "actions[0].frequency FREQUENCY_TOO_FREQUENT",
      "actions[0].triggers[1].where.dataSource DATA_SOURCE_NOT_FOUND",
      "actions[1].code CODE_VALIDATION_FAILED",
      "actions[1].extra REQUEST_INVALID",
      "actions[2].name NAME_ALREADY_EXISTS",
      "actions[2].triggers[0].where.dataSource DATA_SOURCE_NOT_FOUND",
      "actions[3].name NAME_REQUIRED",
      "actions[4].timeoutMs REQUEST_INVALID",
      "actions[4].codes REQUEST_INVALID",
      "actions[5].bar REQUEST_INVALID",
      "alerts[0].action ACTION_NOT_FOUND",
      "alerts[1].to[0] REQUEST_INVALID",
    ]);
    expect((await get(app)).body).to.deep.equal(before);
  });

  it("ignores spaces around names, and names the action of an alert that cannot have one", async () => {
    const app = await newApp();
    const where = { type: "dataSource.entry.create", dataSource: " guests " };
    const action = { name: "greet", code: CODE, triggers: [{ trigger: "log", where }] };
    const alert = { name: " fails ", condition: "failed", channel: "email", to: ["ann@example.com"], action: "greet" };
    const document = { version: 1, dataSources: [{ name: " guests" }], actions: [action], alerts: [alert] };
    expect((await put(app, document)).http).to.equal(200);
    expect((await put(app, document, { query: "?prune=true" })).body).to.deep.equal({ plan: NOTHING });
    const { body } = await put(app, {
      version: 1,
      dataSources: [{ name: "rooms" }, { name: " rooms" }],
      alerts: [alert, { ...alert, name: "fails" }, { ...alert, name: "queue", condition: "queued" }],
    });
    expect(body.faults.map(({ path }: { path: string }) => path)).to.have.members([
      "dataSources[1].name",
      "alerts[1].name",
      "alerts[2].action",
    ]);
    expect(body.error).not.to.include("got 1)");
  });

  it("is rejected with a path for every invalid document, and never with 500", async () => {
    const app = await newApp();
    for (const document of INVALID) {
      const { http, body } = await put(app, document);
      const shown = `${JSON.stringify(document)?.slice(0, 99)}: ${body.error}`;
      expect(`${http} ${body.status}`, shown).to.equal("400 REQUEST_INVALID");
    }
    const errorsOf: [document: unknown, path: string, error: string][] = [
      [[], "", "the manifest must be an object (got an array of 0)"],
      ["text", "", "the manifest must be an object (got a string)"],
      [{}, "version", "version is required (got nothing)"],
      [{ version: 2 }, "version", "version must be 1 (got 2)"],
      [{ version: 1, actions: {} }, "actions", "actions must be an array (got an object)"],
      [{ version: 1, settings: ["CANARY"] }, "settings[0]", "settings[0] must be an object (got a string)"],
    ];
    for (const [document, path, error] of errorsOf) {
      const { body } = await put(app, typeof document === "string" ? JSON.stringify(document) : document);
      expect(body.faults, JSON.stringify(document)).to.deep.equal([{ path, status: "REQUEST_INVALID", error }]);
      expect(body.error).to.equal(`the manifest is invalid: ${error}`);
    }
    const nameless = await put(app, { version: 1, actions: [{ name: "", code: CODE }] });
    expect(nameless.body.error).to.equal("the manifest is invalid: actions[0].name: name must not be empty");
    const { body } = await put(app, { version: 1, action: [] });
    expect([body.faults[0].path, body.error.includes('"actions"')]).to.deep.equal(["action", true]);
  });

  longTest("is validated by the schema that the service publishes", async () => {
    const schema = await service.rest("GET", "/schemas/manifest.json", { as: null });
    expect(schema.http).to.equal(200);
    const ajv = new Ajv2020({ strict: false });
    const validate = ajv.compile(schema.body);
    expect(validate(WHOLE_MANIFEST), JSON.stringify(validate.errors)).to.equal(true);
    const app = await newApp();
    await put(app, WHOLE_MANIFEST);
    expect(validate((await get(app)).body)).to.equal(true);
    // Gives each field of each kind of item a value of a wrong type, and then a wrong name. The service rejects both.
    for (const field of ["settings", "dataSources", "actions", "alerts"] as const) {
      const items = schema.body.properties[field].items;
      expect(items.additionalProperties).to.equal(false);
      for (const name of Object.keys(items.properties)) {
        if (name === "value") continue;
        for (const changed of [{ [name]: { odd: [1] } }, { [`${name}x`]: 1 }]) {
          const [first] = WHOLE_MANIFEST[field];
          const document = { version: 1, [field]: [{ ...first, ...changed }] };
          expect(validate(document), `${field} ${JSON.stringify(changed)}`).to.equal(false);
          const { http, body } = await put(app, document, { query: "?plan=true" });
          expect(
            [http, body.faults?.[0].path.startsWith(`${field}[0]`)],
            `${field} ${JSON.stringify(changed)}`,
          ).to.deep.equal([400, true]);
        }
      }
    }
  });

  it("never contains values of private and protected settings, and keeps existing ones", async () => {
    const app = await newApp();
    await put(app, WHOLE_MANIFEST);
    const settings = { _token: "tok-secret-1", __stripe: "sk-secret-2", _mailFrom: "shown-3" };
    await service.rest("POST", `${app}/settings`, { as: "admin", body: settings });
    const read = await get(app);
    expect(read.body).to.deep.equal(WHOLE_MANIFEST);
    expect(JSON.stringify(read.body)).to.not.match(/secret-|shown-3/);
    await put(app, read.body, { query: "?prune=true" });
    const { configured, details } = (await service.rest("GET", `${app}/settings/status?details=true`, { as: "admin" }))
      .body;
    expect(configured).to.deep.equal({ __stripe: true, _mailFrom: true, _token: true });
    // The settings got their values after the manifest had declared which of them are secrets. The declaration still applies.
    expect([details._token.secret, details._mailFrom.secret]).to.deep.equal([true, false]);
  });

  it("publishes nothing, and writes one entry to the audit log", async () => {
    const app = await newApp();
    const id = Number(app.split("/").at(-1));
    await service.rest("POST", `${app}/publish`, { as: "admin" });
    await put(app, WHOLE_MANIFEST);
    const found = await rows(service.db, "SELECT FROM action WHERE app_id = $1 AND master_id IS NOT NULL", [id]);
    expect(found).to.have.length(0);
    const { entries } = (await service.rest("GET", `${app}/audit?limit=1`, { as: "admin" })).body;
    expect(entries[0]).to.deep.include({ type: "app.manifest.apply", data: { created: 12, changed: 2, removed: 0 } });
  });

  it("is rejected with a unique index that existing entries contradict, and then changes nothing", async () => {
    const app = await newApp();
    await put(app, { version: 1, dataSources: [{ name: "d", columns: ["A"] }] });
    for (let n = 0; n < 2; n += 1)
      await service.rest("POST", `${app}/data-sources/d/entries`, { as: "admin", body: { A: 1 } });
    const before = (await get(app)).body;
    const dataSources = [
      { name: "c", indexes: ["X"] },
      { name: "d", indexes: [{ columns: ["A"], unique: true }] },
    ];
    const refused = await put(app, { version: 1, dataSources, actions: [WHOLE_MANIFEST.actions[1]] });
    expect([refused.http, refused.body.status]).to.deep.equal([409, "ENTRY_ALREADY_EXISTS"]);
    expect((await get(app)).body).to.deep.equal(before);
    const indexes = await rows(service.db, "SELECT FROM pg_class WHERE relname LIKE $1", [
      `entry\\_ix\\_${app.split("/").at(-1)}\\_%`,
    ]);
    expect(indexes).to.have.length(0);
  });

  it("applies one of two documents that start from the same state, completely, with any edits beside it", async () => {
    const app = await newApp();
    await put(app, WHOLE_MANIFEST);
    const read = await get(app);
    const tag = read.headers.get("etag")!;
    const variant = (n: number) => ({
      ...WHOLE_MANIFEST,
      settings: [{ key: "title", value: n }],
      dataSources: WHOLE_MANIFEST.dataSources.map((dataSource) => ({
        ...dataSource,
        columns: [...dataSource.columns, `N${n}`],
      })),
      actions: WHOLE_MANIFEST.actions.map((action) => ({ ...action, description: `of ${n}` })),
    });
    const answers = await Promise.all([0, 1, 2, 3].map((n) => put(app, variant(n), { tag })));
    expect(answers.map(({ http }) => http).sort()).to.deep.equal([200, 409, 409, 409]);
    const winner = answers.findIndex(({ http }) => http === 200);
    const after = (await get(app)).body;
    expect(after.actions.map((action: { description: string }) => action.description)).to.deep.equal([
      `of ${winner}`,
      `of ${winner}`,
    ]);
    expect(after.settings.at(-1).value).to.equal(winner);
    expect(after.dataSources[0].columns).to.include(`N${winner}`);
    // Each concurrent edit happens before or after the manifest's change: none is lost, and none fails.
    const id = app.split("/").at(-1);
    const { actions } = (await service.rest("GET", `/v3/apps/${id}/actions`, { as: "admin" })).body;
    const edits = actions.map((action: { id: number }) =>
      service.rest("PUT", `/v3/apps/${id}/actions/${action.id}`, { as: "admin", body: { description: "edited" } }),
    );
    const current = (await get(app)).headers.get("etag")!;
    const [beside, ...edited] = await Promise.all([put(app, variant(9), { tag: current }), ...edits]);
    expect(edited.every(({ http }) => http === 200)).to.equal(true);
    const last = (await get(app)).body.actions.map((action: { description: string }) => action.description);
    if (beside.http === 409) expect(last).to.deep.equal(["edited", "edited"]);
    else
      expect(new Set(last)).to.satisfy((all: Set<string>) =>
        [...all].every((description) => ["edited", "of 9"].includes(description)),
      );
  });

  it("is the same over GraphQL", async () => {
    const app = await newApp();
    const variables = { app: Number(app.split("/").at(-1)), manifest: WHOLE_MANIFEST };
    const items = "{ kind name }";
    const apply = `mutation ($app: Int!, $manifest: JSON, $tags: [String!], $plan: Boolean = false) {
      applyManifest(appId: $app, manifest: $manifest, ifMatch: $tags, plan: $plan) {
        plan { created ${items} changed ${items} removed ${items} missing ${items} } tag } }`;
    const planned = await service.graphql(apply, { ...variables, plan: true }, { as: "admin" });
    expect(planned.data.applyManifest.plan).to.deep.equal(WHOLE_PLAN);
    const applied = await service.graphql(apply, variables, { as: "admin" });
    expect(applied.data.applyManifest.plan).to.deep.equal(WHOLE_PLAN);
    const read = "query ($app: Int!) { manifest(appId: $app) { tag manifest } }";
    const { data } = await service.graphql(read, variables, { as: "admin" });
    expect(data.manifest).to.deep.equal({ manifest: WHOLE_MANIFEST, tag: applied.data.applyManifest.tag });
    const stale = await service.graphql(
      apply,
      { ...variables, tags: [planned.data.applyManifest.tag] },
      { as: "admin" },
    );
    expect(stale.errors?.[0].extensions.status).to.equal("MANIFEST_CHANGED");
  });

  it("is rejected as a whole if the caller may not change one of its parts", async () => {
    const app = await newApp();
    const tokenWith = async (scopes: string[]): Promise<string> => {
      const body = { kind: "api", name: scopes.join("-"), scopes };
      return (await service.rest("POST", `${app}/tokens`, { as: "admin", body })).body.token;
    };
    const [manage, read, both] = [
      await tokenWith(["manage"]),
      await tokenWith(["read"]),
      await tokenWith(["manage", "settings"]),
    ];
    const write = (as: string, body: object, query = "") =>
      service.rest("PUT", `${app}/manifest${query}`, { as, body });
    const [, plain] = WHOLE_MANIFEST.actions;
    const setting = { key: "title", value: 1 };
    const mixed = { version: 1, actions: [plain], settings: [setting] };
    for (const query of ["", "?plan=true"]) {
      for (const token of [manage, read]) {
        const { http, body } = await write(token, mixed, query);
        expect([http, body.status]).to.deep.equal([403, "FORBIDDEN"]);
      }
    }
    expect((await get(app)).body.actions).to.have.length(0);
    expect((await service.rest("GET", `${app}/manifest`, { as: read })).http).to.equal(403);
    expect((await write(both, mixed)).http).to.equal(200);
    // Only an editor decides whether a private setting counts as a secret.
    const shown = { version: 1, settings: [{ key: "_shown", secret: false }] };
    expect((await write(both, shown)).body.status).to.equal("FORBIDDEN");
    // Parts of the manifest that change nothing need no permission.
    const whole = (await service.rest("GET", `${app}/manifest`, { as: manage })).body;
    expect((await write(manage, { ...whole, actions: [{ ...plain, description: "new" }] })).http).to.equal(200);
    const users = { version: 1, dataSources: [{ ...WHOLE_MANIFEST.dataSources[1], name: "other" }] };
    expect((await write(manage, users)).body.status).to.equal("FORBIDDEN");
  });
});
