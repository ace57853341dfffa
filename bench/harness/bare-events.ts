/**
 * Baseline of the figure `log-events`, run as a separate process: a bare Fastify server that inserts each log event by pg. Sends its URL to
 * the parent.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import Fastify from "fastify";
import pg from "pg";

const INSERT_LOG_EVENT = `
  INSERT INTO log_event (app_id, type, data, user_id, data_source_id, data_source_entry_id, request_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id, created_at`;

/** First message from the parent process. */
export interface BaselineOptions {
  databaseUrl: string;
  appId: number;
}

interface LogEventBody {
  type: string;
  data: object;
  dataSourceId: number;
  dataSourceEntryId: number;
}

const [{ databaseUrl, appId }] = (await once(process, "message")) as [BaselineOptions];
const databasePool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
const app = Fastify();
app.post<{ Body: LogEventBody }>("/logs", async ({ body }, reply) => {
  const { type, data, dataSourceId, dataSourceEntryId } = body;
  const values = [appId, type, JSON.stringify(data), null, dataSourceId, dataSourceEntryId, randomUUID()];
  const { rows } = await databasePool.query({ name: "bare", text: INSERT_LOG_EVENT, values });
  return reply.code(201).send({ log: { ...body, ...rows[0] } });
});
process.once("disconnect", () => process.exit(0));
process.send!(`${await app.listen({ port: 0, host: "127.0.0.1" })}/logs`);
