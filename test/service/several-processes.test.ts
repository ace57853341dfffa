import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { DataSource } from "typeorm";
import { openDatabase } from "../../src/data/database.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { publishDirectly } from "../harness/production-copies.js";
import { firstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createEditor, ENDLESS_RUN_CODE, QUICK } from "./support.js";

/** Maximum time from the end of a dead process's lease to the end of its run: several renewals of the other processes. */
const LOST_RUN_MAX_MS = 30_000;

describe("several processes on one database", () => {
  const settingsKey = randomBytes(32).toString("base64");
  let database: FreshDatabase;
  let db: DataSource;
  let folder: string;
  let appId: number;
  let editor: string;
  let processes: Record<"api" | "runner", ServiceProcess>;
  let urls: Record<string, string>;

  const launch = (roles: string) =>
    startProcess({ DATABASE_URL: database.url, SETTINGS_KEY: settingsKey, ROLES: roles, LOG_LEVEL: "info" });

  before(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-several-"));
    const first = await firstCredentials(database.url, folder);
    appId = first.appId;
    editor = first.tokens.editor;
    db = await openDatabase(database.url, 2);
    processes = { api: launch("api,scheduler"), runner: launch("runner") };
    const ready = Object.entries(processes).map(async ([name, one]) => [name, await one.ready()]);
    urls = Object.fromEntries(await Promise.all(ready));
  });
  after(async () => {
    for (const one of Object.values(processes)) one.signal("SIGTERM");
    await Promise.all(Object.values(processes).map(({ ended }) => ended));
    await Promise.all(Object.values(processes).map((one) => one.clean()));
    await db.destroy();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("have a browser only on a runner, and the API only if it is configured", async () => {
    expect(processes.api.offspring()).to.deep.equal([]);
    expect(processes.runner.offspring()).to.not.deep.equal([]);
    expect((await fetch(`${urls["runner"]}/v1/apps`)).status).to.equal(404);
    expect((await fetch(`${urls["runner"]}/health/ready`)).status).to.equal(200);
    const metrics = await (await fetch(`${urls["api"]}/metrics`)).text();
    expect(metrics).to.include('svc_instances{role="runner"} 1');
  });

  it("return the result of runWithResult from an API process without a runner", async () => {
    const { call, create } = createEditor(urls["api"]!, editor);
    await create("quick", QUICK);
    const answers = await Promise.all(Array.from({ length: 8 }, () => call("POST", "/quick/runWithResult", {})));
    for (const { body } of answers) {
      expect(body).to.deep.include({ status: "ACTION_EXECUTED", result: { quick: true } });
    }
  });

  it("start a due tick on a runner although scheduler and runner are different processes", async () => {
    const wanted = { name: "ticking", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };
    await publishDirectly(db, appId, [wanted]);
    await db.query("UPDATE schedule SET next_tick = now() - interval '1 second'");
    const states = async () =>
      (await db.query("SELECT DISTINCT state FROM run WHERE tick IS NOT NULL")).map(
        (row: { state: string }) => row.state,
      );
    await until(async () => (await states()).includes("completed"));
  });

  it("log the run of a killed runner as failed, once, and respond to its caller", async () => {
    const { call, create, logs } = createEditor(urls["api"]!, editor);
    const id = await create("endless", ENDLESS_RUN_CODE);
    const answer = call("POST", "/endless/runWithResult", {});
    const held = async () =>
      (await db.query("SELECT holder FROM run WHERE action_id = $1 AND state = 'running'", [id]))[0]?.holder;
    const holder = await until(held);
    await processes.runner.clean();
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

  it("log no requests at level info, and no migrations where there is nothing to migrate", async () => {
    const { status, headers } = await fetch(`${urls["api"]}/v3/apps/${appId}/actions`);
    expect([status, headers.get("x-request-id")]).to.deep.equal([401, null]);
    processes.api.signal("SIGTERM");
    await processes.api.ended;
    const messages = processes.api.log.map(({ msg }) => msg);
    expect(messages).to.include("ready").and.not.include("request").and.not.include("the schema is migrated");
  });
});
