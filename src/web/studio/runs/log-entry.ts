/** Determines from an entry of the execution log if the run failed or was cancelled. */
import type { LogEntry } from "../shared/model.js";

/** The service logs a cancelled run with an error of this name. */
export const isCancelledLogEntry = ({ error }: Pick<LogEntry, "error">) => error?.name === "CancelledError";

export const isFailedLogEntry = (entry: Pick<LogEntry, "type" | "error">) =>
  entry.type === "app.task.failed" && !isCancelledLogEntry(entry);
