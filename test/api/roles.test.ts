/** Views that roles and scopes get of an app: actions without code, public settings only, apps without their configuration. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { hashToken, newToken } from "../../src/operations/access/tokens.js";
import type { Role } from "../../src/rules/roles.js";
import { startTestService, type TestService } from "../harness/service.js";

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
      tokens[role] = newToken("editor");
      const credential = "INSERT INTO credential (kind, hash, person_id) VALUES ('editor', $1, $2)";
      await db.query(credential, [hashToken(tokens[role]), person!.id]);
    }
    for (const scope of ["read", "publish"] as const) {
      tokens[scope] = newToken("api");
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
    it(`the action list of ${name} has no code, in no form`, async () => {
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
    const token = newToken("editor");
    await db.query("INSERT INTO credential (kind, hash, person_id) VALUES ('editor', $1, $2)", [
      hashToken(token),
      person!.id,
    ]);
    const create = (path: string, body: object) => service.rest("POST", path, { as: token, body });
    const made = await create("/v1/admin/apps", { name: "ours" });
    expect(made.body.app).to.include({ name: "ours", organizationId: elsewhere[0]!.id });
    const listed = await service.rest("GET", "/v1/apps", { as: token });
    expect(listed.body.apps.map(({ id }: { id: number }) => id)).to.deep.equal([made.body.app.id]);
    const foreign = await create("/v1/admin/apps", { name: "theirs", organizationId });
    expect(foreign.body.status).to.equal("FORBIDDEN");
    const missing = await create("/v1/admin/apps", { name: "none", organizationId: 2_000_000_000 });
    expect(missing.body.status).to.equal("FORBIDDEN");
    const human = { firstName: "C", lastName: "D", email: "c.d@example.com" };
    expect((await create("/v1/admin/users", { ...human, organizationId })).body.status).to.equal("FORBIDDEN");
    expect((await create("/v1/admin/users", human)).body.user.organizationId).to.equal(elsewhere[0]!.id);
  });
});
