/** Creates the clients, pools and pool options for all connections to PostgreSQL, and recognizes errors of lost connections. */
import type { Socket } from "node:net";
import pg from "pg";

/** Converts PostgreSQL's bigint to number, because IDs stay below 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const CONNECT_LIMIT_MS = 5_000;
/** Maximum time of one SQL statement. Statements of migrations have no limit. */
const STATEMENT_LIMIT_MS = 30_000;
/** Time after which PostgreSQL closes the session of an idle transaction, so that the transaction's locks are released. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000;
/** Time without traffic after which a connection with a running statement counts as lost. It must exceed STATEMENT_LIMIT_MS. */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 10_000;
const SILENCE_MESSAGE = `the database stopped responding while a statement was running (limit: ${SILENCE_LIMIT_MS / 1_000} s)`;
/** Time without traffic after which the operating system checks a connection with TCP keep-alive. */
const KEEP_ALIVE_AFTER_MS = 30_000;

/** Keeps idle connections of a pool open, because opening a connection costs 20 ms of processor time. */
const KEEP_OPEN_OPTIONS = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS, idleTimeoutMillis: 0 };

const LIMITED_POOL_SETTINGS = {
  ...KEEP_OPEN_OPTIONS,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  statement_timeout: STATEMENT_LIMIT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_LIMIT_MS,
};

let lostConnectionCount = 0;

const DISK_FULL_SQLSTATE = "53100";
/** Time (`performance.now()`) of PostgreSQL's last error for a full disk; null before the first one and after `clearDiskFullState`. */
let diskFullAt: number | null = null;

/** Returns the milliseconds since PostgreSQL's last error for a full disk; null before the first one and after `clearDiskFullState`. */
export const getMsSinceDiskFull = (): number | null => (diskFullAt === null ? null : performance.now() - diskFullAt);

/** True from PostgreSQL's first error for a full disk until `clearDiskFullState` is called. */
export const isDiskFull = (): boolean => diskFullAt !== null;

export function clearDiskFullState(): void {
  diskFullAt = null;
}

/**
 * SQLSTATE code of a write to a read-only database. The server may have become a standby, or a provider stops writes because of a full
 * disk.
 */
export const READ_ONLY_SQLSTATE = "25006";
/**
 * Time for which the database counts as read-only after a rejected write. Each process writes its lease more often, so the state lasts
 * while the database rejects writes.
 */
const READ_ONLY_STATE_MS = 5_000;
/** Time (`performance.now()`) of PostgreSQL's last error for a write to a read-only database. */
let readOnlyAt = Number.NEGATIVE_INFINITY;

/** True if PostgreSQL rejected a write of this process less than READ_ONLY_STATE_MS ago, because the database is read-only. */
export const isDatabaseReadOnly = (): boolean => performance.now() - readOnlyAt < READ_ONLY_STATE_MS;

/** Returns the number of connections that failed in this process since its start. */
export const countLostConnections = (): number => lostConnectionCount;

/** pg client with an error listener. Without one, the loss of an idle connection would end the process. */
class ClientWithErrorListener extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("error", () => undefined);
    this.connection.on("errorMessage", ({ code }: { code?: string }) => {
      if (code === DISK_FULL_SQLSTATE) diskFullAt = performance.now();
    });
    this.once("connect", () => this.once("error", () => (lostConnectionCount += 1)));
  }
}

/**
 * Client whose connection fails if a statement is running and no byte is received or sent for SILENCE_LIMIT_MS. Closes the connection after
 * a rejected write to a read-only database, because the next connection may reach the new primary server.
 */
