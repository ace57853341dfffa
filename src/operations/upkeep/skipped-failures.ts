/** Lets a job that deletes old data continue after a statement fails, so that one app or table does not stop the others. */
import type { Logger } from "pino";
import { isDatabaseUnavailable, isSlowStatementError } from "../../data/database.js";

export type SkipFailure = <T>(work: Promise<T>) => Promise<T | undefined>;

/**
 * Returns a function that waits for a part of a job. If the part fails, the function logs the first failure and returns undefined. It
 * throws only if the database is unavailable. `details` are fields of the log entry.
 */
export function createFailureSkipper(log: Pick<Logger, "warn">, details: object = {}): SkipFailure {
  let isLogged = false;
  return async function skipFailure<T>(work: Promise<T>): Promise<T | undefined> {
    try {
      return await work;
    } catch (error) {
      if (isDatabaseUnavailable(error) && !isSlowStatementError(error)) throw error;
      if (!isLogged) log.warn({ err: error, ...details }, "a part of the cleanup failed; the next pass tries again");
      isLogged = true;
      return undefined;
    }
  };
}
