/**
 * Sends very large requests to a service with a heap of half a gigabyte, and reads very large responses. The service must survive and
 * continue to respond.
 */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { createClient } from "graphql-ws";
import { Client } from "pg";
import WebSocket from "ws";
import { addLogEntry } from "../harness/log-entries.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

const ENTRIES = 40;
/** JSON result of 6 MB with two million objects. */
const RESULT = `[${"{},".repeat(1_999_999)}{}]`;
/** Memory limit of the service's process in MB: about twice the measured value. */
const PEAK_MAX_MB = 900;
const LOGS_PATH = "/v3/apps/1/actions/logs";
const RETURNING_CODE = "async function execute() { return Array.from({ length: 1_900_000 }, () => ({})) }";

describe("a service with 512 MB of heap", () => {
  let service: ServiceProcess;
  let url: string;
  let token: string;

  before(async () => {
    service = startProcess({ NODE_OPTIONS: "--max-old-space-size=512" });
    url = await service.ready();
    token = service.credentials().tokens.editor;
    const db = new Client({ connectionString: service.databaseUrl() });
    await db.connect();
    await db.query(
      `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
       SELECT 1, 1, -n, 'app.task.completed', $1 FROM generate_series(1, ${ENTRIES}) n`,
      [`{"taskId":1,"result":{"data":${RESULT},"success":true}}`],
    );
    await db.end();
  });
  after(() => service.clean());

  const post = async (path: string, body: object, as: string | null = token) => {
    const headers = { "content-type": "application/json", ...(as && { "auth-token": as }) };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    let bytes = 0;
    for await (const chunk of response.body!) bytes += chunk.length;
    return { http: response.status, bytes };
  };
  const repeatConcurrently = <T>(count: number, ask: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, ask));

  async function expectServiceAlive(): Promise<void> {
    expect((await fetch(`${url}/health/live`)).status).to.equal(200);
    expect((await post(LOGS_PATH, { limit: 1 })).http).to.equal(200);
    // Waits until the memory of all responses is free. Parts of a request can still run after its caller has disconnected.
    await until(async () => /^svc_answer_bytes 0$/m.test(await (await fetch(`${url}/metrics`)).text()));
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1];
    const megabytes = Math.round(Number(peak) / 1024);
    console.log(`      peak of memory: ${megabytes} MB`);
    expect(megabytes).to.be.below(PEAK_MAX_MB);
  }

  it("responds to a hundred concurrent requests for results of 6 MB with the results or 503", async () => {
    const answers = await repeatConcurrently(100, () => post(LOGS_PATH, { limit: 12 }));
    expect(answers.filter(({ http }) => http === 200).length).to.be.above(0);
    for (const { http, bytes } of answers)
      expect([http, bytes < 9e6]).to.be.deep.oneOf([
        [200, true],
        [503, true],
      ]);
    await expectServiceAlive();
  });

  it("responds to twenty concurrent documents that each read the log with sixty aliases", async () => {
    const aliases = Array.from({ length: 60 }, (_, at) => `a${at}: actionLogs(appId: 1) { logs { data } }`);
    const answers = await repeatConcurrently(20, () => post("/graphql", { query: `{ ${aliases.join(" ")} }` }));
    for (const { bytes } of answers) expect(bytes).to.be.below(17e6);
    await expectServiceAlive();
  });

  const createSockets = (count: number) =>
    Array.from({ length: count }, () =>
      createClient({
        url: `${url.replace("http", "ws")}/graphql`,
        webSocketImpl: WebSocket,
        connectionParams: { authToken: token },
        retryAttempts: 0,
      }),
    );

  it("responds to documents that read the log on thirty sockets", async () => {
    const clients = createSockets(30);
    const query = "{ a: actionLogs(appId: 1) { logs { data } } b: actionLogs(appId: 1) { logs { data } } }";
    await Promise.all(
      clients.map(
        (client) =>
          new Promise<void>((resolve) => {
            client.subscribe({ query }, { next: () => resolve(), error: () => resolve(), complete: () => resolve() });
          }),
      ),
    );
    await Promise.all(clients.map((client) => client.dispose()));
    await expectServiceAlive();
  });

  it("sends an event of 6 MB as often as memory allows, to 400 subscriptions with different documents", async () => {
    const clients = createSockets(20);
    const ready = new Set<number>();
    const done = new Set<number>();
    const subscribe = (at: number) => {
      const query = `subscription { actionLogAdded(appId: 1) { a${at}: data } }`;
      const end = () => done.add(at);
      const next = ({ data }: { data?: Record<string, unknown> | null }) => {
        ready.add(at);
        if (JSON.stringify(data).length > 6e6) end();
      };
      clients[at % 20]!.subscribe({ query }, { next, error: end, complete: end });
    };
    const db = new Client({ connectionString: service.databaseUrl() });
    await db.connect();
    // Subscribes in five steps, because at most 256 documents of a caller can wait for their check. These checks are slow, because a caller
    // gets only a tenth of the thread's time.
    for (let count = 80; count <= 400; count += 80) {
      for (let at = count - 80; at < count; at += 1) subscribe(at);
      await until(async () => {
        await addLogEntry(db, 1, {});
        return ready.size === count;
      });
    }
    await addLogEntry(db, 1, { text: "x".repeat(6e6) });
    await until(() => done.size === 400, 30_000);
    await db.end();
    await Promise.all(clients.map((client) => client.dispose()));
    await expectServiceAlive();
  });

  it("returns the results of ten concurrent runs, 6 MB each", async () => {
    const action = { name: "large", code: RETURNING_CODE, active: true, triggers: [{ trigger: "manual" }] };
    expect((await post("/v3/apps/1/actions", action)).http).to.equal(201);
    const answers = await repeatConcurrently(10, () => post("/v3/apps/1/actions/large/runWithResult", {}));
    expect(answers.map(({ http }) => http)).to.deep.equal(Array.from({ length: 10 }, () => 200));
    for (const { bytes } of answers) expect(bytes).to.be.above(5_700_000);
    await expectServiceAlive();
  });

  it("rejects each of a hundred expensive introspections with a short response", async () => {
    const query = `{ __schema { types { ${Array.from({ length: 1_600 }, (_, at) => `a${at}: description`).join(" ")} } } }`;
    for (const { http, bytes } of await repeatConcurrently(100, () => post("/graphql", { query }, null))) {
      expect([http, bytes < 200]).to.deep.equal([200, true]);
    }
    await expectServiceAlive();
  });
});
