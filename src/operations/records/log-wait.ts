/** Waits until a run, in any process, has ended and its log entry is written. */
import type { Notifications } from "../../engine/notifications.js";
import { ActionError, clientDisconnected } from "../../errors.js";
import { type ExecutionLogs, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";

/** Interval at which the table is read, in case a notification was lost. */
const LOOK_MS = 1_000;

/**
 * Returns the error for a wait that ends early: the reason of the signal if it is an ActionError, otherwise the error for a disconnected
 * caller.
 */
const errorOf = ({ reason }: AbortSignal): ActionError =>
  reason instanceof ActionError ? reason : clientDisconnected();

/**
 * Returns the log entry that ends the run, once it is written.
 * @throws the reason of a signal that is an ActionError; REQUEST_INVALID if the signal aborts with another reason
 */
export async function entryOfRun(
  { logs, notifications }: { logs: ExecutionLogs; notifications: Notifications },
  runId: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<LogEntry> {
  const { promise, resolve, reject } = Promise.withResolvers<LogEntry>();
  const givenSignals = signals.filter((signal) => signal !== undefined);
  for (const signal of givenSignals) if (signal.aborted) throw errorOf(signal);
  const rejectOnAbort = ({ target }: Event) => reject(errorOf(target as AbortSignal));
  for (const signal of givenSignals) signal.addEventListener("abort", rejectOnAbort);
  const readEntry = () => {
    logs.ofRun(runId).then((entry) => entry && resolve(entry), reject);
  };
  const handleNotice = (notice: string) => {
    if (notice.endsWith(`:${runId}`)) readEntry();
  };
  const stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, readEntry);
  const timer = setInterval(readEntry, LOOK_MS);
  readEntry();
  return promise.finally(() => {
    stopFollowing();
    for (const signal of givenSignals) signal.removeEventListener("abort", rejectOnAbort);
    clearInterval(timer);
  });
}
