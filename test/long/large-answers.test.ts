/** Everything that asks for much at once, against a service with half a gigabyte of heap: it lives, and goes on answering. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { createClient } from "graphql-ws";
import { Client } from "pg";
import WebSocket from "ws";
import { type ServiceProcess, startProcess } from "../harness/process.js";

const ENTRIES = 40;
/** A result of 6 MB, of two million objects. */
const RESULT = `[${"{},".repeat(1_999_999)}{}]`;
const LOGS = "/v3/apps/1/actions/logs";
const RETURNS = "async function execute() { return Array.from({ length: 1_900_000 }, () => ({})) }";

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
  const many = <T>(count: number, ask: () => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, ask));

  async function expectAlive(): Promise<void> {
    expect((await fetch(`${url}/health/live`)).status).to.equal(200);
    expect((await post(LOGS, { limit: 1 })).http).to.equal(200);
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1];
    console.log(`      peak of memory: ${Math.round(Number(peak) / 1024)} MB`);
  }

  it("answers pages of results of 6 MB, a hundred at once, or asks to come again", async () => {
    const answers = await many(100, () => post(LOGS, { limit: 12 }));
    expect(answers.filter(({ http }) => http === 200).length).to.be.above(0);
    for (const { http, bytes } of answers)
      expect([http, bytes < 9e6]).to.be.deep.oneOf([
        [200, true],
        [503, true],
      ]);
    await expectAlive();
  });

  it("answers sixty aliases of the log, twenty documents at once", async () => {
    const aliases = Array.from({ length: 60 }, (_, at) => `a${at}: actionLogs(appId: 1) { logs { data } }`);
    const answers = await many(20, () => post("/graphql", { query: `{ ${aliases.join(" ")} }` }));
    for (const { bytes } of answers) expect(bytes).to.be.below(17e6);
    await expectAlive();
  });

  it("answers the same on sockets that do not read", async () => {
    const clients = Array.from({ length: 30 }, () =>
      createClient({
        url: `${url.replace("http", "ws")}/graphql`,
        webSocketImpl: WebSocket,
        connectionParams: { authToken: token },
        retryAttempts: 0,
      }),
    );
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
    await expectAlive();
  });

  it("hands on results of 6 MB, ten at once", async () => {
    const action = { name: "large", code: RETURNS, active: true, triggers: [{ trigger: "manual" }] };
    expect((await post("/v3/apps/1/actions", action)).http).to.equal(201);
    const answers = await many(10, () => post("/v3/apps/1/actions/large/runWithResult", {}));
    expect(answers.map(({ http }) => http)).to.deep.equal(Array.from({ length: 10 }, () => 200));
    for (const { bytes } of answers) expect(bytes).to.be.above(5_700_000);
    await expectAlive();
  });

  it("is silent for nobody's hundred documents", async () => {
    const query = `{ __schema { types { ${Array.from({ length: 1_600 }, (_, at) => `a${at}: description`).join(" ")} } } }`;
    for (const { http, bytes } of await many(100, () => post("/graphql", { query }, null))) {
      expect([http, bytes < 200]).to.deep.equal([200, true]);
    }
    await expectAlive();
  });
});
