/**
 * Creates all connections to PostgreSQL. Each connection has an error listener from the start, and fails if the server stops responding.
 * Contains no tables and no statements.
 */
import type { Socket } from "node:net";
import pg from "pg";

/** Converts PostgreSQL's bigint to number, because IDs stay below 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** Maximum time to open a connection, or to get one from the pool. */
const CONNECT_LIMIT_MS = 5_000;
/** Maximum time of one SQL statement of a request, a run or periodic work. */
const STATEMENT_LIMIT_MS = 30_000;
/** Time after which PostgreSQL ends a transaction without a statement, so that its locks are released. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000;
/**
 * Time without a byte in either direction after which a connection with a running statement counts as lost. It is longer than the longest
 * statement.
 */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 10_000;
const SILENCE_MESSAGE = `the database stopped responding while a statement was running (limit: ${SILENCE_LIMIT_MS / 1_000} s)`;
/** Time without traffic after which the operating system checks a connection with TCP keep-alive. */
const KEEP_ALIVE_AFTER_MS = 30_000;

/**
 * Pool options that keep idle connections open. Opening a connection costs 20 ms of processor time, and a pool that
 * closes idle connections would open new ones just when the load is high.
 */
const KEEP_OPEN = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS, idleTimeoutMillis: 0 };

const BOUNDS = {
  ...KEEP_OPEN,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  statement_timeout: STATEMENT_LIMIT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_LIMIT_MS,
};

let lost = 0;

const DISK_FULL = "53100";
/** Monotonic time at which PostgreSQL last rejected a write because its disk was full; null while the disk has free space. */
let diskFullAt: number | null = null;

/** Returns the milliseconds since PostgreSQL last rejected a write because its disk was full; null while the disk has free space. */
export const getMsSinceDiskFull = (): number | null => (diskFullAt === null ? null : performance.now() - diskFullAt);

/** True while PostgreSQL rejects writes of this process because its disk is full. */
export const isDiskFull = (): boolean => diskFullAt !== null;

export function markDiskFree(): void {
  diskFullAt = null;
}

/** Returns the number of connections that this process has lost since its start. Connections that it closed itself do not count. */
export const countLostConnections = (): number => lost;

/** Client with an error listener from the start. Without it, a connection that is lost between two statements would end the process. */
class ClientWithErrorListener extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("error", () => undefined);
    this.connection.on("errorMessage", ({ code }: { code?: string }) => {
      if (code === DISK_FULL) diskFullAt = performance.now();
    });
    this.once("connect", () => this.once("error", () => (lost += 1)));
  }
}

/**
 * Client that also fails if a statement is running and no byte is received or sent for SILENCE_LIMIT_MS. An idle
 * connection may receive nothing for longer.
 */
