/**
 * Baseline of the figure `language`, run as a separate process: a bare Fastify server that evaluates code with isolated-vm and inserts two
 * rows by pg, one before the code and one after it. `/context` creates a new context for each call, in one isolate whose memory all calls
 * share. `/isolate` creates a new isolate for each call. Sends its URL to the parent.
 */
import { once } from "node:events";
import Fastify from "fastify";
import ivm from "isolated-vm";
import pg from "pg";
import { PLAIN_JAVASCRIPT_KIND } from "./kinds.js";

const CREATE_TABLES = `
  CREATE SCHEMA IF NOT EXISTS bare;
  CREATE TABLE IF NOT EXISTS bare.run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload json, started_at timestamptz DEFAULT now());
  CREATE TABLE IF NOT EXISTS bare.log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id bigint, data json, created_at timestamptz DEFAULT now())`;
const INSERT_RUN = "INSERT INTO bare.run (payload) VALUES ($1) RETURNING id";
const INSERT_LOG = "INSERT INTO bare.log (run_id, data) VALUES ($1, $2)";

const [{ databaseUrl }] = (await once(process, "message")) as [{ databaseUrl: string }];
const databasePool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
await databasePool.query(CREATE_TABLES);
const sharedIsolate = new ivm.Isolate();
const source = `async ({ payload }) => { ${PLAIN_JAVASCRIPT_KIND.body} }`;

async function evaluate(isolate: ivm.Isolate, payload: string): Promise<string> {
  const context = await isolate.createContext();
  try {
    return await context.eval(`(${source})({ payload: ${payload} }).then(JSON.stringify)`, {
      promise: true,
      copy: true,
    });
  } finally {
    context.release();
  }
}

async function evaluateInNewIsolate(payload: string): Promise<string> {
  const isolate = new ivm.Isolate();
  try {
    return await evaluate(isolate, payload);
  } finally {
    isolate.dispose();
  }
}

async function recordRun(body: unknown, run: (payload: string) => Promise<string>) {
  const payload = JSON.stringify(body);
  const { rows } = await databasePool.query({ name: "run", text: INSERT_RUN, values: [payload] });
  const result = JSON.parse(await run(payload));
  await databasePool.query({
    name: "log",
    text: INSERT_LOG,
    values: [rows[0].id, JSON.stringify({ payload: body, result })],
  });
  return { runId: rows[0].id, result };
}

const app = Fastify();
app.post("/context", ({ body }) => recordRun(body, (payload) => evaluate(sharedIsolate, payload)));
app.post("/isolate", ({ body }) => recordRun(body, evaluateInNewIsolate));
process.once("disconnect", () => process.exit(0));
process.send!(await app.listen({ port: 0, host: "127.0.0.1" }));
