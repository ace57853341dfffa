/** Converts unexpected errors of an operation to an ActionError with the operation's own error status, and logs them. */
import type { Logger } from "pino";
import { isDatabaseUnavailable } from "../../data/database.js";
import { ActionError, type Status } from "../../errors.js";

/**
 * Waits for `work`. Rethrows its ActionErrors and errors of an unreachable database. Logs any other error and throws an
 * ActionError with `status` instead.
 */
export async function rethrowWithStatus<T>(status: Status, log: Logger, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ActionError || isDatabaseUnavailable(error)) throw error;
    log.error(
      { status, reason: (error as Error).message, stack: (error as Error).stack },
      "an operation on an action failed unexpectedly",
    );
    throw new ActionError(status);
  }
}
