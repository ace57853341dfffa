/** Starts the measured service as a separate process. By default, its database is embedded and writes to disk. Most rate limits are off. */
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { FirstCredentials } from "../../src/operations/access/bootstrap.js";
import { startProcess } from "../../test/harness/process.js";

/** Time after which the client closes idle connections. The service closes them after 5 s, and a call must not use a closing connection. */
const IDLE_CONNECTION_MS = 3_000;

export interface BenchService {
  url: string;
  databaseUrl: string;
  /** Process ID of the service, for measurements of its processor time. */
  pid: number;
  first: FirstCredentials;
  /**
   * Sends a REST request over a persistent connection, with the editor's token unless `token` is set. Sends `body` as JSON.
   * @throws Error if the response is not 2xx
   */
  // biome-ignore lint/suspicious/noExplicitAny: the type of a response depends on the route
  call(method: string, path: string, body?: unknown, token?: string): Promise<any>;
  /** Creates an action whose draft is active and has a manual trigger. Returns the action's ID. */
  createAction(name: string, code: string): Promise<number>;
  stop(): Promise<void>;
}

/** Starts the service and resolves when it is ready. @param environment environment variables that replace the defaults */
export async function startBenchService(environment: Record<string, string> = {}): Promise<BenchService> {
  const service = startProcess({ LOG_LEVEL: "info", ...environment });
  const url = await service.ready();
  const first = service.credentials();
  const agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });
  const headersFor = (token: string) => ({ "auth-token": token, "content-type": "application/json" });

  // Uses Node's http client, because fetch takes longer than some of the measured calls.
  const call: BenchService["call"] = (method, path, body, token = first.tokens.editor) =>
    new Promise((resolve, reject) => {
      const outgoing = request(url + path, { method, agent, headers: headersFor(token) }, async (response) => {
        const responseText = await text(response);
        if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(responseText));
        else reject(new Error(`${method} ${path} failed with ${response.statusCode}: ${responseText}`));
      });
      outgoing.once("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
    });

  return {
    url,
    databaseUrl: environment["DATABASE_URL"] ?? service.databaseUrl(),
    pid: service.pid,
    first,
    call,
    async createAction(name, code) {
      const input = { name, code, active: true, environment: "server", triggers: [{ trigger: "manual" }] };
      return (await call("POST", `/v3/apps/${first.appId}/actions`, input)).action.id;
    },
    async stop() {
      agent.destroy();
      service.signal("SIGTERM");
      await service.ended;
      await service.clean();
    },
  };
}

/** Starts one process with the API, the scheduler and the database, and `runners` processes that execute runs. Waits for all of them. */
export async function startFleet(runners: number, environment: Record<string, string> = {}): Promise<BenchService> {
  const sharedEnvironment = { SETTINGS_KEY: randomBytes(32).toString("base64"), LOG_LEVEL: "info", ...environment };
  const api = await startBenchService({ ...sharedEnvironment, ROLES: "api,scheduler" });
  const runnerEnvironment = {
    ...sharedEnvironment,
    ROLES: "runner",
    DATABASE_URL: api.databaseUrl,
    PUBLIC_URL: api.url,
  };
  const runnerProcesses = Array.from({ length: runners }, () => startProcess(runnerEnvironment));
  await Promise.all(runnerProcesses.map((other) => other.ready()));
  return {
    ...api,
    async stop() {
      for (const other of runnerProcesses) other.signal("SIGTERM");
      await Promise.all(runnerProcesses.map((other) => other.ended.then(() => other.clean())));
      await api.stop();
    },
  };
}
