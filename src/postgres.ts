/**
 * The only maker of connections to PostgreSQL. Each has somebody who hears that it was lost, and notices a server that is silent.
 * Knows no table and no statement.
 */
import type { Socket } from "node:net";
import pg from "pg";

/** Ids are bigint in the database and numbers here: they stay below 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** To a free connection, new or of the pool. */
const CONNECT_LIMIT_MS = 5_000;
/** One statement of a request, a run or a ticker. */
const STATEMENT_LIMIT_MS = 30_000;
/** A transaction whose owner is gone without a word gives its locks back after this. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000;
/** No byte either way for so long, longer than any statement: the other side is gone without a word. */
const SILENCE_LIMIT_MS = STATEMENT_LIMIT_MS + 10_000;
/** A connection that nobody uses is asked for after so long whether its other side is still there, by the kernel. */
const ASKED_AFTER_MS = 30_000;

/** Connections stay: opening many at once costs both cores some 20 ms each, at the very moment at which all of them are needed. */
const KEPT = { keepAlive: true, keepAliveInitialDelayMillis: ASKED_AFTER_MS, idleTimeoutMillis: 0 };

const BOUNDS = {
  ...KEPT,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  statement_timeout: STATEMENT_LIMIT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_LIMIT_MS,
};

let lost = 0;

const DISK_FULL = "53100";
/** When PostgreSQL last refused a write because its disk is full; null while it has room. */
let diskFullAt: number | null = null;

/** Milliseconds since the last refusal because of a full disk; null while there is room. */
export const diskFullFor = (): number | null => (diskFullAt === null ? null : performance.now() - diskFullAt);

/** True while PostgreSQL refuses writes of this process because its disk is full. */
export const isDiskFull = (): boolean => diskFullAt !== null;

export function reportDiskFree(): void {
  diskFullAt = null;
}

/** How many connections this process has lost since it began, none of which it had ended itself. */
export const lostConnections = (): number => lost;

/** Listens from its making on: between two statements nobody else does, and a lost connection would end the process. */
class HeardClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("error", () => undefined);
    this.connection.on("errorMessage", ({ code }: { code?: string }) => {
      if (code === DISK_FULL) diskFullAt = performance.now();
    });
    this.once("connect", () => this.once("error", () => (lost += 1)));
  }
}

/** As HeardClient, for connections on which nobody waits longer than the longest statement. Between statements it may be silent. */
class BoundedClient extends HeardClient {
  private isAsked = false;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on("drain", () => {
      this.isAsked = false;
    });
    this.once("connect", () => {
      const socket = this.connection.stream as Socket;
      // Begins anew with every byte, that of a question after a silence too.
      socket.setTimeout(SILENCE_LIMIT_MS, () => {
        if (this.isAsked) socket.destroy(new Error("the database is silent"));
      });
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: one body for the many forms of what it extends
  override query(...asked: any[]): any {
    this.isAsked = true;
    return super.query(...(asked as Parameters<pg.Client["query"]>));
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  override end(...asked: any[]): any {
    this.isAsked = true;
    return super.end(...(asked as []));
  }
}

/** Options of a pool that somebody else makes, so that its connections are ours. */
export const BOUNDED_POOL = { ...BOUNDS, Client: BoundedClient };
/**
 * The same behind a pooler, which refuses settings at the beginning of a session: the server's role has the bounds, and who asks gives up
 * by itself.
 */
export const POOLED_POOL = {
  ...KEPT,
  connectionTimeoutMillis: CONNECT_LIMIT_MS,
  query_timeout: STATEMENT_LIMIT_MS,
  Client: BoundedClient,
};
/** The same for statements that take their time: migrations. */
export const PATIENT_POOL = { connectionTimeoutMillis: CONNECT_LIMIT_MS, keepAlive: true, Client: HeardClient };

/** A connection of its own, not connected yet. It may be silent for long: its owner looks after it. */
export function createClient(url: string, name = "svc-app-actions"): pg.Client {
  const { connectionTimeoutMillis, keepAlive } = PATIENT_POOL;
  return new HeardClient({ connectionString: url, application_name: name, connectionTimeoutMillis, keepAlive });
}

/** A pool whose connections may listen, and be silent for long. @param onConnect done with each before anybody has it */
export function createPool(
  url: string,
  size: number,
  name: string,
  onConnect: (client: pg.ClientBase) => Promise<void> = async () => undefined,
): pg.Pool {
  const options = { ...BOUNDS, Client: HeardClient, application_name: name, onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  // Each connection has heard of its loss itself; a pool without listeners would throw.
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/*
 * A plan without values takes all apps for equally large: beside one that has nearly all rows, to read every row looks cheap for the
 * few of another. Each of these statements has an index. A plan that does read a whole table counts as so dear that it would be compiled.
 */
const FOR_ANY_VALUES = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/**
 * A pool for statements that are kept under a name: their plans know no values, and find the partitions that they need as they begin.
 * With values they would be planned anew each time, which costs a large ledger more than the statement itself.
 */
export function createStatementPool(url: string, size: number): pg.Pool {
  const onConnect = async (client: pg.ClientBase) => {
    await client.query(FOR_ANY_VALUES);
  };
  const options = { ...BOUNDED_POOL, application_name: "svc-app-actions", onConnect };
  const pool = new pg.Pool({ connectionString: url, max: size, ...options });
  return pool.on("error", () => undefined).on("connect", () => undefined);
}

/** Made from its text: of an object of options pg copies the descriptors, which takes as long as all else that it does to ask. */
class NamedQuery extends pg.Query {
  constructor(
    readonly name: string,
    text: string,
    values: unknown[],
  ) {
    super(text, values);
  }
}

/** The rows of a statement that each connection of the pool plans once and keeps under `name`. */
export async function namedRows<T>(pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<T[]> {
  // A pool answers for a query of one's own too; its types know that of a single connection alone.
  const answered = pool.query(new NamedQuery(name, text, values)) as unknown as Promise<pg.QueryResult>;
  return (await answered).rows as T[];
}

/** Whether a pooler answers at `url` that keeps no session for who asks: it takes no settings at a session's beginning. */
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

/** SQLSTATE of a server that ends, starts, is full, or gave a statement up for its time. */
const AWAY_STATES = /^(08|53|57P0\d|57014|25P03)/;
const AWAY_CODES = /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;
/** pg gives its own errors no code. */
const AWAY_MESSAGES =
  /^(Connection terminated|timeout e|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after|the database is silent)/;

/** Whether `error`, as the driver threw it, says that the database could not be asked: nothing is wrong with what was asked. */
export function isConnectionFault(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return AWAY_STATES.test(error.code ?? "");
  if (!(error instanceof Error)) return false;
  return AWAY_CODES.test((error as NodeJS.ErrnoException).code ?? "") || AWAY_MESSAGES.test(error.message);
}
