import { once } from "node:events";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import WebSocket from "ws";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { type Network, startNetwork } from "../harness/network.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute() { return 1; }";

describe("a service whose database is not available", () => {
  let network: Network;
  let service: TestService;
  let actionId: number;

  before(async () => {
    network = await startNetwork();
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1" }, (databaseUrl) => {
      network.setTarget(databaseUrl);
      return Object.assign(new URL(databaseUrl), { port: new URL(network.url).port }).href;
    });
    const body = { name: "subject", code: CODE, active: true, triggers: [{ trigger: "manual" }] };
    actionId = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body.action.id;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(async () => {
    network.restore();
    await service.stop();
    await network.stop();
  });
  afterEach(() => network.restore());

  const ready = async () => {
    const response = await fetch(`${service.url}/health/ready`);
    return { http: response.status, body: (await response.json()) as { failing?: string[] } };
  };
  const metric = async (name: string) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    return new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1];
  };

  it("answers 503 with Retry-After, reports that it is not ready and why, and is ready again afterwards", async () => {
    const { appId, rest } = service;
    const actions = `/v3/apps/${appId}/actions`;
    const lost = Number(await metric("svc_database_connections_lost_total"));
    network.cut();
    const answers = await Promise.all([
      rest("GET", actions),
      rest("POST", `${actions}/subject/run`, { body: {} }),
      rest("POST", `${actions}/subject/runWithResult`, { body: {} }),
      rest("PUT", `${actions}/${actionId}`, { body: { description: "new" } }),
      rest("POST", `${actions}/${actionId}/publish`),
      rest("POST", `${actions}/${actionId}/versions/1/restore`),
      rest("POST", `/v1/apps/${appId}/logs`, { body: { type: "app.view", data: {} } }),
      rest("POST", `/v1/apps/${appId}/settings`, { body: { title: "x" } }),
    ]);
    const query = `{ actions(appId: ${appId}) { pagination { total } } }`;
    const overGraphql = await rest("POST", "/graphql", { body: { query } });
    expect(overGraphql.http).to.equal(503);
    expect(overGraphql.body.errors[0].extensions.status).to.equal("OVERLOADED");
    expect(Number(overGraphql.headers.get("retry-after"))).to.be.greaterThan(0);
    for (const { http, headers, body } of answers) {
      expect({ http, status: body.status }).to.deep.equal({ http: 503, status: "OVERLOADED" });
      expect(Number(headers.get("retry-after"))).to.be.greaterThan(0);
    }
    expect((await ready()).body.failing).to.include("database");
    expect(await metric("svc_database_up")).to.equal("0");
    expect(await metric("svc_runs_queued")).to.equal(undefined);
    expect(Number(await metric("svc_database_connections_lost_total"))).to.be.greaterThan(lost);
    network.restore();
    await until(async () => (await ready()).http === 200);
    expect((await rest("POST", `${actions}/subject/runWithResult`, { body: {} })).body.result).to.equal(1);
    expect(await metric("svc_database_up")).to.equal("1");
  });

  longTest("is not ready while PostgreSQL's disk is full, reports it, and recovers", async () => {
    await until(async () => (await ready()).http === 200);
    await service.db.query(`
      CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER disk_full BEFORE INSERT ON log_event FOR EACH STATEMENT EXECUTE FUNCTION disk_full()`);
    const event = { body: { type: "app.view", data: {} } };
    const { http, body } = await service.rest("POST", `/v1/apps/${service.appId}/logs`, event);
    expect([http, body.status]).to.deep.equal([503, "OVERLOADED"]);
    expect(body.error).to.contain("the database's disk is full");
    const answer = await fetch(`${service.url}/health/ready`);
    expect(answer.status).to.equal(503);
    expect(await answer.json()).to.deep.include({
      error: "not up: database (its disk is full)",
      failing: ["database"],
    });
    expect(await metric("svc_database_disk_full")).to.equal("1");
    await service.db.query("DROP FUNCTION disk_full CASCADE");
    await until(async () => (await ready()).http === 200);
    expect(await metric("svc_database_disk_full")).to.equal("0");
    expect((await service.rest("POST", `/v1/apps/${service.appId}/logs`, event)).http).to.be.below(300);
  });

  it("closes websockets so that they connect again", async () => {
    network.cut();
    const socket = new WebSocket(`${service.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: service.tokens.viewer } }));
    const [code, reason] = await once(socket, "close");
    expect({ code, reason: String(reason) }).to.deep.equal({ code: 1013, reason: "The database is unavailable" });
  });

  it("is not ready while a run waits longer than ten seconds for a free slot, and recovers", async () => {
    await until(async () => (await ready()).http === 200);
    // Claims skip this run, because another transaction locks it. It has already waited for longer than the limit.
    const [{ id }] = await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, reason, finished_at)
       VALUES ($1, $2, 'master', 'manual', '{}', 'skipped', 'a test', now()) RETURNING id`,
      [service.appId, actionId],
    );
    const holder = service.db.createQueryRunner();
    await holder.startTransaction();
    await holder.query("SELECT FROM run WHERE id = $1 FOR KEY SHARE", [id]);
    await service.db.query(
      `UPDATE run SET state = 'queued', reason = NULL, finished_at = NULL, queued_at = now() - interval '11 seconds'
        WHERE id = $1`,
      [id],
    );
    await until(async () => (await ready()).http === 503);
    expect((await ready()).body.failing).to.deep.equal(["runner"]);
    expect(await metric("svc_runner_taking")).to.equal("0");
    await holder.rollbackTransaction();
    await holder.release();
    await until(async () => (await ready()).http === 200);
    const state = async () => (await service.db.query("SELECT state FROM run WHERE id = $1", [id]))[0].state;
    await until(async () => (await state()) === "completed");
    expect(await metric("svc_runner_taking")).to.equal("1");
  });

  /** Starts a run that prints the numbers from 0 to 19 in two seconds. @returns a function that returns the stored lines */
  async function startPrintingRun(name: string) {
    const actions = `/v3/apps/${service.appId}/actions`;
    const code = `async function execute() {
      for (let n = 0; n < 20; n += 1) { console.log(n); await new Promise((resolve) => setTimeout(resolve, 100)); } }`;
    const body = { name, code, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", actions, { body });
    const { runId } = (await service.rest("POST", `${actions}/${name}/run`, { body: {} })).body;
    const lines = async (): Promise<string[]> =>
      (await service.rest("GET", `/v3/apps/${service.appId}/runs/${runId}/console`)).body.lines.map(
        ({ text }: { text: string }) => text,
      );
    await until(async () => (await lines()).length > 0);
    const state = async () => (await service.db.query("SELECT state FROM run WHERE id = $1", [runId]))[0].state;
    return { lines, state };
  }
  const allLines = Array.from({ length: 20 }, (_, n) => String(n));

  it("stores all lines that a run prints while the database is away", async () => {
    await until(async () => (await ready()).http === 200);
    const { lines } = await startPrintingRun("printing");
    network.cut();
    // The code of the run ends during this outage.
    await delay(3_000);
    network.restore();
    await until(async () => (await lines().catch(() => [] as string[])).includes("19"));
    expect(await lines()).to.deep.equal(allLines);
  });

  it("answers 503 while the database is read-only, and stores the lines and the end of a run afterwards", async () => {
    await until(async () => (await ready()).http === 200);
    const { lines, state } = await startPrintingRun("printing-to-read-only");
    const { pathname } = new URL(service.databaseUrl);
    const change = (setting: string) =>
      service.db.query(`BEGIN READ WRITE; ALTER DATABASE "${pathname.slice(1)}" ${setting}; COMMIT`);
    await change("SET default_transaction_read_only = on");
    // Only new connections use the changed setting, so the test cuts the existing ones.
    network.cut();
    network.restore();
    try {
      // The code of the run ends while the database is read-only.
      await delay(3_000);
      const body = { body: { type: "app.view", data: {} } };
      const written = await service.rest("POST", `/v1/apps/${service.appId}/logs`, body);
      expect([written.http, written.body.status]).to.deep.equal([503, "OVERLOADED"]);
      expect(written.body.error).to.contain("the database is read-only");
      expect((await (await fetch(`${service.url}/health/ready`)).json()) as object).to.deep.include({
        error: "not up: database (it is read-only)",
        failing: ["database"],
      });
      expect(await state()).to.equal("running");
    } finally {
      await change("RESET default_transaction_read_only");
    }
    await until(async () => (await state()) === "completed");
    await until(async () => (await ready()).http === 200);
    expect(await lines()).to.deep.equal(allLines);
    const run = () => service.rest("POST", `/v3/apps/${service.appId}/actions/subject/runWithResult`, { body: {} });
    await until(async () => (await run()).body.result === 1);
  });

  it("builds a unique index whose build an outage has ended, without a restart", async () => {
    await until(async () => (await ready()).http === 200);
    const sources = `/v1/apps/${service.appId}/data-sources`;
    const body = { name: "People", indexes: [{ columns: ["Name"], unique: true }], entries: [{ Name: "Ann" }] };
    const { id } = (await service.rest("POST", sources, { body })).body.dataSource;
    const indexNames = async () =>
      (
        await service.db.query(
          "SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indisvalid AND indisunique",
        )
      ).flatMap(({ name }: { name: string }) => (name.startsWith("entry_ix_") ? [name] : []));
    for (const name of await indexNames()) await service.db.query(`DROP INDEX ${name}`);
    network.cut();
    await until(async () => (await ready()).http === 503);
    network.restore();
    await until(async () => (await indexNames()).length === 1);
    const repeated = await service.rest("POST", `${sources}/${id}/entries`, { body: { Name: "Ann" } });
    expect(repeated.body.status).to.equal("ENTRY_ALREADY_EXISTS");
  });

  /** Runs a server action that can send requests to a local TLS server. `payload.origin` is its origin. @returns the result of the run */
  async function runWithServer(name: string, code: string, answer: RequestListener) {
    const undoTrust = trustLocalhost();
    const server = tlsServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
      const bindings = [{ key: "__key", origin, in: "header", value: "sk_live_4eC39HqLyjWDarjtT1zdp7dc" }];
      const bound = await service.rest("PUT", `/v1/apps/${service.appId}/secret-bindings`, { body: { bindings } });
      expect(bound.http).to.equal(200);
      const actions = `/v3/apps/${service.appId}/actions`;
      const body = { name, code, active: true, triggers: [{ trigger: "manual" }], integrationOrigins: [origin] };
      await service.rest("POST", actions, { body });
      const { runId } = (await service.rest("POST", `${actions}/${name}/run`, { body: { origin } })).body;
      const run = async () => (await service.rest("GET", `/v3/apps/${service.appId}/runs/${runId}`)).body.run;
      await until(async () => ["completed", "failed"].includes((await run())?.state));
      return (await run()).log.data.result.data;
    } finally {
      server.closeAllConnections();
      server.close();
      undoTrust();
    }
  }

  it("completes requests of a run that it sent or received before the database is back, and sends each only once", async () => {
    await until(async () => (await ready()).http === 200);
    const code = `async function execute({ payload: { origin } }) {
      const { request } = Svc.App.V3.Actions;
      const payment = request({ url: origin + "/payment", method: "POST" }).catch(({ message }) => ({ status: message }));
      await new Promise((resolve) => setTimeout(resolve, 500));
      const later = request({ url: origin + "/later", auth: "__key" }).catch(({ message }) => ({ status: message }));
      return [(await payment).status, (await later).status];
    }`;
    const received: unknown[] = [];
    const result = await runWithServer("paying", code, (request, response) => {
      received.push(request.url);
      if (request.url === "/payment") {
        network.cut();
        setTimeout(() => network.restore(), 2_000);
      }
      response.end("fine");
    });
    expect(result).to.deep.equal([200, 200]);
    expect(received).to.deep.equal(["/payment", "/later"]);
  });

  it("says that a request may have been processed if the service fails after it sent the request", async () => {
    await until(async () => (await ready()).http === 200);
    const code = `async function execute({ payload: { origin } }) {
      return Svc.App.V3.Actions.request({ url: origin, method: "POST" }).catch(({ code, message }) => ({ code, message }));
    }`;
    const rename = (from: string, to: string) => service.db.query(`ALTER TABLE app RENAME COLUMN ${from} TO ${to}`);
    const isRestored = Promise.withResolvers<void>();
    const result = await runWithServer("failing", code, async (_request, response) => {
      await rename("secrets_version", "renamed_version");
      response.end("fine");
      await delay(1_000);
      await rename("renamed_version", "secrets_version");
      isRestored.resolve();
    });
    await isRestored.promise;
    expect(result.code).to.equal("TRANSPORT");
    expect(result.message).to.contain("the other server may have processed it");
  });

  it("stops a run that it no longer holds, at the next renewal of its lease", async () => {
    await until(async () => (await ready()).http === 200);
    const actions = `/v3/apps/${service.appId}/actions`;
    const code = "async function execute() { await new Promise(() => {}); }";
    const body = { name: "endless", code, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", actions, { body });
    const { runId } = (await service.rest("POST", `${actions}/endless/run`, { body: {} })).body;
    const slots = async (state: string) => Number(await metric(`svc_runner_places\\{state="${state}"\\}`));
    const busy = async () => (await slots("total")) - (await slots("free"));
    await until(async () => (await busy()) === 1);
    await service.db.query("UPDATE run SET holder = gen_random_uuid() WHERE id = $1", [runId]);
    await until(async () => (await busy()) === 0);
  });
});
