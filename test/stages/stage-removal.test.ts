/** Tests the removal of previews: nothing works in a removed preview any more, its runs end, and its indexes are dropped. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { BATCH_DELETED_TABLES } from "../../src/operations/stages/stage-removal.js";
import { createClient } from "../../src/postgres.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { createStages } from "../harness/stages.js";
import { until } from "../harness/until.js";

const CODE = "async function execute() {\n  return 1;\n}";
const HOLDER = "00000000-0000-4000-8000-000000000001";

describe("removed previews", () => {
  let service: TestService;
  let number = 0;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const where = { path: "hook", auth: { type: "none" }, respond: "immediately" };
    const triggers = [
      { trigger: "manual" },
      { trigger: "http", where },
      { trigger: "schedule" },
      { trigger: "log", where: { type: "guest.came" } },
    ];
    const action = { name: "hook", code: CODE, active: true, frequency: "0 0 1 1 *", triggers };
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
    const dropped: unknown[] = [];
    await createStages(service.db, { definitions: { dropIndexes: (source) => dropped.push(source) } }).expire();
    expect(dropped).to.deep.include({ appId: id });
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
    const isListed = async (as: "admin" | "editor") =>
      (await service.rest("GET", "/v1/apps", { as })).body.apps.some((app: { id: number }) => app.id === id);
    const scheduled = async () => (await rows(service.db, "SELECT FROM schedule WHERE app_id = $1", [id])).length;
    const logTriggers = async () => (await rows(service.db, "SELECT FROM log_trigger WHERE app_id = $1", [id])).length;
    expect(await requests()).to.deep.equal([[200, undefined], [200, undefined], 202]);
    expect([await scheduled(), await logTriggers()]).to.deep.equal([1, 1]);
    expect([await isListed("admin"), await isListed("editor")]).to.deep.equal([true, true]);
    // The removal must not wait for the rows that this transaction locks.
    await service.db.transaction(async (manager) => {
      for (const table of ["action", "credential", "data_source"])
        await manager.query(`SELECT FROM ${table} WHERE app_id = $1 FOR UPDATE`, [id]);
      expect(refusalOf(await remove(id))).to.deep.equal([200, "STAGE_REMOVED"]);
    });
    expect(await rows(service.db, "SELECT FROM app WHERE id = $1", [id])).to.have.length(1);
    expect(await requests()).to.deep.equal([[401, "UNAUTHORIZED"], [403, "FORBIDDEN"], 404]);
    expect([await scheduled(), await logTriggers()]).to.deep.equal([0, 0]);
    expect([await isListed("admin"), await isListed("editor")]).to.deep.equal([false, false]);
    const published = await service.rest("POST", `/v1/apps/${id}/publish`, { as: "admin" });
    expect(refusalOf(published)).to.deep.equal([404, "APP_NOT_FOUND"]);
    const again = await service.rest("DELETE", `/v1/apps/${service.appId}/stages/${id}`, { as: "admin" });
    expect(again.body.status).to.equal("NOT_FOUND");
  });

  const insertEntries = (id: number, count: number) =>
    service.db.query(
      `INSERT INTO data_source_entry (app_id, data_source_id, data)
       SELECT $1, (SELECT id FROM data_source WHERE app_id = $1), json_build_object('Name', n) FROM generate_series(1, $2) AS n`,
      [id, count],
    );
  const countEntries = async (id: number) =>
    (await rows(service.db, "SELECT FROM data_source_entry WHERE app_id = $1", [id])).length;
  const existing = async (...ids: number[]) =>
    (await rows<{ id: number }>(service.db, "SELECT id FROM app WHERE id = ANY ($1) ORDER BY id", [ids])).map(
      ({ id }) => id,
    );

  it("lose their entries in batches", async () => {
    const { id } = await createPreview();
    await insertEntries(id, 2_001);
    await service.db.query(`
      CREATE TABLE removed_batch (n bigint);
      CREATE FUNCTION note_removed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO removed_batch SELECT count(*) FROM gone; RETURN NULL; END $$;
      CREATE TRIGGER note_removed AFTER DELETE ON data_source_entry REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION note_removed()`);
    try {
      await remove(id);
      await createStages(service.db).expire();
      const [removed] = await rows(service.db, "SELECT sum(n)::int AS total, max(n)::int AS max FROM removed_batch");
      expect(removed).to.deep.equal({ total: 2_001, max: 1_000 });
      expect(await existing(id)).to.deep.equal([]);
    } finally {
      await service.db.query("DROP FUNCTION note_removed CASCADE; DROP TABLE removed_batch");
    }
  });

  it("are not deleted further after a stop, and the next process continues after the deleted batches", async () => {
    const { id } = await createPreview();
    await insertEntries(id, 2_001);
    await remove(id);
    const db = Object.create(service.db, {
      transaction: {
        value: async (work: Parameters<typeof service.db.transaction>[0]) => {
          const deleted = await service.db.transaction(work as never);
          if ((deleted as unknown[]).length === 1_000) stages.stop();
          return deleted;
        },
      },
    }) as typeof service.db;
    const stages = createStages(db);
    await stages.expire();
    expect(await countEntries(id)).to.equal(1_001);
    await createStages(service.db).expire();
    expect(await existing(id)).to.deep.equal([]);
  });

  it("do not prevent the deletion of other previews if their deletion fails, and are tried again a minute later", async () => {
    const [broken, other] = [await createPreview(), await createPreview()];
    await service.db.query(`
      CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
      CREATE TRIGGER refuse_deletion BEFORE DELETE ON data_source FOR EACH ROW
        WHEN (OLD.app_id = ${broken.id}) EXECUTE FUNCTION refuse_deletion()`);
    const expire = "UPDATE app_stage SET expires_at = now() - interval '1 minute' WHERE app_id = ANY ($1)";
    await service.db.query(expire, [[broken.id, other.id]]);
    const warnings: unknown[] = [];
    const startedAt = Date.now();
    const next = await createStages(service.db, {
      log: { warn: (details: unknown) => warnings.push(details) },
    }).expire();
    expect(next - startedAt).to.be.at.least(60_000);
    expect(warnings).to.have.length(1);
    expect(await existing(broken.id, other.id)).to.deep.equal([broken.id]);
    await service.db.query("DROP FUNCTION refuse_deletion CASCADE");
    await createStages(service.db).expire();
    expect(await existing(broken.id)).to.deep.equal([]);
  });

  it("have only few and small rows in the tables that are not deleted in batches", async () => {
    // The service deletes the rows of these tables when it closes the stage, or together with the rows to which they refer.
    const small = [
      ["ai_usage", "app", "app_editor", "app_git", "app_member", "app_stage", "app_user_session", "data_source"],
      ["data_source_tally", "declared_setting", "git_webhook", "http_secret", "integration_token", "invitation"],
      ["media_folder", "media_usage", "notification_place", "oauth_device", "passkey_challenge", "person_session"],
      ["sealed_setting", "secret_bindings", "setting", "vapid_key", "verification_code"],
      ["http_route", "log_trigger", "schedule"],
    ].flat();
    const sql = `
      WITH RECURSIVE deleted (id) AS (
        SELECT 'app'::regclass::oid
        UNION SELECT conrelid FROM pg_constraint JOIN deleted ON confrelid = deleted.id
               WHERE contype = 'f' AND confdeltype = 'c')
      SELECT id::regclass::text AS name FROM deleted`;
    const names = (await rows<{ name: string }>(service.db, sql)).map(({ name }) => name);
    // The table `http_event` has no foreign key, because its rows remain when a live version is removed. The clean-up deletes them after a day.
    const batchDeleted = BATCH_DELETED_TABLES.map(([table]) => table).filter((table) => table !== "http_event");
    expect(names).to.have.members([...small, ...batchDeleted]);
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
