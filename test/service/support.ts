/** Sends the requests of the lifecycle tests to a service process through its REST API: actions, runs, and logs. */
import { Client } from "pg";
import type { ServiceProcess } from "../harness/process.js";
import { until } from "../harness/until.js";

export interface Answer {
  http: number;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  body: any;
}

/** Code of an action that ends after `payload.wait` milliseconds. */
export const WAITING_CODE = `async function execute({ payload }) {
  await new Promise((resolve) => setTimeout(resolve, payload.wait));
  return { waited: payload.wait };
}`;
export const ENDLESS_RUN_CODE = "async function execute() { while (true) {} }";
export const QUICK = "async function execute() { return { quick: true }; }";

export async function get(url: string): Promise<Answer> {
  const response = await fetch(url);
  return { http: response.status, body: await response.json() };
}

export function createEditor(url: string, token: string) {
  async function call(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${url}/v3/apps/1/actions${path}`, {
      method,
      headers: { "auth-token": token, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { http: response.status, body: await response.json() };
  }

  return {
    call,
    create: async (name: string, code: string): Promise<number> =>
      (await call("POST", "", { name, code, active: true, triggers: [{ trigger: "manual" }] })).body.action.id,
    // biome-ignore lint/suspicious/noExplicitAny: log entries have no static type here
    logs: async (options: object = {}): Promise<any[]> => (await call("POST", "/logs", options)).body.logs,
  };
}

export type Editor = ReturnType<typeof createEditor>;

/** Waits until a process with an embedded database is ready. Returns functions that send requests as its editor. */
export async function editorOf(service: ServiceProcess): Promise<Editor & { url: string }> {
  const url = await service.ready();
  return { ...createEditor(url, service.credentials().tokens.editor), url };
}

/** Resolves when at least `count` runs of a process with an embedded database are in this state. */
export async function waitForRuns(service: ServiceProcess, count = 1, state = "running"): Promise<void> {
  const client = new Client({ connectionString: service.databaseUrl() });
  await client.connect();
  const running = async () => (await client.query("SELECT FROM run WHERE state = $1", [state])).rowCount! >= count;
  await until(running).finally(() => client.end());
}
