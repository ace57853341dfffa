/** The measured service: a separate process with a durable embedded database, without rate limits. */
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { FirstCredentials } from "../../src/operations/access/bootstrap.js";
import { startProcess } from "../../test/harness/process.js";

/** The service closes connections that are idle for five seconds; a call at that moment would fail. */
const IDLE_MS = 3_000;

export interface BenchService {
  url: string;
  databaseUrl: string;
  /** Process id of the service, for memory measurements. */
  pid: number;
  first: FirstCredentials;
  /**
   * One REST call over a persistent connection, as the editor unless `token` is set; `body` is sent as JSON.
   * @throws Error for any response but 2xx
   */
  // biome-ignore lint/suspicious/noExplicitAny: an answer has whatever shape its caller expects
  call(method: string, path: string, body?: unknown, token?: string): Promise<any>;
  /** Creates an active draft with a manual trigger; returns its id. */
  createAction(name: string, code: string): Promise<number>;
  stop(): Promise<void>;
}

/** Starts it and resolves when it is ready; `environment` has variables of the service. */
export async function startBenchService(environment: Record<string, string> = {}): Promise<BenchService> {
  const service = startProcess({ LOG_LEVEL: "info", ...environment });
  const url = await service.ready();
  const first = service.credentials();
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const headersFor = (token: string) => ({ "auth-token": token, "content-type": "application/json" });

  // Node's http client: fetch takes more time than some of the measured calls.
  const call: BenchService["call"] = (method, path, body, token = first.tokens.editor) =>
    new Promise((resolve, reject) => {
      const outgoing = request(url + path, { method, agent, headers: headersFor(token) }, async (response) => {
        const answer = await text(response);
        if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(answer));
        else reject(new Error(`${method} ${path} answered ${response.statusCode}: ${answer}`));
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

/** One process with the API and the database, and `runners` processes that execute runs; resolves when all are ready. */
export async function startFleet(runners: number, environment: Record<string, string> = {}): Promise<BenchService> {
  const shared = { SETTINGS_KEY: randomBytes(32).toString("base64"), LOG_LEVEL: "info", ...environment };
  const api = await startBenchService({ ...shared, ROLES: "api,scheduler" });
  const performing = { ...shared, ROLES: "runner", DATABASE_URL: api.databaseUrl, PUBLIC_URL: api.url };
  const others = Array.from({ length: runners }, () => startProcess(performing));
  await Promise.all(others.map((other) => other.ready()));
  return {
    ...api,
    async stop() {
      for (const other of others) other.signal("SIGTERM");
      await Promise.all(others.map((other) => other.ended.then(() => other.clean())));
      await api.stop();
    },
  };
}
