/** Waits until a run has ended and its log entry is written. Another process may execute the run. */
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError, clientDisconnected } from "../../errors.js";
import { type ExecutionLogs, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";

/**
 * Interval in milliseconds at which the waiting process looks for the log entry in the database, because the
 * notification about the entry can be lost.
 */
const LOOK_UP_INTERVAL_MS = 1_000;

/**
 * Returns the error for a wait that an aborted signal ended: the reason of the signal if it is an ActionError,
 * otherwise the error for a disconnected client.
 */
const toAbortError = ({ reason }: AbortSignal): ActionError =>
  reason instanceof ActionError ? reason : clientDisconnected();

/**
 * Waits for the log entry of a run and returns it.
 * @param signals the wait ends when one of these signals aborts
 * @throws the reason of the aborted signal if it is an ActionError, otherwise the error for a disconnected client
 */
export async function waitForLogEntry(
  { logs, notifications }: { logs: ExecutionLogs; notifications: DatabaseNotifications },
  runId: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<LogEntry> {
  const { promise, resolve, reject } = Promise.withResolvers<LogEntry>();
  const givenSignals = signals.filter((signal) => signal !== undefined);
  for (const signal of givenSignals) if (signal.aborted) throw toAbortError(signal);
  const rejectOnAbort = ({ target }: Event) => reject(toAbortError(target as AbortSignal));
  for (const signal of givenSignals) signal.addEventListener("abort", rejectOnAbort);
  const readEntry = () => {
    logs.entryOfRun(runId).then((entry) => entry && resolve(entry), reject);
  };
  const handleNotice = (notice: string) => {
    if (notice.endsWith(`:${runId}`)) readEntry();
  };
  const stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, readEntry);
  const timer = setInterval(readEntry, LOOK_UP_INTERVAL_MS);
  readEntry();
  return promise.finally(() => {
    stopFollowing();
    for (const signal of givenSignals) signal.removeEventListener("abort", rejectOnAbort);
    clearInterval(timer);
  });
}
