/** Waits for the log entry in which a run ends, in any process. */
import type { Notifications } from "../../engine/notifications.js";
import { ActionError, clientDisconnected } from "../../errors.js";
import { LOG_CHANNEL, type LogEntry, type Logs } from "./execution-logs.js";

/** Interval of reads of the table, in case a notification is lost. */
const LOOK_MS = 1_000;

/** Error for a wait that ends early: the reason of the signal if it is an ActionError, else that the caller has disconnected. */
const errorOf = ({ reason }: AbortSignal): ActionError =>
  reason instanceof ActionError ? reason : clientDisconnected();

/**
 * Returns the log entry that ends the run, once it is written.
 * @throws the reason of a signal that is an ActionError; REQUEST_INVALID when another one aborts
 */
export async function entryOfRun(
  { logs, notifications }: { logs: Logs; notifications: Notifications },
  runId: number,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<LogEntry> {
  const { promise, resolve, reject } = Promise.withResolvers<LogEntry>();
  const present = signals.filter((signal) => signal !== undefined);
  for (const signal of present) if (signal.aborted) throw errorOf(signal);
  const leave = ({ target }: Event) => reject(errorOf(target as AbortSignal));
  for (const signal of present) signal.addEventListener("abort", leave);
  const look = () => {
    logs.ofRun(runId).then((entry) => entry && resolve(entry), reject);
  };
  const hear = (notice: string) => {
    if (notice.endsWith(`:${runId}`)) look();
  };
  const unfollow = notifications.follow(LOG_CHANNEL, hear, look);
  const timer = setInterval(look, LOOK_MS);
  look();
  return promise.finally(() => {
    unfollow();
    for (const signal of present) signal.removeEventListener("abort", leave);
    clearInterval(timer);
  });
}
