/** Measures reads of settings per second over HTTP, compared with a bare Fastify handler that reads the same rows by pg. */
import Fastify from "fastify";
import pg from "pg";
import { measureRequestRate } from "../harness/autocannon.js";
import { type FigureRow, measureAlternating } from "../harness/figure.js";
import { startBenchService } from "../harness/service.js";

export const title = "GET settings over HTTP, 50 callers";

const CALLER_COUNT = 50;
const WARM_UP_SECONDS = 1;
const MEASURED_SECONDS = 2;
const BASELINE_NAME = "Fastify alone that reads the same rows by pg";
const PUBLIC_SETTING = { welcome: "hello", colors: ["red", "green", "blue"], limits: { users: 100, files: 2_000 } };

/** Starts a bare Fastify server that returns the settings by one prepared statement. It checks no permissions. */
async function startBaseline(connectionString: string, appId: number): Promise<{ url: string; stop(): Promise<void> }> {
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

export async function run(rounds: number): Promise<FigureRow[]> {
  const service = await startBenchService();
  const { first, call, databaseUrl } = service;
  const path = `/v1/apps/${first.appId}/settings`;
  await call("POST", path, { feature: PUBLIC_SETTING });
  const baseline = await startBaseline(databaseUrl, first.appId);
  const rate = (url: string, seconds = MEASURED_SECONDS) =>
    measureRequestRate({ url, token: first.tokens.editor, callers: CALLER_COUNT, seconds });

  async function compareRates(name: string): Promise<FigureRow> {
    const { serviceRate, floor } = await measureAlternating(rounds, {
      floor: () => rate(baseline.url),
      serviceRate: () => rate(service.url + path),
    });
    return { name, value: serviceRate, unit: "/s", floor: { name: BASELINE_NAME, value: floor } };
  }

  try {
    await rate(service.url + path, WARM_UP_SECONDS);
    await rate(baseline.url, WARM_UP_SECONDS);
    const plain = await compareRates("GET settings, one public key");
    await call("POST", path, { _secret: "sealed", _other: PUBLIC_SETTING });
    return [plain, await compareRates("GET settings, one public key and two encrypted ones")];
  } finally {
    await baseline.stop();
    await service.stop();
  }
}
