/**
 * Connections for the queries of callers. They are few and read-only; each statement has five seconds, and limited memory and temporary
 * files. One app cannot use all of them.
 */
import pg from "pg";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS, QUERY_TIMEOUT_MS } from "../../limits.js";
import { createPool } from "../../postgres.js";

export const READ_CONNECTIONS = 6;
/** Maximum number of connections that the first busy app gets. A second app then gets two, and a third still gets one. */
const CONNECTIONS_PER_APP = 3;
const WAITING_PER_APP = 200;
/** Maximum length of a statement, because the planner ignores the timeout and uses up to 2.5 KB per character. */
const STATEMENT_MAX_CHARACTERS = 100_000;

/**
 * Returns settings of the connection. JIT would compile for longer than these queries run, and a parallel plan would use cores that others
 * need.
 */
const sessionSettings = (timeoutMs: number) => `
  SET default_transaction_read_only = on; SET statement_timeout = ${timeoutMs}; SET work_mem = '8MB'; SET hash_mem_multiplier = 1;
  SET max_parallel_workers_per_gather = 0; SET jit = off; SET timezone = 'UTC'; SET extra_float_digits = 1`;
/* Limits temporary files. Only superusers can set this; for other users the time limit also limits the files. */
const TEMP_FILES = "SET temp_file_limit = '1GB'";

/**
 * Runs one statement for an app, in its turn. A named statement is planned once per connection.
 * @throws ActionError REQUEST_INVALID if the query is too expensive, OVERLOADED
 */
export type ReadRows = <Row>(appId: number, sql: string, values: readonly unknown[], name?: string) => Promise<Row[]>;

const TOO_LONG = `the query took longer than ${QUERY_TIMEOUT_MS / 1000} s: name fewer entries in where, or a column with an index`;

/** Returns the error for the caller if its query caused the database's error; undefined otherwise. */
function refusalOf({ code = "" }: Partial<pg.DatabaseError>): string | undefined {
  if (code === "57014") return TOO_LONG;
  if (code === "22012") return "the query gathers more than 8 MB in $push or in one document";
  if (code === "2201B") return "a regular expression is too complex";
  if (code === "53400" || code === "53200") return "the query sorts or groups too much data";
  return /^(22|54)/.test(code) ? "the query contains a value that cannot be computed" : undefined;
}

/** Runs the statements of one query with one common time limit. */
export function limitReadTime(read: ReadRows, now: () => number = performance.now.bind(performance)): ReadRows {
  const deadline = now() + QUERY_TIMEOUT_MS;
  return async (appId, text, values, name) => {
    if (now() > deadline) throw new ActionError("REQUEST_INVALID", TOO_LONG);
    return read(appId, text, values, name);
  };
}

export type ReadPool = ReturnType<typeof createReadPool>;

/** @param timeoutMs time limit of one statement */
export function createReadPool(url: string, timeoutMs = QUERY_TIMEOUT_MS) {
  const pool = createPool(url, READ_CONNECTIONS, "svc-app-actions entries", async (client) => {
    await client.query(sessionSettings(timeoutMs));
    // PostgreSQL rejects this unless the database's user is a superuser.
    await client.query(TEMP_FILES).catch(() => undefined);
  });
  const line = new FairSemaphore(READ_CONNECTIONS, CONNECTIONS_PER_APP, "halved");
  const waitingByApp = new Map<number, number>();

  async function enterPool(appId: number): Promise<() => void> {
    const waitingBefore = waitingByApp.get(appId) ?? 0;
    if (waitingBefore >= WAITING_PER_APP)
      throw new ActionError("OVERLOADED", undefined, { retryAfter: OVERLOADED_RETRY_SECONDS });
    waitingByApp.set(appId, waitingBefore + 1);
    return line.enter(appId).finally(() => {
      const waitingLeft = waitingByApp.get(appId)! - 1;
      if (waitingLeft === 0) waitingByApp.delete(appId);
      else waitingByApp.set(appId, waitingLeft);
    });
  }

  const read: ReadRows = async <Row>(
    appId: number,
    text: string,
    values: readonly unknown[],
    name?: string,
  ): Promise<Row[]> => {
    if (text.length > STATEMENT_MAX_CHARACTERS) {
      throw new ActionError("REQUEST_INVALID", "the query is too large: use fewer paths and conditions");
    }
    const leavePool = await enterPool(appId);
    try {
      const client = await pool.connect();
      let isLost = true;
      try {
        const { rows } = await client.query({ text, values: [...values], ...(name ? { name } : {}) });
        isLost = false;
        return rows as Row[];
      } catch (error) {
        // The connection is replaced only after an error that the query did not cause.
        isLost = !(error instanceof pg.DatabaseError) || error.severity !== "ERROR";
        throw error;
      } finally {
        client.release(isLost);
      }
    } catch (error) {
      const refusal = refusalOf(error as Partial<pg.DatabaseError>);
      throw refusal === undefined ? error : new ActionError("REQUEST_INVALID", refusal);
    } finally {
      leavePool();
    }
  };

  return { read, end: () => pool.end() };
}
