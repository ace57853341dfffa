/** Repeats database work during an outage. Read this file before you write a loop that waits for the database. */
import { setTimeout as delay } from "node:timers/promises";
import { type Db, isDatabaseUnavailable, type SqlClient } from "./database.js";

const RETRY_DELAY_MS = 500;

/** Repeats `work` while the database is unavailable and `signal` has not aborted. */
export async function retryInOutage<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isDatabaseUnavailable(error)) throw error;
      // An abort ends this delay. The next attempt is then the last.
      await delay(RETRY_DELAY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

/**
 * Executes `write` in a transaction, and repeats it as `retryInOutage` does. If the commit fails, throws without a repetition, because the
 * database may have stored the changes already.
 */
export async function writeOnceInOutage(
  db: Db,
  signal: AbortSignal,
  write: (executor: SqlClient) => Promise<unknown>,
): Promise<void> {
  let commitError: unknown = null;
  await retryInOutage(signal, async () => {
    let isWritten = false;
    try {
      await db.transaction(async (manager) => {
        await write(manager);
        isWritten = true;
      });
    } catch (error) {
      if (!isWritten) throw error;
      commitError = error;
    }
  });
  if (commitError !== null) throw commitError;
}
