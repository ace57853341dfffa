/** Determines the outcome of an execution log entry. */
import type { LogEntry } from "../shared/model.js";

/** Name of the error with which the service logs a cancelled run. */
export const isCancelled = ({ error }: Pick<LogEntry, "error">) => error?.name === "CancelledError";

export const isFailed = (entry: Pick<LogEntry, "type" | "error">) =>
  entry.type === "app.task.failed" && !isCancelled(entry);
