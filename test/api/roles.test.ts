/** Tests what roles and scopes can read and run in an app. Also tests the number, the scopes and the expiry of API tokens. */
import { expect } from "chai";
import { pino } from "pino";
import { rows } from "../../src/data/database.js";
import { createDatabaseNotifications } from "../../src/engine/notifications.js";
import { TOKENS_PER_APP } from "../../src/limits.js";
import { AppTokens } from "../../src/operations/access/app-tokens.js";
import { CREDENTIAL_CHANNEL, Credentials } from "../../src/operations/access/credentials.js";
import { People } from "../../src/operations/access/people.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import type { Role } from "../../src/rules/roles.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("roles and scopes", () => {
  let service: TestService;
  const tokens = {} as Record<Role | "read" | "publish", string>;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { appId, organizationId, db } = service;
    for (const role of ["operator", "reader"] as const) {
      const [person] = await rows<{ id: number }>(
        db,
        `INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, $2, 'Test', $3) RETURNING id`,
        [organizationId, role, `${role}@example.com`],
      );
      await db.query("INSERT INTO app_member (app_id, person_id, role) VALUES ($1, $2, $3)", [appId, person!.id, role]);
      tokens[role] = generateToken("editor");
      const credential = "INSERT INTO credential (kind, hash, person_id) VALUES ('editor', $1, $2)";
      await db.query(credential, [hashToken(tokens[role]), person!.id]);
    }
    for (const scope of ["read", "publish"] as const) {
      tokens[scope] = generateToken("api");
      const credential = "INSERT INTO credential (kind, hash, app_id, scopes) VALUES ('api', $1, $2, $3)";
      await db.query(credential, [hashToken(tokens[scope]), appId, [scope]]);
    }
    const code = "async function execute() { return 1 }";
    const action = { name: "listed", code, triggers: [{ trigger: "manual" }] };
    expect((await service.rest("POST", `/v3/apps/${appId}/actions`, { body: action })).http).to.equal(201);
    const settings = { shown: "a", _private: "private value", __protected: "protected value" };
    expect((await service.rest("POST", `/v1/apps/${appId}/settings`, { body: settings })).http).to.equal(200);
    const hooks = { onStart: "configuration" };
    expect((await service.rest("PUT", `/v1/apps/${appId}`, { body: { hooks } })).http).to.equal(200);
  });
  after(() => service.stop());

  for (const name of ["operator", "publish"] as const) {
    it(`the action list for ${name} contains no code in any form`, async () => {
      const list = `/v3/apps/${service.appId}/actions`;
      const { body } = await service.rest("GET", list, { as: tokens[name] });
      expect(body.actions[0]).to.include({ name: "listed", active: false });
      expect(JSON.stringify(body)).to.not.contain("execute");
      const query = (fields: string) =>
        service.graphql(
          `query ($app: Int!) { actions(appId: $app) { actions { ${fields} } } }`,
          { app: service.appId },
          {
            as: tokens[name],
          },
        );
      expect((await query("name")).data.actions.actions).to.deep.equal([{ name: "listed" }]);
      const { data, errors } = await query("name code");
      expect(data.actions).to.equal(null);
      expect(errors![0].extensions.status).to.equal("FORBIDDEN");
    });
  }

  for (const name of ["reader", "read"] as const) {
    it(`${name} gets code and public settings, and no private ones`, async () => {
      const { body } = await service.rest("GET", `/v3/apps/${service.appId}/actions`, { as: tokens[name] });
      expect(body.actions[0].code).to.contain("execute");
      const settings = await service.rest("GET", `/v1/apps/${service.appId}/settings`, { as: tokens[name] });
      expect(settings.body).to.deep.equal({ shown: "a" });
      const { data } = await service.graphql(
        "query ($app: Int!) { settings(appId: $app) }",
        { app: service.appId },
        {
          as: tokens[name],
        },
      );
      expect(data.settings).to.deep.equal({ shown: "a" });
    });
  }

  it("an operator lists only the apps of its roles, without their configuration", async () => {
    const { body } = await service.rest("GET", "/v1/apps", { as: tokens.operator });
    expect(body.apps).to.have.length(1);
    expect(body.apps[0]).to.include({ id: service.appId, hooks: null, dependencies: null, organizationId: null });
    const reader = await service.rest("GET", "/v1/apps", { as: tokens.reader });
    expect(reader.body.apps[0].hooks).to.deep.equal({ onStart: "configuration" });
  });

  const tokensPath = () => `/v1/apps/${service.appId}/tokens`;
  const create = (body: object) => service.rest("POST", tokensPath(), { body });

  it("an API token has scopes, an expiry and the time of its last use", async () => {
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const made = await create({ kind: "api", name: "deploy", scopes: ["publish", "read"], expiresAt });
    expect(made.http).to.equal(201);
    expect(made.body).to.have.keys("id", "token");
    const find = async () =>
      (await service.rest("GET", tokensPath())).body.tokens.find(({ id }: { id: number }) => id === made.body.id);
    expect(await find()).to.deep.include({
      name: "deploy",
      scopes: ["read", "publish"],
      expiresAt,
      lastUsedAt: null,
      lastUsedAddress: null,
    });
    expect((await service.rest("GET", "/v1/apps", { as: made.body.token })).http).to.equal(200);
    const used = await until(async () => {
      const token = await find();
      return token.lastUsedAt === null ? null : token;
    });
    expect(used.lastUsedAddress).to.equal("127.0.0.1");
    await service.db.query("UPDATE credential SET expires_at = now() WHERE id = $1", [made.body.id]);
    await service.db.query("SELECT pg_notify('svc_credential', '')");
    await until(async () => (await service.rest("GET", "/v1/apps", { as: made.body.token })).http === 401);
  });

  it("an app keeps its limit of tokens also with concurrent requests", async () => {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "full" } });
    const { id } = body.app;
    await service.db.query(
      `INSERT INTO credential (kind, hash, app_id)
       SELECT 'api', decode(md5('full' || at), 'hex'), $1 FROM generate_series(1, $2::int) AS at`,
      [id, TOKENS_PER_APP - 1],
    );
    const make = () => service.rest("POST", `/v1/apps/${id}/tokens`, { as: "admin", body: { kind: "api" } });
    const answers = await Promise.all(Array.from({ length: 8 }, make));
    expect(answers.map(({ http }) => http).sort()).to.deep.equal([201, ...Array(7).fill(400)]);
  });

  it("invalid scopes and expiries are rejected with their path", async () => {
    for (const [body, path] of [
      [{ kind: "api", scopes: [] }, "scopes"],
      [{ kind: "api", scopes: "read" }, "scopes"],
      [{ kind: "api", scopes: ["read", "write"] }, "scopes[1]"],
      [{ kind: "api", scopes: Array(7).fill("read") }, "scopes"],
      [{ kind: "live", scopes: ["read"] }, "scopes"],
      [{ kind: "api", expiresAt: "tomorrow" }, "expiresAt"],
      [{ kind: "api", expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt"],
      [{ kind: "api", expiresAt: "2099-02-30T00:00:00Z" }, "expiresAt"],
      [{ kind: "api", expiresAt: 5 }, "expiresAt"],
      [{ kind: "api", scope: ["read"] }, "scope"],
    ] as const) {
      const { http, body: answer } = await create(body);
      expect([http, answer.status], JSON.stringify(body)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(answer.error).to.contain(path);
    }
  });

  it("the scope manage runs drafts by copy=draft, the scope run live versions, and neither the other", async () => {
    const manage = (await create({ kind: "api", scopes: ["manage"] })).body.token;
    const run = (await create({ kind: "api", scopes: ["run"] })).body.token;
    const start = async (as: string, query: string) => {
      const path = `/v3/apps/${service.appId}/actions/listed/run${query}`;
      const { http, body } = await service.rest("POST", path, { as, body: {} });
      return http === 202 ? "queued" : body.status;
    };
    // The action is inactive, so a caller with access to the draft gets this error, and no run starts.
    expect(await start(manage, "?copy=draft")).to.equal("ACTION_INACTIVE");
    expect(await start(manage, "")).to.equal("FORBIDDEN");
    expect(await start(manage, "?copy=live")).to.equal("FORBIDDEN");
    expect(await start(run, "?copy=draft")).to.equal("FORBIDDEN");
    expect(await start(run, "")).to.equal("ACTION_NOT_FOUND");
    expect(await start(run, "?copy=live")).to.equal("ACTION_NOT_FOUND");
    expect(await start(service.tokens.api, "?copy=draft")).to.equal("FORBIDDEN");
    expect(await start(service.tokens.live, "?copy=draft")).to.equal("FORBIDDEN");
    expect(await start(tokens.operator, "")).to.equal("ACTION_INACTIVE");
    expect(await start(tokens.operator, "?copy=live")).to.equal("ACTION_NOT_FOUND");
    expect(await start(tokens.operator, "?copy=master")).to.equal("REQUEST_INVALID");
    expect(await start(tokens.reader, "?copy=master")).to.equal("FORBIDDEN");
  });

  it("a token that expires within 7 days gets one warning, from all processes together", async () => {
    const soon = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const later = new Date(Date.now() + 30 * 86_400_000).toISOString();
    const expiring = (await create({ kind: "api", name: "expiring", expiresAt: later })).body.id;
    await create({ kind: "api", name: "lasting", expiresAt: later });
    await create({ kind: "api", name: "short", expiresAt: soon });
    await service.db.query(
      "UPDATE credential SET expires_at = $2, created_at = now() - interval '30 days' WHERE id = $1",
      [expiring, soon],
    );
    const lines: { tokenId: number; name: string }[] = [];
    const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const { db } = service;
    const notifications = createDatabaseNotifications({
      url: service.databaseUrl,
      channels: [CREDENTIAL_CHANNEL],
      log,
    });
    const credentials = new Credentials({ db, notifications });
    const made = new AppTokens({ db, credentials, people: new People({ db }), log });
    await Promise.all([made.warnOfExpiry(), made.warnOfExpiry()]);
    expect(lines.map(({ tokenId, name }) => [tokenId, name])).to.deep.equal([[expiring, "expiring"]]);
  });

  it("an administrator of an organization creates apps and people there, and nowhere else", async () => {
    const { db, organizationId } = service;
    const elsewhere = await rows<{ id: number }>(
      db,
      "INSERT INTO organization (name) VALUES ('Elsewhere') RETURNING id",
    );
    const [person] = await rows<{ id: number }>(
      db,
      `INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, 'A', 'B', 'a.b@example.com') RETURNING id`,
      [elsewhere[0]!.id],
    );
    const member = "INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, 'admin')";
    await db.query(member, [elsewhere[0]!.id, person!.id]);
    const token = generateToken("editor");
    await db.query("INSERT INTO credential (kind, hash, person_id) VALUES ('editor', $1, $2)", [
      hashToken(token),
      person!.id,
    ]);
    const make = (path: string, body: object) => service.rest("POST", path, { as: token, body });
    const made = await make("/v1/admin/apps", { name: "ours" });
    expect(made.body.app).to.include({ name: "ours", organizationId: elsewhere[0]!.id });
    const listed = await service.rest("GET", "/v1/apps", { as: token });
    expect(listed.body.apps.map(({ id }: { id: number }) => id)).to.deep.equal([made.body.app.id]);
    const foreign = await make("/v1/admin/apps", { name: "theirs", organizationId });
    expect(foreign.body.status).to.equal("FORBIDDEN");
    const missing = await make("/v1/admin/apps", { name: "none", organizationId: 2_000_000_000 });
    expect(missing.body.status).to.equal("FORBIDDEN");
    const human = { firstName: "C", lastName: "D", email: "c.d@example.com" };
    expect((await make("/v1/admin/users", { ...human, organizationId })).body.status).to.equal("FORBIDDEN");
    expect((await make("/v1/admin/users", human)).body.user.organizationId).to.equal(elsewhere[0]!.id);
  });
});
