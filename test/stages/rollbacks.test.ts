import { expect } from "chai";
import type { EntityManager } from "typeorm";
import { countLockWaits } from "../harness/lock-waits.js";
import type { Answer, TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute() {\n  return 1;\n}";

describe("rollbacks of promotions", () => {
  let service: TestService;
  let stages = 0;
  before(async () => {
    service = await useSharedService("api");
  });
  after(() => service.stop());

  const create = (app: number, name: string) =>
    service.rest("POST", `/v3/apps/${app}/actions`, { body: { name, code: CODE } });
  const promote = (app: number, fromAppId: number) =>
    service.rest("POST", `/v1/apps/${app}/promotions`, { body: { fromAppId } });
  const rollback = (app: number, id: number) => service.rest("POST", `/v1/apps/${app}/promotions/${id}/rollback`, {});
  const actionNames = async (app: number): Promise<string[]> =>
    (await service.rest("GET", `/v1/apps/${app}/manifest`)).body.actions.map(({ name }: { name: string }) => name);

  /** Creates two stages, and promotes a new action from the first to the second. */
  async function createPromotedStages() {
    stages += 1;
    const made = ["from", "to"].map((name) =>
      service.rest("POST", `/v1/apps/${service.appId}/stages`, { body: { name: `${name}-${stages}` } }),
    );
    const [from, to] = (await Promise.all(made)).map(({ body }) => body.app.id as number) as [number, number];
    await create(from, "one");
    const { body } = await promote(to, from);
    return { from, to, promotionId: body.promotion.id as number };
  }

  /** Sends requests that wait for the app's lock, each one when the previous one waits. Then calls `last`, and releases the lock. */
  async function sendInOrder(
    app: number,
    requests: readonly (() => Promise<Answer>)[],
    last: (manager: EntityManager) => Promise<unknown> = async () => undefined,
  ): Promise<Answer[]> {
    const sent = await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [app]);
      const answers: Promise<Answer>[] = [];
      for (const request of requests) {
        answers.push(request());
        await until(async () => (await countLockWaits(manager)) === answers.length);
      }
      await last(manager);
      return { answers };
    });
    return Promise.all(sent.answers);
  }

  it("are refused if another promotion commits first", async () => {
    const { from, to, promotionId } = await createPromotedStages();
    await create(from, "two");
    const [promoted, undone] = await sendInOrder(to, [() => promote(to, from), () => rollback(to, promotionId)]);
    expect(promoted!.http).to.equal(201);
    expect([undone!.http, undone!.body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    expect(await actionNames(to)).to.deep.equal(["one", "two"]);
  });

  it("are refused if a promotion without changes commits first", async () => {
    const { from, to, promotionId } = await createPromotedStages();
    const [promoted, undone] = await sendInOrder(to, [() => promote(to, from), () => rollback(to, promotionId)]);
    expect(promoted!.http).to.equal(201);
    expect([undone!.http, undone!.body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    expect(await actionNames(to)).to.deep.equal(["one"]);
    expect((await rollback(to, promotionId)).http).to.equal(201);
    expect(await actionNames(to)).to.deep.equal(["one"]);
  });

  it("are refused if a definition changes first", async () => {
    const { to, promotionId } = await createPromotedStages();
    const change = (manager: EntityManager) =>
      manager.query("UPDATE action SET code = code || ' ' WHERE app_id = $1 AND name = 'one'", [to]);
    const [undone] = await sendInOrder(to, [() => rollback(to, promotionId)], change);
    expect([undone!.http, undone!.body.status]).to.deep.equal([409, "MANIFEST_CHANGED"]);
    expect(await actionNames(to)).to.deep.equal(["one"]);
  });

  it("and manifests keep alerts whose action they rename or remove", async () => {
    const { to } = await createPromotedStages();
    const [draft] = (await service.rest("GET", `/v3/apps/${to}/actions`)).body.actions;
    const alert = { name: "fails", condition: "failed", channel: "email", to: ["ann@example.com"], actionId: draft.id };
    const { id } = (await service.rest("POST", `/v1/apps/${to}/alerts`, { body: alert })).body.alert;
    const readAlerts = async () =>
      (await service.rest("GET", `/v1/apps/${to}/manifest`)).body.alerts.map((rule: { action: string }) => rule.action);

    const manifest = (await service.rest("GET", `/v1/apps/${to}/manifest`)).body;
    const [{ action: _, ...rest }] = manifest.alerts;
    const renamed = { ...manifest.actions[0], name: "two" };
    const document = { ...manifest, actions: [renamed], alerts: [{ ...rest, action: "two" }] };
    expect((await service.rest("PUT", `/v1/apps/${to}/manifest?prune=true`, { body: document })).http).to.equal(200);
    expect(await readAlerts()).to.deep.equal(["two"]);

    const all = { ...document, actions: [], alerts: [{ ...rest, action: null }] };
    expect((await service.rest("PUT", `/v1/apps/${to}/manifest?prune=true`, { body: all })).http).to.equal(200);
    expect(await readAlerts()).to.deep.equal([null]);
    expect((await service.rest("GET", `/v1/apps/${to}/alerts/${id}`)).body.alert.actionId).to.equal(null);
  });
});
