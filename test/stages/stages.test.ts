import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import type { Manifests } from "../../src/operations/manifest/manifests.js";
import type { Caller } from "../../src/rules/access.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createStages } from "../harness/stages.js";

const CODE = "async function execute() {\n  return 1;\n}";

describe("stages and promotions", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    for (const name of ["one", "two"]) {
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: { name, code: CODE } });
    }
    const settings = { title: "Hotel", _key: "secret-1" };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: settings });
    const data = { name: "rooms", columns: ["Name"], entries: [{ Name: "1" }] };
    await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: data });
  });
  after(() => service.stop());

  const appPath = (id: number) => `/v1/apps/${id}`;
  const stage = async (body: object, from = service.appId) => service.rest("POST", `${appPath(from)}/stages`, { body });
  const newStage = async (name: string): Promise<number> => (await stage({ name })).body.app.id;
  const promote = (to: number, fromAppId: unknown, query = "") =>
    service.rest("POST", `${appPath(to)}/promotions${query}`, { body: { fromAppId } });
  const rollback = (app: number, id: number) => service.rest("POST", `${appPath(app)}/promotions/${id}/rollback`, {});
  const names = async (id: number): Promise<string[]> =>
    (await service.rest("GET", `${appPath(id)}/manifest`)).body.actions.map((action: { name: string }) => action.name);
  const create = (id: number, name: string) =>
    service.rest("POST", `/v3/apps/${id}/actions`, { body: { name, code: CODE } });
  const remove = async (id: number, name: string) => {
    const { actions } = (await service.rest("GET", `/v3/apps/${id}/actions`)).body;
    const { id: actionId } = actions.find((action: { name: string }) => action.name === name);
    return service.rest("DELETE", `/v3/apps/${id}/actions/${actionId}`);
  };

  /**
   * Executes the SQL `first`, which locks something, and requests a new stage. When the request waits for the lock, executes `last` and
   * releases the lock. Expects a refusal.
   */
  const expectRefused = async (source: number, first: string, last = "SELECT") => {
    const sent = await service.db.transaction(async (manager) => {
      await manager.query(first);
      const answer = stage({ name: "unfinished" }, source);
      await untilLockWait(manager, answer);
      await manager.query(last);
      return { answer };
    });
    const { http, body } = await sent.answer;
    expect([http, body.status]).to.deep.equal([404, "APP_NOT_FOUND"]);
    expect(await rows(service.db, "SELECT FROM app_stage WHERE name = 'unfinished'")).to.have.length(0);
  };

  it("are refused if another request removes the new stage before its definitions are written", async () => {
    const source = await newStage("indexed");
    const data = { name: "guests", columns: ["Name"], indexes: [{ columns: ["Name"], unique: true }] };
    expect((await service.rest("POST", `${appPath(source)}/data-sources`, { body: data })).http).to.equal(201);
    // The service builds the index of the new stage before it locks the stage. The lock of the table blocks the build.
    const lockTable = "LOCK TABLE data_source_entry IN SHARE UPDATE EXCLUSIVE MODE";
    const deletion = "DELETE FROM app WHERE id = (SELECT app_id FROM app_stage WHERE name = 'unfinished')";
    await expectRefused(source, lockTable, deletion);
  });

  it("are refused if another request removes the app that they copy", async () => {
    const source = await newStage("copied");
    await expectRefused(source, `DELETE FROM app WHERE id = ${source}`);
  });

  it("create an app with the definitions, without data and secrets, for the same editors", async () => {
    const made = await stage({ name: "staging" });
    expect([made.http, made.body.app.name]).to.deep.equal([
      201,
      `${(await service.rest("GET", "/v1/apps")).body.apps[0].name} (staging)`,
    ]);
    const { id } = made.body.app;
    expect(await names(id)).to.deep.equal(["one", "two"]);
    const settings = (await service.rest("GET", `${appPath(id)}/settings`)).body;
    expect(settings).to.deep.equal({ title: "Hotel" });
    const { entries } = (await service.rest("GET", `${appPath(id)}/data-sources/rooms/entries`)).body;
    expect(entries ?? []).to.have.length(0);
    const listed = (await service.rest("GET", `${appPath(id)}/stages`)).body.stages;
    expect(
      listed.map((stage: { appId: number; name: string | null }) => [stage.appId, stage.name]),
    ).to.deep.include.members([
      [service.appId, null],
      [id, "staging"],
    ]);
    // A stage of a stage belongs to the app's stages too.
    const nested = (await stage({ name: "preview" }, id)).body.app.id;
    const group = (await service.rest("GET", `${appPath(service.appId)}/stages`)).body.stages;
    expect(group.map((stage: { appId: number }) => stage.appId)).to.include.members([id, nested]);
  });

  it("apply a reviewed difference completely, keep the values of settings, and can be rolled back", async () => {
    const to = await newStage("production");
    await service.rest("POST", `${appPath(to)}/settings`, { body: { title: "Live", _key: "secret-2" } });
    await service.rest("POST", `${appPath(to)}/data-sources/rooms/entries`, { body: { Name: "live", Extra: 1 } });
    const dev = await newStage("dev");
    await create(dev, "three");
    await remove(dev, "two");
    await service.rest("POST", `${appPath(dev)}/settings`, { body: { title: "Dev", fresh: 1 } });
    const expected = {
      created: [
        { kind: "setting", name: "fresh" },
        { kind: "action", name: "three" },
      ],
      changed: [],
      removed: [{ kind: "action", name: "two" }],
    };
    const plan = await promote(to, dev, "?plan=true");
    expect([plan.http, plan.body]).to.deep.equal([200, { plan: expected }]);
    expect(await names(to)).to.deep.equal(["one", "two"]);
    const first = await promote(to, dev);
    expect(first.http).to.equal(201);
    expect(first.body.promotion).to.deep.include({ appId: to, fromAppId: dev, rolledBackTo: null, plan: expected });
    expect(await names(to)).to.deep.equal(["one", "three"]);
    const settings = async () => (await service.rest("GET", `${appPath(to)}/settings`)).body;
    expect(await settings()).to.deep.equal({ title: "Live", _key: "secret-2", fresh: 1 });
    const { dataSource } = (await service.rest("GET", `${appPath(to)}/data-sources/rooms`)).body;
    expect(dataSource.columns).to.deep.equal(["Name", "Extra"]);
    await create(dev, "four");
    const second = (await promote(to, dev)).body.promotion;
    await create(dev, "five");
    const third = (await promote(to, dev)).body.promotion;
    // A rollback of the last promotion restores the state before it.
    const undone = await rollback(to, third.id);
    expect([undone.http, undone.body.promotion.rolledBackTo]).to.deep.equal([201, third.id]);
    expect(await names(to)).to.deep.equal(["four", "one", "three"]);
    // A rollback of an earlier promotion restores the state after it.
    await rollback(to, first.body.promotion.id);
    expect(await names(to)).to.deep.equal(["one", "three"]);
    await rollback(to, second.id);
    expect(await names(to)).to.deep.equal(["four", "one", "three"]);
    expect(await settings()).to.include({ title: "Live", _key: "secret-2" });
    const { promotions } = (await service.rest("GET", `${appPath(to)}/promotions`)).body;
    expect(promotions.map((promotion: { fromAppId: number | null }) => promotion.fromAppId)).to.deep.equal([
      null,
      null,
      null,
      dev,
      dev,
      dev,
    ]);
    const { entries } = (await service.rest("GET", `${appPath(to)}/audit?limit=100`)).body;
    const types = entries.map(({ type }: { type: string }) => type);
    expect(types.filter((type: string) => type === "app.promote")).to.have.length(3);
    expect(types.filter((type: string) => type === "app.rollback")).to.have.length(3);
  });

  it("apply only the planned definitions: no other content of either app", async () => {
    const [from, to] = [await newStage("planned"), await newStage("planned-to")];
    const promoteIf = (tag: string) =>
      service.rest("POST", `${appPath(to)}/promotions`, { body: { fromAppId: from }, headers: { "if-match": tag } });
    const change = async (app: number, text: string) => {
      const { actions } = (await service.rest("GET", `/v3/apps/${app}/actions`)).body;
      const { id } = actions.find(({ name }: { name: string }) => name === "one");
      const body = { code: `async function execute() { ${text} }` };
      return service.rest("PUT", `/v3/apps/${app}/actions/${id}`, { body });
    };
    const tagOfPlan = async () => (await promote(to, from, "?plan=true")).headers.get("etag")!;
    await change(from, "return 1;");
    for (const [app, code] of [
      [from, "return 2;"],
      [to, "return 3;"],
    ] as const) {
      const tag = await tagOfPlan();
      expect((await change(app, code)).http).to.equal(200);
      const { http, body } = await promoteIf(tag);
      expect([http, body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    }
    const odd = ['"x"', '"."', `"${(await tagOfPlan()).slice(1, 10)}"`];
    for (const tag of odd) expect((await promoteIf(tag)).body.status, tag).to.equal("MANIFEST_CHANGED");
    expect((await service.rest("GET", `${appPath(to)}/promotions`)).body.promotions).to.deep.equal([]);
    const planned = await promoteIf(`"other", ${await tagOfPlan()}`);
    expect(planned.http, JSON.stringify(planned.body)).to.equal(201);
    expect(planned.headers.get("etag")).to.equal(await tagOfPlan());
  });

  it("never remove a data source with entries, and apply nothing if a part is not possible", async () => {
    const [from, to] = [await newStage("from"), await newStage("to")];
    await service.rest("POST", `${appPath(to)}/data-sources`, { body: { name: "own", entries: [{ A: 1 }] } });
    await service.rest("POST", `${appPath(to)}/data-sources`, { body: { name: "empty" } });
    await service.rest("POST", `${appPath(from)}/data-sources`, {
      body: { name: "unique", indexes: [{ columns: ["A"], unique: true }] },
    });
    await service.rest("POST", `${appPath(to)}/data-sources`, {
      body: { name: "unique", entries: [{ A: 1 }, { A: 1 }] },
    });
    await create(from, "more");
    const refused = await promote(to, from);
    expect([refused.http, refused.body.status]).to.deep.equal([409, "ENTRY_ALREADY_EXISTS"]);
    expect(await names(to)).to.deep.equal(["one", "two"]);
    expect((await service.rest("GET", `${appPath(to)}/promotions`)).body.promotions).to.have.length(0);
    await service.rest("DELETE", `${appPath(to)}/data-sources/unique`);
    expect((await promote(to, from)).http).to.equal(201);
    const { dataSources } = (await service.rest("GET", `${appPath(to)}/data-sources`)).body;
    expect(dataSources.map((dataSource: { name: string }) => dataSource.name).sort()).to.deep.equal([
      "own",
      "rooms",
      "unique",
    ]);
  });

  it("reject apps that are not linked, other people's apps and invalid bodies", async () => {
    const to = await newStage("strict");
    const other = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } })).body.app.id;
    const cases: [unknown, number, string][] = [
      [other, 403, "FORBIDDEN"],
      [2_000_000_000, 403, "FORBIDDEN"],
      [to, 400, "REQUEST_INVALID"],
      ["x", 400, "REQUEST_INVALID"],
      [undefined, 400, "REQUEST_INVALID"],
      [0, 400, "REQUEST_INVALID"],
    ];
    for (const [from, http, status] of cases) {
      const { http: received, body } = await promote(to, from);
      expect([received, body.status], String(from)).to.deep.equal([http, status]);
    }
    const unlinked = await service.rest("POST", `${appPath(to)}/promotions`, {
      as: "admin",
      body: { fromAppId: other },
    });
    expect([unlinked.http, unlinked.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    expect((await rollback(to, 2_000_000_000)).body).to.deep.equal({
      status: "NOT_FOUND",
      error: "this app has no promotion with this ID, or no longer stores it",
    });
    const odd: [unknown, string][] = [
      [{}, "NAME_REQUIRED"],
      [[], "REQUEST_INVALID"],
      [{ name: "" }, "REQUEST_INVALID"],
      [{ name: "a/b" }, "REQUEST_INVALID"],
      [{ name: "x".repeat(64) }, "REQUEST_INVALID"],
      [{ name: "ok", expiresInHours: 0 }, "REQUEST_INVALID"],
      [{ name: "ok", expiresInHours: "1" }, "REQUEST_INVALID"],
      [{ name: "ok", expiresInHours: 745 }, "REQUEST_INVALID"],
      [{ name: "ok", hours: 1 }, "REQUEST_INVALID"],
      [{ name: "strict" }, "NAME_ALREADY_EXISTS"],
    ];
    for (const [body, status] of odd)
      expect((await stage(body as object)).body.status, JSON.stringify(body)).to.equal(status);
  });

  it("delete a preview before its time, and no other app", async () => {
    const { app } = (await stage({ name: "early", expiresInHours: 1 })).body;
    const { app: staying } = (await stage({ name: "staying" })).body;
    const remove = (id: number, as = "editor") =>
      service.rest("DELETE", `${appPath(service.appId)}/stages/${id}`, { as });
    const { body: elsewhere } = await service.rest("POST", "/v1/admin/apps", {
      as: "admin",
      body: { name: "elsewhere" },
    });
    const refusals: [id: number, as: string, status: string][] = [
      [app.id, "api", "FORBIDDEN"],
      [elsewhere.app.id, "editor", "FORBIDDEN"],
      [elsewhere.app.id, "admin", "NOT_FOUND"],
      [staying.id, "editor", "NOT_FOUND"],
      [service.appId, "editor", "NOT_FOUND"],
    ];
    for (const [id, as, status] of refusals) expect((await remove(id, as)).body.status, `${id} ${as}`).to.equal(status);
    expect((await remove(app.id)).body).to.deep.equal({ status: "STAGE_REMOVED" });
    expect((await remove(app.id, "admin")).body.status).to.equal("NOT_FOUND");
    await createStages(service.db).expire();
    expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [app.id])).to.deep.equal([]);
    const { entries } = (await service.rest("GET", `${appPath(service.appId)}/audit`)).body;
    expect(entries[0]).to.deep.include({ type: "app.stage.remove", data: { stageAppId: app.id } });
    const stageId = (await stage({ name: "own", expiresInHours: 1 })).body.app.id;
    const removed = await service.rest("DELETE", `${appPath(stageId)}/stages/${stageId}`);
    expect([removed.http, removed.body.status]).to.deep.equal([200, "STAGE_REMOVED"]);
    const after = (await service.rest("GET", `${appPath(service.appId)}/audit`)).body.entries;
    expect(after[0]).to.deep.include({ type: "app.stage.remove", data: { stageAppId: stageId } });
  });

  it("delete a preview when its time is over", async () => {
    const { app } = (await stage({ name: "branch", expiresInHours: 1 })).body;
    const of = async () => (await service.rest("GET", `${appPath(service.appId)}/stages`)).body.stages;
    const listed = (await of()).find((stage: { appId: number }) => stage.appId === app.id);
    expect(Date.parse(listed.expiresAt) - Date.now()).to.be.within(3_000_000, 3_700_000);
    await rows(service.db, "UPDATE app_stage SET expires_at = now() - interval '1 minute' WHERE app_id = $1", [app.id]);
    expect((await of()).some((stage: { appId: number }) => stage.appId === app.id)).to.equal(false);
    let clearCount = 0;
    const clearCallerCaches = async () => {
      clearCount += 1;
    };
    await createStages(service.db, { credentials: { clearCallerCaches } }).expire();
    expect([clearCount, await rows(service.db, "SELECT FROM app WHERE id = $1", [app.id])]).to.deep.equal([1, []]);
  });

  /** Starts to create a stage, and stops before its definitions are written, as if the process died. Returns the ID of the stage. */
  const leaveUnfinished = async (name: string): Promise<number> => {
    const started = Promise.withResolvers<number>();
    const manifests = {
      get: async () => ({ manifest: {} }),
      apply: (_caller: unknown, _manifest: unknown, { appId }: { appId: number }) => {
        started.resolve(appId);
        return new Promise<never>(() => undefined);
      },
    };
    const stages = createStages(service.db, { manifests: manifests as unknown as Manifests });
    const sql = "SELECT id, person_id AS \"personId\" FROM credential WHERE kind = 'editor' ORDER BY id LIMIT 1";
    const [editor] = await rows<{ id: number; personId: number }>(service.db, sql);
    const caller = { kind: "editor", credentialId: editor!.id, personId: editor!.personId, runId: null };
    const create = stages.create(caller as unknown as Caller, service.appId, { name });
    return Promise.race([started.promise, create.then(({ id }) => id)]);
  };
  const expire = () => createStages(service.db).expire();
  const UNFINISHED = "SELECT FROM app_stage WHERE app_id = $1 AND expires_at <= now() + interval '15 minutes'";

  it("expire and can be deleted if the process dies while it creates them", async () => {
    const removed = await leaveUnfinished("dead-1");
    // The stage belongs to no group yet, so only its own path removes it.
    const answer = await service.rest("DELETE", `${appPath(removed)}/stages/${removed}`, { as: "admin" });
    expect([answer.http, answer.body.status]).to.deep.equal([200, "STAGE_REMOVED"]);
    const expired = await leaveUnfinished("dead-2");
    expect(await rows(service.db, UNFINISHED, [expired])).to.have.length(1);
    await service.db.query("UPDATE app_stage SET expires_at = now() - interval '1 minute' WHERE app_id = $1", [
      expired,
    ]);
    await expire();
    expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [expired])).to.deep.equal([]);
    // A finished stage of the same name does not expire.
    expect(await rows(service.db, UNFINISHED, [await newStage("dead-2")])).to.have.length(0);
  });

  it("are not deleted if their creation ends while the service deletes expired stages", async () => {
    const id = await leaveUnfinished("late");
    await service.db.query("UPDATE app_stage SET expires_at = now() - interval '1 minute' WHERE app_id = $1", [id]);
    const { deletion } = await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [id]);
      await manager.query("UPDATE app_stage SET expires_at = NULL WHERE app_id = $1", [id]);
      const deletion = expire();
      await untilLockWait(manager, deletion);
      return { deletion };
    });
    await deletion;
    expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [id])).to.have.length(1);
  });

  it("are the same over GraphQL", async () => {
    const app = { app: service.appId };
    const made = await service.graphql(
      'mutation ($app: Int!) { createStage(appId: $app, name: "gql") { id name } }',
      app,
    );
    const { id } = made.data.createStage;
    await create(service.appId, "from-root");
    const mutation = `mutation ($app: Int!, $from: Int!, $tag: String!, $plan: Boolean!) {
      promote(appId: $app, fromAppId: $from, ifMatch: [$tag], plan: $plan) {
        tag plan { created { kind name } } promotion { id fromAppId } } }`;
    const promoteBy = (tag: string) => service.graphql(mutation, { app: id, from: service.appId, tag, plan: false });
    const { data: plan } = await service.graphql(
      mutation.replace("ifMatch: [$tag], ", "").replace(", $tag: String!", ""),
      {
        ...{ app: id, from: service.appId, plan: true },
      },
    );
    const { errors } = await promoteBy("other");
    expect(errors?.[0].extensions.status).to.equal("MANIFEST_CHANGED");
    const { data } = await promoteBy(plan.promote.tag);
    expect(data.promote.plan.created).to.deep.equal([{ kind: "action", name: "from-root" }]);
    const back = `mutation ($app: Int!, $id: Int!) { rollbackPromotion(appId: $app, id: $id) { plan { removed { name } } } }`;
    const undone = await service.graphql(back, { app: id, id: data.promote.promotion.id });
    expect(undone.data.rollbackPromotion.plan.removed).to.deep.equal([{ name: "from-root" }]);
    const read = "query ($app: Int!) { stages(appId: $app) { name } promotions(appId: $app) { rolledBackTo } }";
    const listed = await service.graphql(read, { app: id });
    expect(listed.data.promotions).to.have.length(2);
  });
});
