/** Waits until a run has ended and its log entry is written, also if another process executes the run. */
import type { DatabaseNotifications } from "../../engine/notifications.js";
import { ActionError, createClientDisconnectedError } from "../../errors.js";
import { type ExecutionLogs, LOG_CHANNEL, type LogEntry } from "./execution-logs.js";

/** Milliseconds between two checks of the run. Checks are necessary: a notification can be lost, and a skipped run causes none. */
const LOOK_UP_INTERVAL_MS = 1_000;

const toAbortError = ({ reason }: AbortSignal): ActionError =>
  reason instanceof ActionError ? reason : createClientDisconnectedError();

/** Waits for the log entry of a run and returns it. @throws ActionError if a signal aborts */
export async function waitForLogEntry(
  { logs, notifications }: { logs: ExecutionLogs; notifications: DatabaseNotifications },
  runId: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<LogEntry> {
  return waitForRunResult(() => logs.readEntryOfRun(runId), notifications, runId, ...signals);
}

/**
 * Calls `lookUp` at once, every second, and when a log entry of the run is written, until `lookUp` returns a result.
 * @throws the reason of an aborted signal if it is an ActionError, otherwise the error for a disconnected client
 */
export async function waitForRunResult<Result>(
  lookUp: () => Promise<Result | null>,
  notifications: DatabaseNotifications,
  runId: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const definedSignals = signals.filter((signal) => signal !== undefined);
  for (const signal of definedSignals) if (signal.aborted) throw toAbortError(signal);
  const rejectOnAbort = ({ target }: Event) => reject(toAbortError(target as AbortSignal));
  for (const signal of definedSignals) signal.addEventListener("abort", rejectOnAbort);
  const callLookUp = () => {
    lookUp().then((result) => result !== null && resolve(result), reject);
  };
  const handleNotice = (notice: string) => {
    if (notice.endsWith(`:${runId}`)) callLookUp();
  };
  const stopFollowing = notifications.follow(LOG_CHANNEL, handleNotice, callLookUp);
  const timer = setInterval(callLookUp, LOOK_UP_INTERVAL_MS);
  callLookUp();
  return promise.finally(() => {
    stopFollowing();
    for (const signal of definedSignals) signal.removeEventListener("abort", rejectOnAbort);
    clearInterval(timer);
  });
}