class TimeLimitedClient extends ClientWithErrorListener {
  private isStatementRunning = false;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("drain", () => {
      this.isStatementRunning = false;
    });
    this.connection.on("errorMessage", ({ code }: { code?: string }) => {
      if (code !== READ_ONLY_SQLSTATE) return;
      readOnlyAt = performance.now();
      (this.connection.stream as Socket).destroy();
    });
    this.once("connect", () => {
      const socket = this.connection.stream as Socket;
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

/** Options with time limits for TypeORM's pool and for the pools of this file. */
export const TIME_LIMITED_POOL_OPTIONS = { ...LIMITED_POOL_SETTINGS, Client: TimeLimitedClient };
/**
 * Time after which the client stops waiting for a statement. PostgreSQL's own limit must be shorter, so that PostgreSQL cancels the
 * statement first.
 */
const POOLER_READ_LIMIT_MS = STATEMENT_LIMIT_MS + 5_000;

/**
 * Options for connections through a pooler such as PgBouncer. A pooler rejects `statement_timeout` at the start of a session, so the
 * operator must set this limit for the database role.
 */
export const POOLER_CONNECTION_OPTIONS = {
  ...KEEP_OPEN_OPTIONS,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  query_timeout: POOLER_READ_LIMIT_MS,
  Client: TimeLimitedClient,
};
export const MIGRATION_POOL_OPTIONS = {
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  keepAlive: true,
  Client: ClientWithErrorListener,
};

/**
 * Returns a client that is not connected yet. Its statements have no time limit, so the caller must check that the server still responds.
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
 * Creates a pool whose connections may receive nothing for a long time, for example after LISTEN.
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
  const options = { ...LIMITED_POOL_SETTINGS, Client: ClientWithErrorListener, application_name: name, onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  // The clients handle lost connections. Without an `error` listener, the pool would throw the same error.
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/**
 * Makes all apps share one plan of a statement. Avoids sequential scans, because PostgreSQL could choose a plan that suits only small apps.
 */
const SET_GENERIC_PLANS_SQL = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/**
 * Creates a pool for prepared statements with generic plans. On a table with many partitions, planning a statement again for each execution
 * can take longer than the execution.
 * @param limitMs maximum milliseconds to open a connection and to execute a statement; the usual limits if omitted
 */
export function createPreparedStatementPool(url: string, size: number, limitMs?: number): pg.Pool {
  const onConnect = async (client: pg.ClientBase) => {
    await client.query(SET_GENERIC_PLANS_SQL);
  };
  const limits = limitMs && { connectionTimeoutMillis: limitMs, statement_timeout: limitMs, query_timeout: limitMs };
  const options = { ...TIME_LIMITED_POOL_OPTIONS, ...limits, application_name: "svc-app-actions", onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/** Prepared statement as a pg.Query. If pg gets an options object instead, it copies the object at each call. */
class NamedQuery extends pg.Query {
  constructor(
    readonly name: string,
    text: string,
    values: unknown[],
  ) {
    super(text, values);
  }
}

/** Executes a prepared statement and returns its rows. A name must always have the same text, because each connection prepares it once. */
export async function queryPreparedRowsInPool<T>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<T[]> {
  // `pool.query` also accepts a pg.Query, but pg's type declarations do not allow this argument.
  const result = pool.query(new NamedQuery(name, text, values)) as unknown as Promise<pg.QueryResult>;
  return (await result).rows as T[];
}

/** True if `url` leads to a connection pooler that rejects settings at the start of a session, as PgBouncer does. */
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
 * SQLSTATE codes that mean that the database is unavailable: the server stops, starts, lacks resources or is read-only, or the connection
 * was lost. Includes the codes of statements that took too long.
 */
const UNAVAILABLE_SQLSTATES = /^(08|53|57P0\d|57014|25P03|25006)/;
const UNAVAILABLE_ERROR_CODES =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** Messages of errors that pg itself creates. These errors have no code. */
const UNAVAILABLE_MESSAGES =
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after)/;

/** True if the client stopped waiting for a statement (`query_timeout`). PostgreSQL may still execute the statement. */
export const isClientStatementTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message === "Query read timeout";

/** True if the database was unavailable or a time limit ended the statement; false for errors of the statement itself. */
export function isConnectionFault(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return UNAVAILABLE_SQLSTATES.test(error.code ?? "");
  if (!(error instanceof Error)) return false;
  return (
    UNAVAILABLE_ERROR_CODES.test((error as NodeJS.ErrnoException).code ?? "") ||
    UNAVAILABLE_MESSAGES.test(error.message) ||
    error.message === SILENCE_MESSAGE
  );
}
