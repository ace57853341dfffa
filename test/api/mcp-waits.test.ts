/** Tests tools of AI agents that wait for the end of a run: wait_for_run reads the run at the start and at the end, run_live at the end. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect } from "chai";
import { RunHistoryResolver } from "../../src/api/graphql/history-resolver.js";
import { type OwnService, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { call, dataOf, WAIT_MAX_S } from "./mcp-calls.js";

const CODE = 'async function execute({ payload }) { await fetch(payload.url); return "slow"; }';

describe("an agent that waits for a run", () => {
  const readRun = RunHistoryResolver.prototype.run;
  let service: TestService;
  let agent: Client;
  let reads = 0;
  /** Responses to the requests of running runs. A run ends when the test sends its response. */
  const openResponses: ServerResponse[] = [];
  const runServer = createServer((_request, response) => openResponses.push(response));
  let runServerUrl: string;

  async function connect({ url, tokens }: TestService): Promise<Client> {
    const client = new Client({ name: "test", version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${tokens.api}` } },
    });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    return client;
  }

  before(async () => {
    runServer.listen(0, "127.0.0.1");
    await once(runServer, "listening");
    runServerUrl = `http://127.0.0.1:${(runServer.address() as AddressInfo).port}/`;
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const body = { name: "slow", active: true, triggers: [{ trigger: "manual" }], code: CODE };
    const { body: created } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    await service.rest("POST", `/v3/apps/${service.appId}/actions/${created.action.id}/publish`);
    agent = await connect(service);
    RunHistoryResolver.prototype.run = async function run(...args) {
      const run = await readRun.apply(this, args);
      reads += 1;
      return run;
    };
  });
  after(async () => {
    RunHistoryResolver.prototype.run = readRun;
    await agent?.close();
    await service?.stop();
    runServer.close().closeAllConnections();
  });
  beforeEach(() => {
    reads = 0;
  });

  const waitForRun = async (client: Client, runId: number, seconds: number) =>
    dataOf(await call(client, "wait_for_run", { runId, seconds }));

  async function endRun(): Promise<void> {
    const response = await until(() => openResponses.shift());
    response.writeHead(200, { "access-control-allow-origin": "*" }).end();
  }

  it("reads it twice with wait_for_run, and once with run_live, however long it takes", async () => {
    const start = { action: "slow", payload: { url: runServerUrl } };
    const { runId } = dataOf(await call(agent, "run_live", { ...start, wait: 0 }));
    await until(() => openResponses.length > 0);
    reads = 0;
    const waiting = waitForRun(agent, runId, WAIT_MAX_S);
    await until(() => reads > 0);
    await endRun();
    expect((await waiting).state).to.equal("completed");
    expect(reads).to.equal(2);
    reads = 0;
    const running = call(agent, "run_live", { ...start, wait: WAIT_MAX_S });
    await endRun();
    const { run, console: lines } = dataOf(await running);
    expect([run.state, lines]).to.deep.equal(["completed", []]);
    expect(reads).to.equal(1);
  });

  describe("that does not start", () => {
    let idle: OwnService;
    let idleAgent: Client;
    let runId: number;

    before(async () => {
      idle = await startTestService({ ROLES: "api", SHUTDOWN_GRACE_MS: "600000" });
      idleAgent = await connect(idle);
    });
    after(async () => {
      await idleAgent?.close();
      await idle?.stop();
    });
    beforeEach(async () => {
      const sql = `INSERT INTO run (app_id, action_id, copy, trigger, state, payload)
        VALUES ($1, 1, 'master', 'manual', 'queued', '{}') RETURNING id`;
      runId = Number((await idle.db.query(sql, [idle.appId]))[0].id);
    });

    it("gets the unfinished run after the given time", async () => {
      expect((await waitForRun(idleAgent, runId, 1)).state).to.equal("queued");
      expect(reads).to.equal(2);
      expect((await waitForRun(idleAgent, runId, 0)).state).to.equal("queued");
      expect(reads).to.equal(3);
    });

    it("gets a skipped run at its end, although it has no log entry", async () => {
      const waiting = waitForRun(idleAgent, runId, WAIT_MAX_S);
      await until(() => reads > 0);
      const startedAt = performance.now();
      const skip = "UPDATE run SET state = 'skipped', reason = 'late', finished_at = now() WHERE id = $1";
      await idle.db.query(skip, [runId]);
      expect((await waiting).state).to.equal("skipped");
      expect(performance.now() - startedAt).to.be.below((WAIT_MAX_S * 1_000) / 2);
    });

    it("causes no read after it has disconnected", async () => {
      const leaving = await connect(idle);
      const left = waitForRun(leaving, runId, WAIT_MAX_S).catch(() => "left");
      await until(() => reads > 0);
      await leaving.close();
      expect(await left).to.equal("left");
      // This wait of 2 seconds gives the service time to detect that the agent `leaving` has disconnected.
      expect((await waitForRun(idleAgent, runId, 2)).state).to.equal("queued");
      expect(reads).to.equal(3);
    });

    it("gets an error at once if the service stops", async () => {
      const waiting = call(idleAgent, "wait_for_run", { runId, seconds: WAIT_MAX_S });
      await until(() => reads > 0);
      const startedAt = performance.now();
      const stopped = idle.stopService();
      const { isError, text } = await waiting;
      expect(text).to.contain("OVERLOADED: the service is stopping");
      expect(isError).to.equal(true);
      await stopped;
      expect(performance.now() - startedAt).to.be.below((WAIT_MAX_S * 1_000) / 2);
    });
  });
});
