/** Tests that unfinished stages, and removed stages whose data still exists, are not stages of the app. The service has no scheduler. */
import { expect } from "chai";
import type { EntityManager } from "typeorm";
import { rows } from "../../src/data/database.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const CODE = "async function execute() {\n  return 1;\n}";
/** Blocks the builds of indexes on entries. The service builds the indexes of a stage before it finishes the stage. */
const BLOCK_INDEXES = "LOCK TABLE data_source_entry IN SHARE UPDATE EXCLUSIVE MODE";

describe("stages that are not finished or are removed", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const made = await send("POST", `/v3/apps/${service.appId}/actions`, { name: "kept", code: CODE });
    expect(made.http).to.equal(201);
    const data = { name: "guests", columns: ["Name"], indexes: [{ columns: ["Name"], unique: true }] };
    expect((await send("POST", `/v1/apps/${service.appId}/data-sources`, data)).http).to.equal(201);
  });
  after(() => service.stop());

  // Sends each request as the administrator, who is the only caller with rights on a removed stage.
  const send = (method: string, path: string, body?: object) => service.rest(method, path, { as: "admin", body });
  const create = (name: string, from = service.appId) =>
    send("POST", `/v1/apps/${from}/stages`, { name, expiresInHours: 1 });
  const createPreview = async (name: string): Promise<number> => {
    const made = await create(name);
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
    return made.body.app.id;
  };
  const promote = (to: number, fromAppId: number, query = "") =>
    send("POST", `/v1/apps/${to}/promotions${query}`, { fromAppId });
  const remove = async (id: number) => {
    const { body } = await send("DELETE", `/v1/apps/${service.appId}/stages/${id}`);
    expect(body.status).to.equal("STAGE_REMOVED");
  };
  const refusalOf = ({ http, body }: Answer) => [http, body.status];
  const namesOfActions = async () =>
    (await rows<{ name: string }>(service.db, "SELECT name FROM action WHERE app_id = $1", [service.appId])).map(
      ({ name }) => name,
    );
  const namesOfStages = async (): Promise<string[]> =>
    (await send("GET", `/v1/apps/${service.appId}/stages`)).body.stages.map(({ name }: { name: string }) => name);
  /** Creates a stage, and calls `work` with its ID before the service finishes the stage. Returns the response of the creation. */
  async function whileUnfinished(
    name: string,
    work: (id: number, manager: EntityManager) => Promise<void>,
  ): Promise<Answer> {
    const { answer } = await service.db.transaction(async (manager) => {
      await manager.query(BLOCK_INDEXES);
      const created = create(name);
      await untilLockWait(manager, created);
      const [made] = await rows<{ id: number }>(manager, "SELECT max(id) AS id FROM app");
      await work(made!.id, manager);
      return { answer: created };
    });
    return answer;
  }

  it("cannot be promoted after their removal, which would delete all actions of the target", async () => {
    const id = await createPreview("removed");
    await remove(id);
    for (const query of ["?plan=true", ""])
      expect(refusalOf(await promote(service.appId, id, query))).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(refusalOf(await promote(id, service.appId))).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(refusalOf(await create("copy", id))).to.deep.equal([404, "APP_NOT_FOUND"]);
    expect(await namesOfActions()).to.deep.equal(["kept"]);
  });

  it("cannot be promoted if they are removed while the promotion runs", async () => {
    const id = await createPreview("removed-meanwhile");
    await send("POST", `/v3/apps/${id}/actions`, { name: "other", code: CODE });
    const { promotion } = await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [service.appId]);
      const promotion = promote(service.appId, id);
      await untilLockWait(manager, promotion);
      await remove(id);
      return { promotion };
    });
    expect(refusalOf(await promotion)).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(await namesOfActions()).to.deep.equal(["kept"]);
  });

  it("cannot be rolled back after their removal", async () => {
    const id = await createPreview("rolled-back");
    const { promotion } = (await promote(id, service.appId)).body;
    await remove(id);
    const answer = await send("POST", `/v1/apps/${id}/promotions/${promotion.id}/rollback`, {});
    expect(refusalOf(answer)).to.deep.equal([404, "APP_NOT_FOUND"]);
  });

  it("are not listed and cannot be promoted or copied before they are finished", async () => {
    const made = await whileUnfinished("unfinished", async (id) => {
      expect(await namesOfStages()).not.to.include("unfinished");
      expect(refusalOf(await promote(service.appId, id))).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(refusalOf(await promote(id, service.appId))).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(refusalOf(await create("copy", id))).to.deep.equal([404, "APP_NOT_FOUND"]);
    });
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
    expect(await namesOfStages()).to.include("unfinished");
    expect(await namesOfActions()).to.deep.equal(["kept"]);
  });

  it("of the same name are created only once by concurrent requests", async () => {
    const answers = await Promise.all([create("twin"), create("twin")]);
    expect(answers.map(({ body }) => body.status).toSorted()).to.deep.equal(["NAME_ALREADY_EXISTS", undefined]);
    expect((await namesOfStages()).filter((name) => name === "twin")).to.have.length(1);
  });

  it("release their name and their place among 50 with their removal", async () => {
    const id = await createPreview("reused");
    const { length } = (await namesOfStages()).slice(1);
    await service.db.query(
      `WITH made AS (INSERT INTO app (organization_id, name)
         SELECT organization_id, 'filler' FROM app, generate_series(1, $2) WHERE id = $1 RETURNING id)
       INSERT INTO app_stage (app_id, root_id, name) SELECT id, $1, 'filler-' || id FROM made`,
      [service.appId, 50 - length],
    );
    expect(refusalOf(await create("one-more"))).to.deep.equal([400, "REQUEST_INVALID"]);
    await remove(id);
    await createPreview("reused");
    await service.db.query("DELETE FROM app WHERE name = 'filler'");
  });
});
