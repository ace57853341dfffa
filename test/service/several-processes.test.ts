import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { type Instance, startInstance } from "../harness/instance.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { longTest } from "../harness/samples.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createEditor, ENDLESS_RUN_CODE, QUICK } from "./support.js";

/** Maximum time in milliseconds from the end of a dead process's lease to the end of its run. */
const LOST_RUN_MAX_MS = 30_000;

/** In the long tests, each instance is a separate process. */
describe("several instances on one database", () => {
  const settingsKey = randomBytes(32).toString("base64");
  let database: FreshDatabase;
  let db: Db;
  let folder: string;
  let appId: number;
  let editor: string;
  let api: Instance;
  let runner: Instance;

  const launch = (roles: string) =>
    startInstance({
      ...{ DATABASE_URL: database.url, SETTINGS_KEY: settingsKey, ROLES: roles, LOG_LEVEL: "info" },
      DATA_DIR: mkdtempSync(join(folder, "instance-")),
    });

  before(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-several-"));
    const first = await createFirstCredentials(database.url, folder);
    appId = first.appId;
    editor = first.tokens.editor;
    db = await openDatabase(database.url, 2);
    [api, runner] = await Promise.all([launch("api,scheduler"), launch("runner")]);
  });
  after(async () => {
    await Promise.all([api.stop(), runner.stop()]);
    await db.destroy();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  longTest("have a browser only on a runner", async () => {
    expect(api.process!.listRemainingProcesses()).to.deep.equal([]);
    expect(runner.process!.listRemainingProcesses()).to.not.deep.equal([]);
  });

  it("have the API only if it is configured", async () => {
    expect((await fetch(`${runner.url}/v1/apps`)).status).to.equal(404);
    expect((await fetch(`${runner.url}/health/ready`)).status).to.equal(200);
    const metrics = await (await fetch(`${api.url}/metrics`)).text();
    expect(metrics).to.include('svc_instances{role="runner"} 1');
  });

  it("return the result of runWithResult from an instance with the API and without a runner", async () => {
    const { call, create } = createEditor(api.url, editor);
    await create("quick", QUICK);
    const answers = await Promise.all(Array.from({ length: 8 }, () => call("POST", "/quick/runWithResult", {})));
    for (const { body } of answers) {
      expect(body).to.deep.include({ status: "ACTION_EXECUTED", result: { quick: true } });
    }
  });

  it("start a due tick on a runner although scheduler and runner are different instances", async () => {
    const fields = { name: "ticking", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };
    await insertPublishedActions(db, appId, [fields]);
    await db.query("UPDATE schedule SET next_tick = now() - interval '1 second'");
    const states = async () =>
      (await db.query("SELECT DISTINCT state FROM run WHERE tick IS NOT NULL")).map(
        (row: { state: string }) => row.state,
      );
    await until(async () => (await states()).includes("completed"));
  });

  longTest("log the run of a killed runner as failed, once, and respond to its caller", async () => {
    const { call, create, logs } = createEditor(api.url, editor);
    const id = await create("endless", ENDLESS_RUN_CODE);
    const answer = call("POST", "/endless/runWithResult", {});
    const findHolder = async () =>
      (await db.query("SELECT holder FROM run WHERE action_id = $1 AND state = 'running'", [id]))[0]?.holder;
    const holder = await until(findHolder);
    await runner.process!.clean();
    const entry = await until(async () => (await logs({ id }))[0]);
    expect(entry).to.deep.include({ type: "app.task.failed" });
    expect(entry.data.error.name).to.equal("RunLostError");
    expect((await answer).body.status).to.equal("EXECUTION_FAILED");
    // Compares times of the database, so that a busy machine does not change the difference.
    const [{ late }] = await db.query(
      `SELECT extract(epoch FROM run.finished_at - instance.lease_until)::float * 1000 AS late
         FROM run, instance WHERE run.action_id = $1 AND instance.id = $2`,
      [id, holder],
    );
    expect(late).to.be.within(0, LOST_RUN_MAX_MS);
    expect(await logs({ id })).to.have.length(1);
  });

  longTest("log no requests at level info, and no migrations where there is nothing to migrate", async () => {
    const { status, headers } = await fetch(`${api.url}/v3/apps/${appId}/actions`);
    expect([status, headers.get("x-request-id")]).to.deep.equal([401, null]);
    api.process!.signal("SIGTERM");
    await api.process!.ended;
    const messages = api.process!.log.map(({ msg }) => msg);
    expect(messages).to.include("ready").and.not.include("request").and.not.include("the schema is migrated");
  });
});
