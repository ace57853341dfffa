/** Tests the removal of previews: nothing works in a removed preview any more, its runs end, and its indexes are dropped. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { createClient } from "../../src/postgres.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute() {\n  return 1;\n}";
const HOLDER = "00000000-0000-4000-8000-000000000001";

describe("removed previews", () => {
  let service: TestService;
  let number = 0;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const where = { path: "hook", auth: { type: "none" }, respond: "immediately" };
    const triggers = [{ trigger: "manual" }, { trigger: "http", where }];
    const action = { name: "hook", code: CODE, active: true, triggers };
    const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: action });
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
    const data = { name: "guests", columns: ["Name"], indexes: [{ columns: ["Name"], unique: true }] };
    expect((await service.rest("POST", `/v1/apps/${service.appId}/data-sources`, { body: data })).http).to.equal(201);
  });
  after(() => service.stop());

  async function createPreview(): Promise<{ id: number; actionId: number }> {
    number += 1;
    const body = { name: `preview-${number}`, expiresInHours: 1 };
    const made = await service.rest("POST", `/v1/apps/${service.appId}/stages`, { body });
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
    const { id } = made.body.app;
    const { actions } = (await service.rest("GET", `/v3/apps/${id}/actions`)).body;
    return { id, actionId: actions[0].id };
  }
  const remove = (id: number) => service.rest("DELETE", `/v1/apps/${service.appId}/stages/${id}`);
  const refusalOf = ({ http, body }: Answer) => [http, body.status];
  const indexesOf = (id: number) =>
    rows(service.db, "SELECT relname FROM pg_class WHERE relname LIKE 'entry\\_ix\\_' || $1 || '\\_%'", [String(id)]);

  it("cancel their queued and running runs, and callers that wait for a run receive its end", async () => {
    const { id, actionId } = await createPreview();
    const listener = createClient(service.databaseUrl, "test");
    await listener.connect();
    try {
      const cancelled: string[] = [];
      listener.on("notification", ({ payload }) => cancelled.push(payload ?? ""));
      await listener.query("LISTEN svc_cancel");
      const awaited = service.rest("POST", `/v3/apps/${id}/actions/${actionId}/runWithResult`, { body: {} });
      const states = () => rows(service.db, "SELECT state FROM run WHERE app_id = $1 ORDER BY id", [id]);
      await until(async () => (await states()).length === 1);
      const insert = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
                      VALUES ($1, $2, 'master', 'manual', '{}', 'running', $3, now()) RETURNING id`;
      const [running] = await rows<{ id: number }>(service.db, insert, [id, actionId, HOLDER]);
      expect(refusalOf(await remove(id))).to.deep.equal([200, "STAGE_REMOVED"]);
      const answer = await awaited;
      expect([answer.body.status, answer.body.error]).to.deep.equal([
        "EXECUTION_FAILED",
        "CancelledError: the run was cancelled",
      ]);
      await until(async () => cancelled.length > 0);
      expect(cancelled).to.deep.equal([String(running!.id)]);
      expect(await states()).to.deep.equal([{ state: "cancelled" }, { state: "running" }]);
    } finally {
      await listener.end();
    }
  });

  it("lose their indexes on entries", async () => {
    const { id } = await createPreview();
    expect(await indexesOf(id)).not.to.have.length(0);
    await remove(id);
    await until(async () => (await indexesOf(id)).length === 0);
  });

  it("accept no request while their data cannot be deleted yet", async () => {
    const { id, actionId } = await createPreview();
    await service.rest("POST", `/v1/apps/${id}/publish`);
    expect((await service.rest("POST", `/v3/apps/${id}/actions/${actionId}/publish`)).http).to.equal(200);
    const { token } = (await service.rest("POST", `/v1/apps/${id}/tokens`, { body: { kind: "api", name: "ci" } })).body;
    const requests = async () => [
      refusalOf(await service.rest("GET", `/v1/apps/${id}/data-sources`, { as: token })),
      refusalOf(await service.rest("GET", `/v1/apps/${id}/data-sources`)),
      (await service.rest("POST", `/h/${id}/hook`, { as: null, body: {} })).http,
    ];
    await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM data_source WHERE app_id = $1 FOR NO KEY UPDATE", [id]);
      expect(await requests()).to.deep.equal([[200, undefined], [200, undefined], 202]);
      expect(refusalOf(await remove(id))).to.deep.equal([200, "STAGE_REMOVED"]);
      expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [id])).to.have.length(1);
      expect(await requests()).to.deep.equal([[401, "UNAUTHORIZED"], [403, "FORBIDDEN"], 404]);
      const again = await service.rest("DELETE", `/v1/apps/${service.appId}/stages/${id}`, { as: "admin" });
      expect(again.body.status).to.equal("NOT_FOUND");
    });
  });

  it("lose their entries in batches", async () => {
    const { id } = await createPreview();
    await service.db.query(
      `INSERT INTO data_source_entry (app_id, data_source_id, data)
       SELECT $1, (SELECT id FROM data_source WHERE app_id = $1), json_build_object('Name', n) FROM generate_series(1, 20001) AS n`,
      [id],
    );
    await service.db.query(`
      CREATE TABLE removed_batch (n bigint);
      CREATE FUNCTION note_removed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO removed_batch SELECT count(*) FROM gone; RETURN NULL; END $$;
      CREATE TRIGGER note_removed AFTER DELETE ON data_source_entry REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION note_removed()`);
    try {
      await remove(id);
      const [removed] = await rows(service.db, "SELECT sum(n)::int AS total, max(n)::int AS max FROM removed_batch");
      expect(removed).to.deep.equal({ total: 20_001, max: 20_000 });
    } finally {
      await service.db.query("DROP FUNCTION note_removed CASCADE; DROP TABLE removed_batch");
    }
  });
});

describe("runs of a deleted app", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.stop());

  it("end although they were queued at the moment of the deletion", async () => {
    const insert = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
                    VALUES (999, 999, 'master', 'manual', '{"n":1}', 'queued') RETURNING id`;
    const [run] = await rows<{ id: number }>(service.db, insert);
    await service.db.query("SELECT pg_notify('svc_queued', '999')");
    const select = "SELECT data->'error'->>'name' AS error FROM execution_log WHERE run_id = $1";
    const entry = await until(async () => (await rows(service.db, select, [run!.id]))[0]);
    expect(entry).to.deep.equal({ error: "ActionNotFoundError" });
    expect(await rows(service.db, "SELECT state FROM run WHERE id = $1", [run!.id])).to.deep.equal([
      { state: "failed" },
    ]);
  });
});
