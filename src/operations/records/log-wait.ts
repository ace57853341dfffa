/** Waits until a run has ended and its log entry is written. The run may be executed by another process. */
import type { Notifications } from "../../engine/notifications.js";
import { ActionError, clientDisconnected } from "../../errors.js";
import { type ExecutionLogs, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";

/** Interval at which the log entry is looked up, because a notification can be lost. */
const LOOK_UP_EVERY_MS = 1_000;

/**
 * Returns the error for a wait that a signal aborts: the reason of the signal if it is an ActionError, otherwise the
 * error for a disconnected client.
 */
const errorOf = ({ reason }: AbortSignal): ActionError =>
  reason instanceof ActionError ? reason : clientDisconnected();

/**
 * Returns the log entry of a run, as soon as it is written.
 * @param signals each of them ends the wait when it aborts
 * @throws the reason of the aborted signal if it is an ActionError, otherwise the error for a disconnected client
 */
export async function waitForLogEntry(
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
    logs.entryOfRun(runId).then((entry) => entry && resolve(entry), reject);
  };
  const handleNotice = (notice: string) => {
    if (notice.endsWith(`:${runId}`)) readEntry();
  };
  const stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, readEntry);
  const timer = setInterval(readEntry, LOOK_UP_EVERY_MS);
  readEntry();
  return promise.finally(() => {
    stopFollowing();
    for (const signal of givenSignals) signal.removeEventListener("abort", rejectOnAbort);
    clearInterval(timer);
  });
}
