/** Outcomes of entries of the execution log. */
import type { LogEntry } from "../shared/model.js";

/** The service logs a cancelled run as failed, with an error of this name. */
export const isCancelled = ({ error }: Pick<LogEntry, "error">) => error?.name === "CancelledError";

export const isFailed = (entry: Pick<LogEntry, "type" | "error">) =>
  entry.type === "app.task.failed" && !isCancelled(entry);
