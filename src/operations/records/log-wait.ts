/** Waits for the one log entry in which a run ends, wherever it runs. Decides nothing. */
import type { Notifications } from "../../engine/notifications.js";
import { nobodyWaits } from "../../errors.js";
import { LOG_CHANNEL, type LogEntry, type Logs } from "./execution-logs.js";

/** How often the table is looked at, should a notice be lost. */
const LOOK_MS = 1_000;

/** The entry, once it is written: every run ends in one. @throws REQUEST_INVALID when the caller has gone */
export async function entryOfRun(
  { logs, notifications }: { logs: Logs; notifications: Notifications },
  runId: number,
  gone?: AbortSignal,
): Promise<LogEntry> {
  const { promise, resolve, reject } = Promise.withResolvers<LogEntry>();
  if (gone?.aborted) throw nobodyWaits();
  const leave = () => reject(nobodyWaits());
  gone?.addEventListener("abort", leave);
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
    gone?.removeEventListener("abort", leave);
    clearInterval(timer);
  });
}
