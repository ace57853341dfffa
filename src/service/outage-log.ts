/**
 * Keeps the log short while the database is unavailable: writes one line at the start of the outage, one a minute, and one at the end. Read
 * this file if lines about the database are missing from the log.
 */
import type { DestinationStream, Logger } from "pino";
import {
  isConnectionLimitReached,
  isDatabaseUnavailable,
  isReadOnlyError,
  isStatementTimeout,
} from "../data/database.js";
import { createLog } from "../engine/log.js";
import { isDiskFull } from "../postgres.js";

const OUTAGE_LINE_INTERVAL_MS = 60_000;
/**
 * Milliseconds without a failure after which an outage counts as ended. Lost connections can fail for a moment after the database is back.
 */
const OUTAGE_END_QUIET_MS = 2_000;

export interface DatabaseOutageLog {
  /** Log of the process. It counts lines about an unavailable database (field `err`) instead of writing them. */
  log: Logger;
  /** Reports a response of the database. Ends the outage if nothing has failed for OUTAGE_END_QUIET_MS. */
  recordSuccess(): void;
}

interface DatabaseOutage {
  problem: string;
  startedAt: number;
  lastFailureAt: number;
  lastLoggedAt: number;
  /** Number of failures during the outage. Most of them are not in the log. */
  failureCount: number;
}

/** Returns the database problem that caused an error; null for other errors. */
export function describeDatabaseProblem(error: unknown): string | null {
  // A statement that exceeds its time limit is no outage, so its error gets its own log line.
  if (!isDatabaseUnavailable(error) || isStatementTimeout(error)) return null;
  if (isConnectionLimitReached(error)) return "the database has no free connection";
  if (isReadOnlyError(error)) return "the database is read-only";
  return isDiskFull() ? "the database's disk is full" : "the database is away";
}

/**
 * @param options.findProblem returns the database problem that caused an error
 * @param options.now monotonic clock in milliseconds
 */
export function createDatabaseOutageLog(options: {
  level: string;
  findProblem?: (error: unknown) => string | null;
  destination?: DestinationStream;
  now?: () => number;
}): DatabaseOutageLog {
  const { level, findProblem = describeDatabaseProblem, destination, now = () => performance.now() } = options;
  const plainLog = createLog(level, { ...(destination && { destination }) });
  let outage: DatabaseOutage | null = null;

  function recordFailure(err: unknown, problem: string, firstMessage: string): void {
    const nowMs = now();
    if (outage === null) {
      outage = { problem, startedAt: nowMs, lastFailureAt: nowMs, lastLoggedAt: nowMs, failureCount: 1 };
      plainLog.error({ err, first: firstMessage }, `${problem}: failures are counted until it is back`);
      return;
    }
    outage.failureCount += 1;
    outage.lastFailureAt = nowMs;
    if (nowMs - outage.lastLoggedAt < OUTAGE_LINE_INTERVAL_MS) return;
    outage.lastLoggedAt = nowMs;
    plainLog.error(
      { awayMs: Math.round(nowMs - outage.startedAt), failures: outage.failureCount },
      `${outage.problem}, still`,
    );
  }

  const absorb = (parts: readonly unknown[]): boolean => {
    const [fields, message] = parts;
    const err = typeof fields === "object" && fields !== null && "err" in fields ? fields.err : undefined;
    const problem = err === undefined ? null : findProblem(err);
    if (problem === null) return false;
    recordFailure(err, problem, String(message));
    return true;
  };

  return {
    log: createLog(level, { ...(destination && { destination }), shouldOmit: absorb }),
    recordSuccess() {
      const nowMs = now();
      if (outage === null || nowMs - outage.lastFailureAt < OUTAGE_END_QUIET_MS) return;
      const { startedAt, lastFailureAt, failureCount } = outage;
      outage = null;
      plainLog.info({ awayMs: Math.round(lastFailureAt - startedAt), failures: failureCount }, "the database is back");
    },
  };
}
