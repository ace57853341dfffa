/**
 * A separate process with the minimum for a log event: Fastify, and an insert by pg. Prints its URL once it listens. The baseline of
 * `log-events`.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import Fastify from "fastify";
import pg from "pg";

const INSERT = `
  INSERT INTO log_event (app_id, type, data, user_id, data_source_id, data_source_entry_id, request_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id, created_at`;

/** First message of the parent. */
export interface Wanted {
  databaseUrl: string;
  appId: number;
}

interface Body {
  type: string;
  data: object;
  dataSourceId: number;
  dataSourceEntryId: number;
}

const [{ databaseUrl, appId }] = (await once(process, "message")) as [Wanted];
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
const app = Fastify();
app.post<{ Body: Body }>("/logs", async ({ body }, reply) => {
  const { type, data, dataSourceId, dataSourceEntryId } = body;
  const values = [appId, type, JSON.stringify(data), null, dataSourceId, dataSourceEntryId, randomUUID()];
  const { rows } = await pool.query({ name: "bare", text: INSERT, values });
  return reply.code(201).send({ log: { ...body, ...rows[0] } });
});
process.once("disconnect", () => process.exit(0));
process.send!(`${await app.listen({ port: 0, host: "127.0.0.1" })}/logs`);