class BoundedClient extends ClientWithErrorListener {
  private isStatementRunning = false;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("drain", () => {
      this.isStatementRunning = false;
    });
    this.once("connect", () => {
      const socket = this.connection.stream as Socket;
      // The timeout starts again with every byte that is received or sent.
      socket.setTimeout(SILENCE_LIMIT_MS, () => {
        if (this.isStatementRunning) socket.destroy(new Error(SILENCE_MESSAGE));
      });
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: one implementation for all overloads of the base class
  override query(...args: any[]): any {
    this.isStatementRunning = true;
    return super.query(...(args as Parameters<pg.Client["query"]>));
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  override end(...args: any[]): any {
    this.isStatementRunning = true;
    return super.end(...(args as []));
  }
}

/** Options for pools that a library creates, so that the pools use BoundedClient and its time limits. */
export const TIME_LIMITED_POOL_OPTIONS = { ...BOUNDS, Client: BoundedClient };
/**
 * Time after which the client stops waiting for a statement through a pooler. It is longer than the limit of the database role, so that
 * PostgreSQL cancels the statement first: after the client's limit, PostgreSQL would continue to execute the statement.
 */
const POOLER_READ_LIMIT_MS = STATEMENT_LIMIT_MS + 5_000;

/**
 * Options for connections through a pooler, which rejects settings at the start of a session. The time limits are therefore set for the
 * database role, and the client stops waiting by itself.
 */
export const POOLER_CONNECTION_OPTIONS = {
  ...KEEP_OPEN,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  query_timeout: POOLER_READ_LIMIT_MS,
  Client: BoundedClient,
};
/** Options for pools whose statements have no time limit, for migrations. */
export const MIGRATION_POOL_OPTIONS = {
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  keepAlive: true,
  Client: ClientWithErrorListener,
};

/**
 * Creates a client that is not connected yet. Its connection may receive nothing for long, so the caller must check that the connection
 * works.
 */
export function createClient(url: string, name = "svc-app-actions"): pg.Client {
  const { connectionTimeoutMillis, keepAlive } = MIGRATION_POOL_OPTIONS;
  return new ClientWithErrorListener({
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis,
    keepAlive,
  });
}

/**
 * Creates a pool whose connections may receive nothing for long, for example for LISTEN.
 * @param size maximum number of connections
 * @param name application name that PostgreSQL shows
 * @param onConnect runs on each new connection before its first use
 */
export function createPool(
  url: string,
  size: number,
  name: string,
  onConnect: (client: pg.ClientBase) => Promise<void> = async () => undefined,
): pg.Pool {
  const options = { ...BOUNDS, Client: ClientWithErrorListener, application_name: name, onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  // Each client handles the loss of its connection. Without a listener of its own, the pool would throw an error.
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/**
 * Makes PostgreSQL use generic plans, which assume that all apps have the same size. If one app has nearly all rows, such a plan would
 * prefer a sequential scan even for small apps, so sequential scans are off; each of these statements has an index. JIT is off because it
 * would compile such plans.
 */
const FOR_ANY_VALUES = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/**
 * Creates a pool for prepared statements with generic plans, which select table partitions at execution. On a large
 * table of runs, planning each execution would take longer than the statement itself.
 * @param limitMs maximum time in milliseconds to open a connection, and of each statement, also if the server stops
 *   responding; pg then closes the connection, and the next statement opens another one. Without `limitMs`, the usual
 *   limits apply
 */
export function createPreparedStatementPool(url: string, size: number, limitMs?: number): pg.Pool {
  const onConnect = async (client: pg.ClientBase) => {
    await client.query(FOR_ANY_VALUES);
  };
  const limits = limitMs && { connectionTimeoutMillis: limitMs, statement_timeout: limitMs, query_timeout: limitMs };
  const options = { ...TIME_LIMITED_POOL_OPTIONS, ...limits, application_name: "svc-app-actions", onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/**
 * Query that passes name and text directly to pg. For a query in an options object, pg copies the object, which takes as long as the rest
 * of the query.
 */
class NamedQuery extends pg.Query {
  constructor(
    readonly name: string,
    text: string,
    values: unknown[],
  ) {
    super(text, values);
  }
}

/** Executes a statement and returns its rows. Each connection of the pool prepares the statement once under `name`. */
export async function queryPreparedRowsInPool<T>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  // Pools accept query objects too, but pg's type declarations allow them only for `Client`.
  const answered = pool.query(new NamedQuery(name, text, values)) as unknown as Promise<pg.QueryResult>;
  return (await answered).rows as T[];
}

/** True if `url` leads to a connection pooler in transaction mode, which rejects settings at the start of a session. */
export async function isPoolerUrl(url: string): Promise<boolean> {
  const pool = createPool(url, 1, "svc-app-actions");
  try {
    await pool.query("SELECT 1");
    return false;
  } catch (error) {
    return error instanceof pg.DatabaseError && /unsupported startup parameter/.test(error.message);
  } finally {
    await pool.end();
  }
}

/**
 * Matches the SQLSTATE codes of a server that stops, starts, has no free connection, or has cancelled a statement because of its time
 * limit.
 */
const AWAY_STATES = /^(08|53|57P0\d|57014|25P03)/;
const AWAY_CODES = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** Matches messages of errors that pg itself creates, because these errors have no code. */
const AWAY_MESSAGES =
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after)/;

/** True if the client has stopped waiting for a statement. PostgreSQL may still execute the statement. */
export const isClientStatementTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message === "Query read timeout";

/** True if an error means that the database was unavailable, false if the statement was at fault. */
export function isConnectionFault(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return AWAY_STATES.test(error.code ?? "");
  if (!(error instanceof Error)) return false;
  return (
    AWAY_CODES.test((error as NodeJS.ErrnoException).code ?? "") ||
    AWAY_MESSAGES.test(error.message) ||
    error.message === SILENCE_MESSAGE
  );
}
