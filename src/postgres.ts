/**
 * Creates all connections to PostgreSQL. Each has an error listener from the start and notices a server that does not respond any more.
 * Contains no tables and no statements.
 */
import type { Socket } from "node:net";
import pg from "pg";

/** PostgreSQL's bigint values are returned as numbers, because IDs stay below 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** Time limit to get a connection, new or from the pool. */
const CONNECT_LIMIT_MS = 5_000;
/** Time limit of one statement of a request, a run or a periodic task. */
const STATEMENT_LIMIT_MS = 30_000;
/** Time after which PostgreSQL ends an idle transaction, so that its locks are released. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000;
/** Time after which a connection without a byte in either direction counts as lost. It is longer than any statement. */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 10_000;
/** TCP keep-alive: time after which the kernel probes an unused connection. */
const KEEP_ALIVE_AFTER_MS = 30_000;

/**
 * Options that keep idle connections open. Opening a connection takes 20 ms of processor time, at a moment when many
 * are needed.
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
/** Time when PostgreSQL last refused a write because of a full disk; null while it has free space. */
let diskFullAt: number | null = null;

/** Returns the milliseconds since the last refusal because of a full disk; null while there is free space. */
export const diskFullFor = (): number | null => (diskFullAt === null ? null : performance.now() - diskFullAt);

/** True while PostgreSQL refuses writes of this process because its disk is full. */
export const isDiskFull = (): boolean => diskFullAt !== null;

export function reportDiskFree(): void {
  diskFullAt = null;
}

/** Returns the number of connections that this process has lost since its start, without those that it closed itself. */
export const lostConnections = (): number => lost;

/**
 * A client with an error listener from the start. Between two statements nothing else listens, so that a lost
 * connection would end the process.
 */
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
 * A client that also fails if a running statement receives no byte for longer than the longest statement may take. Idle
 * connections may be silent.
 */
class BoundedClient extends ClientWithErrorListener {
  private isAsked = false;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("drain", () => {
      this.isAsked = false;
    });
    this.once("connect", () => {
      const socket = this.connection.stream as Socket;
      // The timeout starts again with every byte, including those of a new statement.
      socket.setTimeout(SILENCE_LIMIT_MS, () => {
        if (this.isAsked) socket.destroy(new Error("the database does not respond"));
      });
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: one implementation for all overloads of the base class
  override query(...args: any[]): any {
    this.isAsked = true;
    return super.query(...(args as Parameters<pg.Client["query"]>));
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  override end(...args: any[]): any {
    this.isAsked = true;
    return super.end(...(args as []));
  }
}

/** Options for pools that a library creates, so that they use these clients. */
export const BOUNDED_POOL = { ...BOUNDS, Client: BoundedClient };
/**
 * Options for connections through a pooler, which rejects settings at the start of a session. The database role has the
 * time limits, and the client gives up by itself.
 */
export const POOLED_POOL = {
  ...KEEP_OPEN,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  query_timeout: STATEMENT_LIMIT_MS,
  Client: BoundedClient,
};
/** Options for pools without a time limit per statement, for migrations. */
export const PATIENT_POOL = {
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  keepAlive: true,
  Client: ClientWithErrorListener,
};

/** Creates a single client that is not connected yet. It may be silent for long; the caller checks that it is alive. */
export function createClient(url: string, name = "svc-app-actions"): pg.Client {
  const { connectionTimeoutMillis, keepAlive } = PATIENT_POOL;
  return new ClientWithErrorListener({
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis,
    keepAlive,
  });
}

/**
 * Creates a pool whose connections may be silent for long, as for LISTEN.
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
  // Each client handles its own loss; a pool without a listener would throw.
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/**
 * Settings for generic plans. Without values, the planner assumes that all apps have the same size: if one app has nearly all rows, a
 * sequential scan looks cheap even for an app with few. Each of these statements has an index, so sequential scans are off. JIT is off
 * because it would compile such plans.
 */
const FOR_ANY_VALUES = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/**
 * Creates a pool for prepared statements. Their plans are generic, and select their partitions when they start. Planning with values each
 * time would cost more than the statement itself on a large table of runs.
 */
export function createStatementPool(url: string, size: number): pg.Pool {
  const onConnect = async (client: pg.ClientBase) => {
    await client.query(FOR_ANY_VALUES);
  };
  const options = { ...BOUNDED_POOL, application_name: "svc-app-actions", onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/**
 * A query that passes name and text to pg directly. pg copies an options object, which takes as long as the rest of a
 * query.
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

/** Returns the rows of a statement that each connection of the pool prepares once under `name`. */
export async function queryRowsPrepared<T>(pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<T[]> {
  // A pool also accepts a query object, but only the types of pg's `Client` declare this.
  const answered = pool.query(new NamedQuery(name, text, values)) as unknown as Promise<pg.QueryResult>;
  return (await answered).rows as T[];
}

/** True if a pooler in transaction mode answers at `url`: it refuses settings at the start of a session. */
export async function isPooler(url: string): Promise<boolean> {
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

/** SQLSTATE codes of a server that stops, starts, has no free connection, or cancelled a statement for its time limit. */
const AWAY_STATES = /^(08|53|57P0\d|57014|25P03)/;
const AWAY_CODES = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** Matches messages of errors that pg itself creates, because these errors have no code. */
const AWAY_MESSAGES =
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after|the database does not respond)/;

/** True if an error of the driver means that the database was not available, and not that the statement was faulty. */
export function isConnectionFault(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return AWAY_STATES.test(error.code ?? "");
  if (!(error instanceof Error)) return false;
  return AWAY_CODES.test((error as NodeJS.ErrnoException).code ?? "") || AWAY_MESSAGES.test(error.message);
}
