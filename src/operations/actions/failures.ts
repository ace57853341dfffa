/** Logs an unexpected failure of an operation, and throws the operation's own error status for it. */
import type { Logger } from "pino";
import { isDatabaseAway } from "../../data/database.js";
import { ActionError, type Status } from "../../errors.js";

/** Rethrows ActionErrors and database outages. Logs any other error and throws `status` instead. */
export async function rethrowAs<T>(status: Status, log: Logger, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ActionError || isDatabaseAway(error)) throw error;
    log.error({ status, reason: (error as Error).message, stack: (error as Error).stack }, "an operation failed");
    throw new ActionError(status);
  }
}
