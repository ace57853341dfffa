/**
 * Logs push messages that are not delivered. To keep the log short, writes at most one line a minute for each app and kind of failure. The
 * line contains the number of failures since the previous line.
 */
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";

const LINE_INTERVAL_MS = 60_000;
/** Maximum number of pairs of app and kind of failure for which this process remembers the last line. Further pairs replace the oldest. */
const KNOWN_FAILURES_MAX = 10_000;

/** Push message that was not delivered. The endpoint is a secret, so the log contains only its host. */
export interface FailedPush {
  appId: number;
  endpoint: string;
}

/** HTTP status of the push service, or the reason why no response was received. */
export type PushFailure = { status: number } | { reason: string };

type LogFailure = (facts: object) => void;

export class PushFailureLog {
  private readonly lastLines = new LRUCache<string, { at: number; unloggedCount: number }>({ max: KNOWN_FAILURES_MAX });

  /** @param now returns the time of a monotonic clock in milliseconds */
  constructor(
    private readonly log: Logger,
    private readonly now: () => number = () => performance.now(),
  ) {}

  private logAtIntervals(kind: string, { appId, endpoint }: FailedPush, write: LogFailure): void {
    const key = `${appId} ${kind}`;
    const lastLine = this.lastLines.get(key);
    if (lastLine && this.now() - lastLine.at < LINE_INTERVAL_MS) {
      lastLine.unloggedCount += 1;
      return;
    }
    this.lastLines.set(key, { at: this.now(), unloggedCount: 0 });
    write({ appId, host: URL.parse(endpoint)?.host ?? null, failures: (lastLine?.unloggedCount ?? 0) + 1 });
  }

  logRejected(push: FailedPush, failure: PushFailure): void {
    this.logAtIntervals("rejected", push, (facts) =>
      this.log.warn({ ...facts, ...failure }, "a push message was rejected; the service does not send it again"),
    );
  }

  logGivenUp(push: FailedPush, failure: PushFailure): void {
    this.logAtIntervals("given up", push, (facts) =>
      this.log.warn({ ...facts, ...failure }, "every attempt to send a push message failed; it is not sent again"),
    );
  }

  logUnexpectedFailure(push: FailedPush, err: unknown): void {
    this.logAtIntervals("unexpected", push, (facts) =>
      this.log.error({ ...facts, err }, "an attempt to send a push message failed unexpectedly"),
    );
  }
}
