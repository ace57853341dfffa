/**
 * Keeps the log short while the database is unavailable: one line at the start of the outage, one a minute and one at
 * its end, instead of one for each failed attempt. Read this file when lines about the database are missing from the
 * log.
 */
import type { DestinationStream, Logger } from "pino";
import { isConnectionLimitReached, isDatabaseAway, isStatementTimeout } from "../data/database.js";
import { createLog } from "../engine/log.js";
import { isDiskFull } from "../postgres.js";

const LINE_EVERY_MS = 60_000;
/** Time without a failure after which an outage ends. When the database responds again, lost connections may still fail for a moment. */
const QUIET_MS = 2_000;

export interface OutageLog {
  /** The log of the process. Lines whose `err` is a problem of the database are counted instead of written. */
  log: Logger;
  /** Call it when the database has responded. Ends the outage if nothing fails any more. */
  reached(): void;
}

interface DatabaseOutage {
  problem: string;
  since: number;
  lastFailure: number;
  lastLine: number;
  /** Number of log lines that were counted instead of written. */
  lines: number;
}

/** Returns the problem of the database that caused an error; null for other errors. */
export function databaseProblem(error: unknown): string | null {
  // A slow statement is a separate fault with its own line.
  if (!isDatabaseAway(error) || isStatementTimeout(error)) return null;
  if (isConnectionLimitReached(error)) return "the database has no free connection";
  return isDiskFull() ? "the database's disk is full" : "the database is away";
}

/** @param now monotonic clock in milliseconds */
export function createOutageLog(options: {
  level: string;
  problemOf?: (error: unknown) => string | null;
  destination?: DestinationStream;
  now?: () => number;
}): OutageLog {
  const { level, problemOf = databaseProblem, destination, now = () => performance.now() } = options;
  const plainLog = createLog(level, { ...(destination && { destination }) });
  let outage: DatabaseOutage | null = null;

  function countRejection(err: unknown, problem: string, firstMessage: string): void {
    const at = now();
    if (outage === null) {
      outage = { problem, since: at, lastFailure: at, lastLine: at, lines: 1 };
      plainLog.error({ err, first: firstMessage }, `${problem}: failures are counted until it is back`);
      return;
    }
    outage.lines += 1;
    outage.lastFailure = at;
    if (at - outage.lastLine < LINE_EVERY_MS) return;
    outage.lastLine = at;
    plainLog.error({ awayMs: Math.round(at - outage.since), failures: outage.lines }, `${outage.problem}, still`);
  }

  const absorb = (parts: readonly unknown[]): boolean => {
    const [fields, message] = parts;
    const err = typeof fields === "object" && fields !== null && "err" in fields ? fields.err : undefined;
    const problem = err === undefined ? null : problemOf(err);
    if (problem === null) return false;
    countRejection(err, problem, String(message));
    return true;
  };

  return {
    log: createLog(level, { ...(destination && { destination }), absorb }),
    reached() {
      const at = now();
      if (outage === null || at - outage.lastFailure < QUIET_MS) return;
      const { since, lastFailure, lines } = outage;
      outage = null;
      plainLog.info({ awayMs: Math.round(lastFailure - since), failures: lines }, "the database is back");
    },
  };
}
