/** Reads of settings per second over HTTP, compared with a bare Fastify handler that reads the same rows with pg. */
import Fastify from "fastify";
import pg from "pg";
import { fire } from "../harness/autocannon.js";
import { inTurns, type Row } from "../harness/figure.js";
import { startBenchService } from "../harness/service.js";

export const title = "GET settings over HTTP, 50 callers";

const CALLERS = 50;
const WARM_UP_SECONDS = 1;
const SECONDS = 2;
const FLOOR = "bare Fastify handler reading the same rows with pg";
const SETTING = { welcome: "hello", colors: ["red", "green", "blue"], limits: { users: 100, files: 2_000 } };

/** The minimum for a Node service with this response: no credential, no tiers, one prepared statement. */
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

export async function run(rounds: number): Promise<Row[]> {
  const service = await startBenchService();
  const { first, call, databaseUrl } = service;
  const path = `/v1/apps/${first.appId}/settings`;
  await call("POST", path, { feature: SETTING });
  const bare = await startBare(databaseUrl, first.appId);
  const rate = (url: string, seconds = SECONDS) => fire({ url, token: first.tokens.editor, callers: CALLERS, seconds });

  async function beside(name: string): Promise<Row> {
    const { own, floor } = await inTurns(rounds, {
      floor: () => rate(bare.url),
      own: () => rate(service.url + path),
    });
    return { name, value: own, unit: "/s", floor: { name: FLOOR, value: floor } };
  }

  try {
    await rate(service.url + path, WARM_UP_SECONDS);
    await rate(bare.url, WARM_UP_SECONDS);
    const plain = await beside("GET settings, one public key");
    await call("POST", path, { _secret: "sealed", _other: SETTING });
    return [plain, await beside("GET settings, two sealed keys more")];
  } finally {
    await bare.stop();
    await service.stop();
  }
}
