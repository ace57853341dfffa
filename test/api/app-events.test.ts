/** Tests log events that the service emits itself: changes of an app, and opened pages. */
import { expect } from "chai";
import { LOGGED_PAGE_VIEWS_PER_VIEWER_AND_MINUTE } from "../../src/limits.js";
import { generateToken, hashToken } from "../../src/operations/access/tokens.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

describe("events of the app itself", () => {
  let service: TestService;
  let app: string;
  let last = 0;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
    app = `/v1/apps/${service.appId}`;
    await service.rest("POST", `${app}/publish`);
  });
  after(() => service.stop());
  beforeEach(async () => {
    last = (await service.db.query("SELECT coalesce(max(id), 0) AS id FROM log_event"))[0].id;
  });

  const events = (): Promise<{ type: string; data: object; user_id: number | null }[]> =>
    service.db.query("SELECT type, data, user_id FROM log_event WHERE id > $1 ORDER BY id", [last]);
  const received = async () => (await events()).map(({ type, data }) => ({ type, data }));
  const open = (path: string, cookie?: string) =>
    service.rest("GET", path, { as: null, headers: { accept: "text/html", ...(cookie && { cookie }) } });

  it("name the changed fields of a PUT of an app, also by an administrator, and never a value", async () => {
    await service.rest("PUT", app, { body: { name: "Renamed", icon: "star", settings: { ignored: 1 } } });
    const settings = { open: "value", _key: "value", __key: "ignored" };
    await service.rest("PUT", `/v1/admin/apps/${service.appId}`, { as: "admin", body: { isHidden: true, settings } });
    await service.rest("PUT", app, { body: {} });
    expect(await received()).to.deep.equal([
      { type: "app.update", data: { fields: ["name", "icon"] } },
      { type: "app.update", data: { fields: ["isHidden", "settings"], keys: ["open", "_key"] } },
    ]);
  });

  it("name the keys of settings that were set, removed or restored, and who did it", async () => {
    const { version } = (await service.rest("POST", `${app}/versions`)).body;
    await service.rest("POST", `${app}/settings`, { body: { a: 1, __b: "secret-value" } });
    await service.rest("DELETE", `${app}/settings`, { body: { keys: ["a", "absent"] } });
    await service.rest("DELETE", `${app}/settings`, { body: { keys: ["absent"] } });
    await service.graphql(`mutation { setSettings(appId: ${service.appId}, settings: { c: 1 }) }`);
    const found = await events();
    expect(found.map(({ data }) => data)).to.deep.equal([
      { fields: ["settings"], keys: ["a", "__b"] },
      { fields: ["settings"], keys: ["a"] },
      { fields: ["settings"], keys: ["c"] },
    ]);
    for (const { type, user_id } of found) expect([type, typeof user_id]).to.deep.equal(["app.update", "number"]);
    await service.rest("POST", `${app}/versions/${version.id}/restore`);
    expect((await received()).at(-1)!.data).to.deep.include({ keys: ["c"] });
  });

  it("are stored with the change or not at all", async () => {
    await service.db.query("ALTER TABLE log_event RENAME TO log_event_away");
    try {
      const refused = await service.rest("POST", `${app}/settings`, { body: { lost: 1 } });
      expect(refused.http).to.equal(500);
      await service.rest("PUT", app, { body: { name: "Lost" } });
    } finally {
      await service.db.query("ALTER TABLE log_event_away RENAME TO log_event");
    }
    expect((await service.rest("GET", `${app}/settings`)).body).to.not.have.property("lost");
    expect((await service.rest("GET", "/v1/apps")).body.apps[0].name).to.not.equal("Lost");
  });

  it("have as many names as fit, and the number of the others", async () => {
    const keys = Array.from({ length: 200 }, (_, at) => `${at}-${"é".repeat(500)}`);
    await service.rest("POST", `${app}/settings`, { body: Object.fromEntries(keys.map((key) => [key, 1])) });
    const data = (await events())[0]!.data as { keys: string[]; keysOmitted: number };
    expect(JSON.stringify(data).length).to.be.below(32_768);
    expect(data.keys.length + data.keysOmitted).to.equal(200);
    await service.rest("DELETE", `${app}/settings`, { body: { keys } });
  });

  it("record that a visitor or an editor opened a page of the app", async () => {
    expect((await open(`/apps/${service.appId}`)).http).to.equal(200);
    await open(`/apps/${service.appId}/viewer`, `auth_token=${service.tokens.editor}`);
    expect(await received()).to.deep.equal([
      { type: "app.view", data: { environment: "live" } },
      { type: "app.view", data: { environment: "viewer" } },
    ]);
    expect((await events()).at(-1)!.user_id).to.be.a("number");
    await open("/apps/999999");
    expect(await received()).to.have.length(2);
  });

  longTest("are no longer stored for a client that reloads again and again; its page is still served", async () => {
    const startedAt = performance.now();
    const pages = await Promise.all(Array.from({ length: 100 }, () => open(`/apps/${service.appId}`)));
    expect([...new Set(pages.map(({ http }) => http))]).to.deep.equal([200]);
    // Each viewer can store 60 page views a minute. So the limit allows one more page view for each second that the test takes.
    const regainedAfterSeconds = Math.ceil((performance.now() - startedAt) / 1000);
    expect((await received()).length).to.be.within(1, LOGGED_PAGE_VIEWS_PER_VIEWER_AND_MINUTE + regainedAfterSeconds);
  });

  it("start log triggers; a chain of runs that change settings for each other ends", async () => {
    const trigger = { trigger: "log" as const, where: { type: "app.update" } };
    const [copy] = await insertPublishedActions(service.db, service.appId, [{ name: "self", triggers: [trigger] }]);
    const newest = async () =>
      (await service.db.query("SELECT * FROM run WHERE action_id = $1 ORDER BY id DESC LIMIT 1", [copy!.id]))[0];
    const list = async (where: object) => {
      const path = `/v3/apps/${service.appId}/actions/logs`;
      return (await service.rest("POST", path, { body: { id: copy!.id, where } })).body.logs;
    };
    await service.rest("POST", `${app}/settings`, { body: { start: 1 } });
    const [entry] = await until(async () => {
      const logs = await list({});
      return logs.length > 0 && logs;
    });
    const data = { fields: ["settings"], keys: ["start"] };
    expect(entry.data.payload.log).to.deep.include({ type: "app.update", data });
    for (let depth = 1; depth <= 9; depth += 1) {
      const token = generateToken("task");
      const { id } = await newest();
      await service.db.query("INSERT INTO credential (kind, hash, app_id, run_id) VALUES ('task', $1, $2, $3)", [
        ...[hashToken(token), service.appId, id],
      ]);
      const written = await service.rest("POST", `${app}/settings`, { as: token, body: { touched: depth } });
      expect(written.http).to.equal(200);
      expect(await newest()).to.include({ cause_run_id: id, depth });
    }
    expect(await newest()).to.include({ state: "skipped", reason: "recursion: more than 8 runs deep" });
    expect((await list({ type: "app.task.failed" }))[0].data.error.name).to.equal("RecursionError");
  });
});
