/** How many times a second settings are read over HTTP, beside a bare Fastify handler that reads the same rows with pg. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Fastify from "fastify";
import pg from "pg";
import type { Row } from "./figure.js";
import { startBenchService } from "./service.js";

export const title = "GET settings over HTTP, 50 callers";

const CALLERS = 50;
const WARM_UP_SECONDS = 2;
const SECONDS = 4;
const ROUNDS = 3;
const FLOOR = "bare Fastify handler reading the same rows with pg";
const AUTOCANNON = fileURLToPath(new URL("../../node_modules/autocannon/autocannon.js", import.meta.url));
const SETTING = { welcome: "hello", colors: ["red", "green", "blue"], limits: { users: 100, files: 2_000 } };

/** Requests a second, fired by a process of its own. @throws Error when any answer was not 2xx */
async function rate(url: string, token: string, seconds: number): Promise<number> {
  const options = ["-c", String(CALLERS), "-d", String(seconds), "-j", "-n", "-H", `auth-token=${token}`, url];
  const { stdout } = await promisify(execFile)(process.execPath, [AUTOCANNON, ...options], { maxBuffer: 2 ** 24 });
  const { requests, non2xx, errors } = JSON.parse(stdout);
  if (non2xx + errors > 0) throw new Error(`${url}: ${non2xx} answers were not 2xx, ${errors} calls failed`);
  return requests.average;
}

/** The least that a Node service can do for this answer: no credential, no tiers, one prepared statement. */
async function startBare(connectionString: string, appId: number): Promise<{ url: string; stop(): Promise<void> }> {
  const pool = new pg.Pool({ connectionString, max: 10 });
  const text = "SELECT key, value FROM setting WHERE app_id = $1";
  const app = Fastify();
  app.get("/settings", async () => {
    const { rows } = await pool.query({ name: "bare", text, values: [appId] });
    return Object.fromEntries(rows.map(({ key, value }) => [key, JSON.parse(value)]));
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url: `${url}/settings`,
    async stop() {
      await app.close();
      await pool.end();
    },
  };
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

export async function run(): Promise<Row[]> {
  const service = await startBenchService();
  const { first, call, databaseUrl } = service;
  const path = `/v1/apps/${first.appId}/settings`;
  await call("POST", path, { feature: SETTING });
  const bare = await startBare(databaseUrl, first.appId);
  const measure = (url: string, seconds: number) => rate(url, first.tokens.editor, seconds);

  /** In turns, so that whatever else the machine does weighs on both. */
  async function beside(name: string): Promise<Row> {
    const own: number[] = [];
    const floor: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      own.push(await measure(service.url + path, SECONDS));
      floor.push(await measure(bare.url, SECONDS));
    }
    return { name, value: median(own), unit: "/s", floor: { name: FLOOR, value: median(floor) } };
  }

  try {
    await measure(service.url + path, WARM_UP_SECONDS);
    await measure(bare.url, WARM_UP_SECONDS);
    const plain = await beside("GET settings, one public key");
    await call("POST", path, { _secret: "sealed", _other: SETTING });
    return [plain, await beside("GET settings, two sealed keys more")];
  } finally {
    await bare.stop();
    await service.stop();
  }
}
