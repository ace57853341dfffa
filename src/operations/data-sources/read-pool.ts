/**
 * Pool of few, read-only database connections for callers' queries on entries and for lists of media. Each statement
 * has a time limit of five seconds, and limits of memory and temporary files. A single app cannot use all connections.
 */
import pg from "pg";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { ENTRY_QUERY_TIMEOUT_MS, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import { createPool, READ_ONLY_SQLSTATE } from "../../postgres.js";

export const READ_POOL_CONNECTIONS = 6;
/** Maximum connections of one app. A second limit: at most half of the connections that other apps leave free, rounded up. */
const CONNECTIONS_PER_APP = 3;
const MAX_WAITING_PER_APP = 200;
/** Limits the work of PostgreSQL's planner, which ignores the statement timeout, and uses up to 2.5 KB of memory per character. */
const STATEMENT_MAX_CHARACTERS = 100_000;

/** Settings of each connection. Disables JIT compilation, which takes longer than the queries, and parallel plans, which use many cores. */
const createSessionSettingsSql = (timeoutMs: number) => `
  SET default_transaction_read_only = on; SET statement_timeout = ${timeoutMs}; SET work_mem = '8MB'; SET hash_mem_multiplier = 1;
  SET max_parallel_workers_per_gather = 0; SET jit = off; SET timezone = 'UTC'; SET extra_float_digits = 1`;
/* Limits the size of temporary files. Only superusers can set this limit. For other users, only the time limit bounds the files. */
const LIMIT_TEMP_FILES = "SET temp_file_limit = '1GB'";

/**
 * Runs one SQL statement for an app. If all connections are in use, the apps get free connections in turn.
 * @param name name of a prepared statement, which each connection prepares once
 * @throws ActionError REQUEST_INVALID if the query is too long or too expensive, or if the database cannot evaluate a value; OVERLOADED if
 * too many queries of the app wait
 */
export type ReadRows = <Row>(appId: number, sql: string, values: readonly unknown[], name?: string) => Promise<Row[]>;

const QUERY_TIMEOUT_MESSAGE =
  `the query took longer than ${ENTRY_QUERY_TIMEOUT_MS / 1000} s; ` +
  'select fewer entries in "where", or add an index on its columns';

/** Returns an error message for the caller if the caller's query caused this database error; undefined for other errors. */
function findCallerErrorMessage({ code = "" }: Partial<pg.DatabaseError>): string | undefined {
  if (code === "57014") return QUERY_TIMEOUT_MESSAGE;
  if (code === "22012")
    return "the aggregate collects more than 8 MB in $push or in one result; select fewer entries or columns";
  if (code === "2201B") return "a regular expression in the query is too complex; simplify it";
  if (code === "53400" || code === "53200")
    return 'the query sorts or groups too much data; select fewer entries in "where"';
  return /^(22|54)/.test(code)
    ? "the database cannot evaluate a value in the query, for example a number that is too large"
    : undefined;
}

/**
 * Returns the error that `read` throws for an error of the database. Other code treats the error READ_ONLY_SQLSTATE as an outage. On these
 * connections, which are always read-only, it is a fault of the statement. So this function replaces it by another error.
 */
function toReadError(error: unknown): unknown {
  const { code } = error as Partial<pg.DatabaseError>;
  if (code === READ_ONLY_SQLSTATE)
    return Object.assign(new Error("a statement on a read-only connection tried to write", { cause: error }), { code });
  const message = findCallerErrorMessage(error as Partial<pg.DatabaseError>);
  return message === undefined ? error : new ActionError("REQUEST_INVALID", message);
}

/**
 * Returns a `read` function for one query that needs several SQL statements. The returned function rejects statements that start more than
 * ENTRY_QUERY_TIMEOUT_MS after this call of `limitReadTime`. A statement that starts in time has the normal time limit.
 */
export function limitReadTime(read: ReadRows, now: () => number = performance.now.bind(performance)): ReadRows {
  const deadline = now() + ENTRY_QUERY_TIMEOUT_MS;
  return async (appId, text, values, name) => {
    if (now() > deadline) throw new ActionError("REQUEST_INVALID", QUERY_TIMEOUT_MESSAGE);
    return read(appId, text, values, name);
  };
}

export class ReadPool {
  private readonly pool = createPool(this.url, READ_POOL_CONNECTIONS, "svc-app-actions entries", async (client) => {
    await client.query(createSessionSettingsSql(this.timeoutMs));
    // Ignores an error, because PostgreSQL allows only superusers to change this setting.
    await client.query(LIMIT_TEMP_FILES).catch(() => undefined);
  });
  private readonly connectionSlots = new FairSemaphore(READ_POOL_CONNECTIONS, CONNECTIONS_PER_APP, "halved");

  /** @param timeoutMs time limit of each SQL statement in milliseconds */
  constructor(
    private readonly url: string,
    private readonly timeoutMs = ENTRY_QUERY_TIMEOUT_MS,
  ) {}

  readonly read: ReadRows = async <Row>(
    appId: number,
    text: string,
    values: readonly unknown[],
    name?: string,
  ): Promise<Row[]> => {
    if (text.length > STATEMENT_MAX_CHARACTERS) {
      throw new ActionError(
        "REQUEST_INVALID",
        `the SQL statement of the query can have at most ${STATEMENT_MAX_CHARACTERS} characters (got ${text.length}); ` +
          "use fewer columns and conditions in the query",
      );
    }
    const releaseConnectionSlot = await this.acquireConnectionSlot(appId);
    try {
      const client = await this.pool.connect();
      let isLost = true;
      try {
        const { rows } = await client.query({ text, values: [...values], ...(name ? { name } : {}) });
        isLost = false;
        return rows as Row[];
      } catch (error) {
        // Closes the connection after an error that the query did not cause, because the connection may be broken.
        isLost = !(error instanceof pg.DatabaseError) || error.severity !== "ERROR";
        throw error;
      } finally {
        client.release(isLost);
      }
    } catch (error) {
      throw toReadError(error);
    } finally {
      releaseConnectionSlot();
    }
  };

  private async acquireConnectionSlot(appId: number): Promise<() => void> {
    if (this.connectionSlots.countWaiting(appId) >= MAX_WAITING_PER_APP)
      throw new ActionError("OVERLOADED", undefined, { retryAfter: OVERLOADED_RETRY_SECONDS });
    return this.connectionSlots.enter(appId);
  }

  end() {
    return this.pool.end();
  }
}
