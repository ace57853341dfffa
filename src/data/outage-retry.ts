/** Repeats work that failed because the database was unavailable. Runs use it for database reads between their other steps. */
import { setTimeout as delay } from "node:timers/promises";
import { isDatabaseUnavailable } from "./database.js";

const RETRY_DELAY_MS = 500;

/** Repeats `work` while the database is unavailable and `signal` has not aborted. */
export async function retryInOutage<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isDatabaseUnavailable(error)) throw error;
      // An abort ends this delay. The next attempt then throws the database error.
      await delay(RETRY_DELAY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
