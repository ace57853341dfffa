/** Provides one PostgreSQL server for a whole run of mocha, and databases that are clones of one migrated template. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { until } from "./until.js";

/** Settings of the server. It may lose data, so it never waits for the disk. */
const SETTINGS = { fsync: "off", full_page_writes: "off", synchronous_commit: "off", max_connections: "600" };
/** Time limit in which a connection must close, in milliseconds. A connection that closes slowly on a busy machine is not a leak. */
const CLOSING_LIMIT_MS = 10_000;
const TEMPLATE = "migrated_template";
/** URL of a server that already runs. Another process stops it: mocha's first one, or a test with another version of PostgreSQL. */
const GIVEN_SERVER_URL = process.env["TEST_POSTGRES_URL"];
/** Number of this process in the names of databases, because several processes share one server. */
const PROCESS_NUMBER = process.env["MOCHA_WORKER_ID"] ?? "0";
const DUPLICATE_DATABASE = "42P04";
/**
 * First version of PostgreSQL with the option STRATEGY of CREATE DATABASE. Without it, PostgreSQL writes each block of the template to its
 * log, which takes three times as long.
 */
const STRATEGY_SINCE_VERSION = 150_000;

export interface FreshDatabase {
  url: string;
  /** Drops the database. Fails if a connection to it is still open, because a test then has not stopped something. */
  drop(): Promise<void>;
}

let server: Promise<Pick<EmbeddedPostgres, "url" | "stop">> | null = null;
let databases = 0;

function urlOf(base: string, database: string): string {
  const url = new URL(base);
  url.pathname = `/${database}`;
  return url.href;
}

async function connectAsAdmin<T>(base: string, action: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: urlOf(base, "postgres") });
  await client.connect();
  return action(client).finally(() => client.end());
}

async function startOwnServer(): Promise<Pick<EmbeddedPostgres, "url" | "stop">> {
  const folder = await mkdtemp(join(tmpdir(), "svc-test-"));
  const log = pino({ level: "silent" });
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "data"), log, settings: SETTINGS });
  return { url: postgres.url, stop: () => postgres.stop().finally(() => rm(folder, { recursive: true, force: true })) };
}

/** Adds the template to a server that has none yet. */
async function ensureTemplate(base: string): Promise<void> {
  try {
    await connectAsAdmin(base, (admin) => admin.query(`CREATE DATABASE ${TEMPLATE}`));
  } catch (error) {
    if ((error as { code?: string }).code === DUPLICATE_DATABASE) return;
    throw error;
  }
  // Loads TypeORM only when a test needs a database, so that other tests need not wait for it.
  const { migrateDatabase } = await import("../../src/data/database.js");
  await migrateDatabase(urlOf(base, TEMPLATE));
}

async function start(): Promise<Pick<EmbeddedPostgres, "url" | "stop">> {
  const postgres = GIVEN_SERVER_URL ? { url: GIVEN_SERVER_URL, stop: async () => undefined } : await startOwnServer();
  await ensureTemplate(postgres.url);
  return postgres;
}

async function openConnections(admin: Client, database: string): Promise<string[]> {
  const found = await admin.query<{ who: string }>(
    // Selects the open connections of clients, without PostgreSQL's own background processes.
    `SELECT concat(application_name, ': ', left(query, 80)) AS who FROM pg_stat_activity
      WHERE datname = $1 AND backend_type = 'client backend'`,
    [database],
  );
  return found.rows.map((row) => row.who);
}

async function drop(base: string, database: string): Promise<void> {
  await connectAsAdmin(base, async (admin) => {
    let open: string[] = [];
    // PostgreSQL notices a closed socket only after a moment.
    const closed = await until(async () => {
      open = await openConnections(admin, database);
      return open.length === 0;
    }, CLOSING_LIMIT_MS).catch(() => false);
    await admin.query(`DROP DATABASE ${database} WITH (FORCE)`);
    if (!closed) throw new Error(`${open.length} connections to a test's database were left open: ${open.join("; ")}`);
  });
}

async function createDatabase(template: string): Promise<FreshDatabase> {
  const base = await startTestServer();
  databases += 1;
  const database = `test_${PROCESS_NUMBER}_${databases}`;
  await connectAsAdmin(base, async (admin) => {
    const { rows } = await admin.query<{ version: number }>(
      "SELECT current_setting('server_version_num')::int AS version",
    );
    const strategy = rows[0]!.version >= STRATEGY_SINCE_VERSION ? "STRATEGY file_copy" : "";
    await admin.query(`CREATE DATABASE ${database} TEMPLATE ${template} ${strategy}`);
  });
  return { url: urlOf(base, database), drop: () => drop(base, database) };
}

/** Creates a separate migrated database, in a few tens of milliseconds. The first call starts the server. */
export function freshDatabase(): Promise<FreshDatabase> {
  return createDatabase(TEMPLATE);
}

/** Creates an empty database, for tests of the migrations. It is a clone of a template that no server process uses. */
export function emptyDatabase(): Promise<FreshDatabase> {
  return createDatabase("template0");
}

/** Starts the server, or uses the one in TEST_POSTGRES_URL, before a test needs it. Resolves to its URL. */
export async function startTestServer(): Promise<string> {
  server ??= start();
  return (await server).url;
}

/** Stops the server if this process has started it. */
export async function stopTestServer(): Promise<void> {
  const running = server;
  server = null;
  await (await running)?.stop();
}
