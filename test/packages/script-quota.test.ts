/** Tests the limit on the total size of the scripts of an app's actions. A save also counts scripts that other processes stored. */
import { expect } from "chai";
import { countLockWaits } from "../harness/lock-waits.js";
import { startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("the size of the scripts of one app's actions", () => {
  const LEFT = 3_000;
  let registry: TestRegistry;
  let service: TestService;
  let fullApp: number;
  let count = 0;

  function save(dependencies: string[], appId: number) {
    count += 1;
    const body = { name: `a-${count}`, code: "async function execute() {}", dependencies };
    return service.rest("POST", `/v3/apps/${appId}/actions`, { as: "admin", body });
  }
  async function refused(dependencies: string[], dependency: string) {
    const { http, body } = await save(dependencies, fullApp);
    expect({ http, status: body.status }, body.error).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
    expect(body.error).to.match(new RegExp(`"${dependency}" is too large: .* can use at most 256 MB`));
  }

  before(async () => {
    registry = await startRegistry();
    for (const name of ["part-a", "part-b", "part-c", "part-d", "of-others"]) {
      const code = `module.exports = "${name} ${"x".repeat(LEFT / 2)}"`;
      registry.publish({ name, version: "1.0.0", files: { "index.js": code } });
    }
    registry.publish({ name: "fills", version: "1.0.0", files: { "index.js": "module.exports = 1" } });
    service = await startTestService({ ROLES: "api", NPM_PACKAGES: "on", NPM_REGISTRY: registry.url });
    const app = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "full" } });
    fullApp = app.body.app.id;
    // SQL fills the app up to LEFT bytes below the limit: it moves an action to the app, and stores a large size of the action's script.
    // The service has no cached total of this app yet, so it will read this size.
    const { id } = (await save(["fills"], service.appId)).body.action;
    await service.db.query("UPDATE action SET app_id = $1 WHERE id = $2", [fullApp, id]);
    const sql =
      "UPDATE kept_script SET declaration_bytes = 256 * 1024 * 1024 - $1::int - bytes WHERE package = 'fills'";
    await service.db.query(sql, [LEFT]);
  });
  after(async () => {
    await service?.stop();
    await registry?.close();
  });

  longTest("rejects scripts of one save that are too large together, also if they are stored by then", async () => {
    await refused(["part-a", "part-b"], "part-b");
    await refused(["part-b", "part-a"], "part-a");
  });

  longTest("counts scripts that another app has stored", async () => {
    expect((await save(["of-others", "part-c"], service.appId)).http).to.equal(201);
    await refused(["of-others", "part-c"], "part-c");
  });

  longTest("counts a script once, for any number of actions", async () => {
    for (let at = 0; at < 3; at += 1) expect((await save(["part-d", "fills"], fullApp)).http).to.equal(201);
    await refused(["part-a"], "part-a");
  });

  longTest("accepts one of two concurrent saves whose scripts are too large together", async () => {
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    const appId = body.app.id as number;
    expect((await save(["fills"], appId)).http).to.equal(201);
    const { sent } = await service.db.transaction(async (manager) => {
      // The lock stops each save at its last write, the audit entry. So both saves are in progress at once.
      await manager.query("LOCK TABLE audit_entry IN SHARE MODE");
      const sent = [save(["part-a"], appId), save(["part-b"], appId)];
      await until(async () => (await countLockWaits(manager)) >= sent.length);
      return { sent };
    });
    const answers = (await Promise.all(sent)).sort((a, b) => a.http - b.http);
    expect(answers.map(({ http }) => http)).to.deep.equal([201, 400]);
    expect(answers[1]!.body.error).to.match(/"part-[ab]" is too large: .* can use at most 256 MB/);
  });
});
