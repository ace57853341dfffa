/** Provides one PostgreSQL server for a whole run of mocha. Databases of tests are clones of a migrated template. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { until } from "./until.js";

/** Tests need no durable data, so the server never waits for the disk. It has few buffers, because DROP DATABASE searches all of them. */
const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  max_connections: "600",
  shared_buffers: "32MB",
};
/** Time in milliseconds after which a connection that is still open counts as a leak. */
const CLOSING_LIMIT_MS = 10_000;
const TEMPLATE = "migrated_template";
/** URL of a server that mocha's first process, or a test of another PostgreSQL version, manages. Undefined: this process starts one. */
const GIVEN_SERVER_URL = process.env["TEST_POSTGRES_URL"];
/** Name of this process in the names of databases, because several processes share one server. */
const PROCESS_NAME = process.env["MOCHA_WORKER_ID"] ?? "first";
const DUPLICATE_DATABASE = "42P04";
/** First `server_version_num` with CREATE DATABASE ... STRATEGY. Its default, `wal_log`, takes three times as long as `file_copy`. */
const STRATEGY_SINCE_VERSION = 150_000;

export interface FreshDatabase {
  url: string;
  /** Drops the database. Rejects afterwards if the test left a connection open for CLOSING_LIMIT_MS. */
  drop(): Promise<void>;
}

let server: Promise<Pick<EmbeddedPostgres, "url" | "stop">> | null = null;
/** Connection of this process to the database `postgres`, until the server is stopped. */
let admin: Promise<Client> | null = null;
let databases = 0;

function urlOf(base: string, database: string): string {
  const url = new URL(base);
  url.pathname = `/${database}`;
  return url.href;
}

async function openAdmin(base: string): Promise<Client> {
  const client = new Client({ connectionString: urlOf(base, "postgres") });
  client.on("error", () => {
    admin = null;
  });
  await client.connect();
  return client;
}

function connectAsAdmin(base: string): Promise<Client> {
  admin ??= openAdmin(base).catch((error) => {
    admin = null;
    throw error;
  });
  return admin;
}

async function startOwnServer(): Promise<Pick<EmbeddedPostgres, "url" | "stop">> {
  const folder = await mkdtemp(join(tmpdir(), "svc-test-"));
  const log = pino({ level: "silent" });
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "data"), log, settings: SETTINGS });
  // A password that is sent as text, with a single hash iteration, saves 3 ms of processor time for each of the ten connections of a service.
  const client = await connectAsAdmin(postgres.url);
  const { rows } = await client.query<{ file: string }>("SELECT current_setting('hba_file') AS file");
  await client.query("SET scram_iterations = 1");
  await client.query(`ALTER ROLE CURRENT_USER PASSWORD '${new URL(postgres.url).password}'`);
  await client.query(`COPY (SELECT 'host all all 127.0.0.1/32 password') TO '${rows[0]!.file}'`);
  await client.query("SELECT pg_reload_conf()");
  return { url: postgres.url, stop: () => postgres.stop().finally(() => rm(folder, { recursive: true, force: true })) };
}

/** Creates and migrates the template, unless the server has one. */
async function ensureTemplate(base: string): Promise<void> {
  try {
    await (await connectAsAdmin(base)).query(`CREATE DATABASE ${TEMPLATE}`);
  } catch (error) {
    if ((error as { code?: string }).code === DUPLICATE_DATABASE) return;
    throw error;
  }
  // A static import would load TypeORM also for tests without a database.
  const { migrateDatabase } = await import("../../src/data/database.js");
  await migrateDatabase(urlOf(base, TEMPLATE));
}

async function start(): Promise<Pick<EmbeddedPostgres, "url" | "stop">> {
  const postgres = GIVEN_SERVER_URL ? { url: GIVEN_SERVER_URL, stop: async () => undefined } : await startOwnServer();
  await ensureTemplate(postgres.url);
  return postgres;
}

async function openConnections(client: Client, database: string): Promise<string[]> {
  const found = await client.query<{ who: string }>(
    `SELECT concat(application_name, ': ', left(query, 80)) AS who FROM pg_stat_activity
      WHERE datname = $1 AND backend_type = 'client backend'`,
    [database],
  );
  return found.rows.map((row) => row.who);
}

async function drop(base: string, database: string): Promise<void> {
  const client = await connectAsAdmin(base);
  let open: string[] = [];
  // Waits, because PostgreSQL ends the session of a closed socket with a delay.
  const closed = await until(async () => {
    open = await openConnections(client, database);
    return open.length === 0;
  }, CLOSING_LIMIT_MS).catch(() => false);
  await client.query(`DROP DATABASE ${database} WITH (FORCE)`);
  if (!closed) throw new Error(`${open.length} connections to a test's database were left open: ${open.join("; ")}`);
}

async function clone(base: string, template: string, database: string): Promise<string> {
  const client = await connectAsAdmin(base);
  const { rows } = await client.query<{ version: number }>(
    "SELECT current_setting('server_version_num')::int AS version",
  );
  const strategy = rows[0]!.version >= STRATEGY_SINCE_VERSION ? "STRATEGY file_copy" : "";
  await client.query(`CREATE DATABASE ${database} TEMPLATE ${template} ${strategy}`);
  return urlOf(base, database);
}

export async function createDatabaseFrom(template: string): Promise<FreshDatabase> {
  const base = await startTestServer();
  databases += 1;
  const database = `test_${PROCESS_NAME}_${databases}`;
  return { url: await clone(base, template, database), drop: () => drop(base, database) };
}

/** Creates a migrated template database, which `fill` fills. `fill` must close its connections. Returns the name of the template. */
export async function createTemplate(name: string, fill: (databaseUrl: string) => Promise<void>): Promise<string> {
  const database = `${name}_${process.pid}`;
  await fill(await clone(await startTestServer(), TEMPLATE, database));
  return database;
}

/** Creates a migrated database. The first call starts the server. */
export function freshDatabase(): Promise<FreshDatabase> {
  return createDatabaseFrom(TEMPLATE);
}

export function emptyDatabase(): Promise<FreshDatabase> {
  return createDatabaseFrom("template0");
}

/** Starts the server on the first call, unless TEST_POSTGRES_URL names a server. Resolves to the server's URL. */
export async function startTestServer(): Promise<string> {
  server ??= start();
  return (await server).url;
}

/** Closes the connection to the server, and stops the server if this process has started it. */
export async function stopTestServer(): Promise<void> {
  const connected = admin;
  admin = null;
  await (await connected)?.end();
  const running = server;
  server = null;
  await (await running)?.stop();
}
