/** Tests snapshots of an app: the content of a snapshot, the values that no response contains, and the values that a restore does not change. */
import { expect } from "chai";
import { VERSIONS_PER_APP_MAX } from "../../src/limits.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("app versions", () => {
  let service: TestService;
  let app: string;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    app = `/v1/apps/${service.appId}`;
  });
  after(() => service.stop());

  const write = (body: object) => service.rest("POST", `${app}/settings`, { body });
  const settings = async () => (await service.rest("GET", `${app}/settings`)).body;
  const details = async (id: number) => (await service.rest("GET", `${app}/versions/${id}`)).body.version;
  const newest = async () => (await service.rest("GET", `${app}/versions`)).body.versions[0];

  /** Returns the row of the protected setting `__secret`, with its encrypted value, which no HTTP response may contain. */
  async function readProtectedRow(): Promise<{ sealed: string; updated: Date }> {
    const [row] = await service.db.query(
      "SELECT encode(sealed, 'hex') AS sealed, updated_at AS updated FROM setting WHERE key = '__secret'",
    );
    return row;
  }

  it("contain the app's fields and its public and private settings, but no protected one", async () => {
    await service.rest("PUT", app, { body: { name: "One", hooks: { a: 1 } } });
    await write({ a: 1, _b: "private", __secret: "CANARY" });
    const { http, body } = await service.rest("POST", `${app}/versions`);
    expect(http).to.equal(201);
    expect(body.version).to.have.keys("id", "createdAt", "userId", "user", "action", "name");
    expect(body.version).to.deep.include({ action: "create", name: "One" });
    expect(body.version.user).to.have.keys("id", "firstName", "lastName", "email");
    const stored = await service.db.query("SELECT key FROM app_version_setting ORDER BY key");
    expect(stored.map(({ key }: { key: string }) => key)).to.deep.equal(["_b", "a"]);
    const version = await details(body.version.id);
    expect(version.settings).to.deep.equal({ a: 1, _b: "private" });
    expect(version.data).to.deep.include({ name: "One", hooks: { a: 1 } });
  });

  it("restore everything except protected settings, which keep their values", async () => {
    const { id } = await newest();
    await service.rest("PUT", app, { body: { name: "Two", hooks: null } });
    await write({ a: 2, c: "later", _d: "later", __secret: "newer", __more: 1 });
    const before = await readProtectedRow();
    const { http, body } = await service.rest("POST", `${app}/versions/${id}/restore`);
    expect([http, body.app.name, body.app.hooks]).to.deep.equal([200, "One", { a: 1 }]);
    expect(await settings()).to.deep.equal({ a: 1, _b: "private" });
    expect(await readProtectedRow()).to.deep.equal(before);
    const status = await service.rest("GET", `${app}/settings/status?keys=["__secret","__more"]`);
    expect(status.body.configured).to.deep.equal({ __secret: true, __more: true });
    const { entries } = (await service.rest("GET", `${app}/audit?limit=1`)).body;
    expect(entries[0].type).to.equal("app.restore");
    expect(entries[0].data.versionId).to.equal(id);
    expect(entries[0].data.keys).to.have.members(["a", "c", "_d"]);
  });

  it("can undo a restore: it first stores the current state as a version", async () => {
    const before = await newest();
    expect(before.action).to.equal("pre-restore");
    const restoredByGraphql = await service.graphql(
      "mutation($v: Int!) { restoreAppVersion(appId: 1, versionId: $v) { name } }",
      {
        v: before.id,
      },
    );
    expect(restoredByGraphql.data.restoreAppVersion.name).to.equal("Two");
    expect(await settings()).to.deep.equal({ a: 2, c: "later", _b: "private", _d: "later" });
  });

  it("can be restored also if it is the oldest one that the app keeps", async () => {
    await write({ a: "oldest" });
    const { id } = (await service.rest("POST", `${app}/versions`)).body.version;
    await write({ a: "newest" });
    await service.db.query("DELETE FROM app_version WHERE app_id = $1 AND id < $2", [service.appId, id]);
    const FILL = "INSERT INTO app_version (app_id, data) SELECT $1, '{}' FROM generate_series(2, $2::int)";
    await service.db.query(FILL, [service.appId, VERSIONS_PER_APP_MAX]);
    const restore = () => service.rest("POST", `${app}/versions/${id}/restore`);
    expect((await restore()).http).to.equal(200);
    expect(await settings()).to.include({ a: "oldest", _b: "private" });
    expect((await restore()).body.status).to.equal("VERSION_NOT_FOUND");
    const [count] = await service.db.query("SELECT count(*)::int AS kept FROM app_version WHERE app_id = $1", [
      service.appId,
    ]);
    expect(count.kept).to.equal(VERSIONS_PER_APP_MAX);
    await service.db.query("DELETE FROM app_version WHERE app_id = $1 AND data::text = '{}'", [service.appId]);
  });

  it("that are older and contain protected settings neither return nor restore them", async () => {
    const [{ id }] = await service.db.query("INSERT INTO app_version (app_id, data) VALUES (1, $1) RETURNING id", [
      JSON.stringify({ name: "Old", settings: { __secret: "CANARY" }, __secret: "CANARY", isHidden: true }),
    ]);
    await service.db.query(
      `INSERT INTO app_version_setting (app_version_id, key, value, sealed)
       SELECT $1::bigint, key, value, sealed FROM setting WHERE app_id = 1 UNION SELECT $1::bigint, '__gone', '"CANARY"', NULL`,
      [id],
    );
    const version = await details(id);
    expect(version.settings).to.have.keys("a", "_b", "c", "_d");
    expect(version.data).to.deep.equal({ name: "Old" });
    const list = await service.graphql(
      "{ appVersions(appId: 1) { versions { id createdAt userId user action name } pagination { total hasMore } } }",
    );
    expect(JSON.stringify([version, list])).not.to.include("CANARY");
    const before = await readProtectedRow();
    expect((await service.rest("POST", `${app}/versions/${id}/restore`)).body.app).to.include({ isHidden: false });
    expect(await readProtectedRow()).to.deep.equal(before);
    const status = await service.rest("GET", `${app}/settings/status?keys=["__gone"]`);
    expect(status.body.configured).to.deep.equal({ __gone: false });
  });

  it("are stored when the app is published", async () => {
    await service.rest("POST", `${app}/publish`);
    expect(await newest()).to.include({ action: "publish", name: "Old" });
  });

  it("have pages, newest first, and are not found by the ID of another app", async () => {
    const { body } = await service.rest("GET", `${app}/versions?limit=2&offset=1`);
    expect(body.versions).to.have.lengthOf(2);
    expect(body.versions[0].id).to.be.greaterThan(body.versions[1].id);
    expect(body.pagination).to.deep.include({ limit: 2, offset: 1, hasMore: true });
    expect((await service.rest("GET", `${app}/versions?limit=101`)).body.pagination.limit).to.equal(100);
    const made = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    const other = `/v1/apps/${made.body.app.id}/versions/${body.versions[0].id}`;
    for (const path of [other, `${app}/versions/999999`, `${app}/versions/x`, `${app}/versions/0`]) {
      for (const [method, where] of [
        ["GET", path],
        ["POST", `${path}/restore`],
      ] as const) {
        const { http, body: answer } = await service.rest(method, where, { as: "admin" });
        expect([http, answer.status]).to.deep.equal([404, "VERSION_NOT_FOUND"]);
      }
    }
    for (const as of ["api", "viewer", "live"] as const) {
      expect((await service.rest("GET", `${app}/versions`, { as })).http).to.equal(403);
    }
  });
});
