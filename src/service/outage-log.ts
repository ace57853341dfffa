/**
 * Keeps the log readable while the database is away: one line at the start, one a minute and one at the end, instead of one for each
 * failed attempt. Read it when lines about the database are missing from the log.
 */
import type { DestinationStream, Logger } from "pino";
import { createLog } from "../engine/log.js";

const LINE_EVERY_MS = 60_000;
/** After the database answers, connections that were lost may still fail for a moment. An outage ends after this long without a failure. */
const QUIET_MS = 2_000;

export interface OutageLog {
  /** The process's log. Lines with an `err` that says that the database is away are counted instead of written. */
  log: Logger;
  /** The database has answered. Ends an outage once nothing fails any more. */
  reached(): void;
}

interface Outage {
  since: number;
  lastFailure: number;
  lastLine: number;
  /** Lines that were not written. */
  lines: number;
}

/** @param now a monotonic clock in milliseconds */
export function createOutageLog(options: {
  level: string;
  isAway: (error: unknown) => boolean;
  destination?: DestinationStream;
  now?: () => number;
}): OutageLog {
  const { level, isAway, destination, now = () => performance.now() } = options;
  const plain = createLog(level, { ...(destination && { destination }) });
  let outage: Outage | null = null;

  function count(err: unknown, first: string): void {
    const at = now();
    if (outage === null) {
      outage = { since: at, lastFailure: at, lastLine: at, lines: 1 };
      plain.error({ err, first }, "the database is away: failures are counted until it is back");
      return;
    }
    outage.lines += 1;
    outage.lastFailure = at;
    if (at - outage.lastLine < LINE_EVERY_MS) return;
    outage.lastLine = at;
    plain.error({ awayMs: Math.round(at - outage.since), failures: outage.lines }, "the database is still away");
  }

  const absorb = (parts: readonly unknown[]): boolean => {
    const [fields, message] = parts;
    const err = typeof fields === "object" && fields !== null && "err" in fields ? fields.err : undefined;
    if (err === undefined || !isAway(err)) return false;
    count(err, String(message));
    return true;
  };

  return {
    log: createLog(level, { ...(destination && { destination }), absorb }),
    reached() {
      const at = now();
      if (outage === null || at - outage.lastFailure < QUIET_MS) return;
      const { since, lastFailure, lines } = outage;
      outage = null;
      plain.info({ awayMs: Math.round(lastFailure - since), failures: lines }, "the database is back");
    },
  };
}
