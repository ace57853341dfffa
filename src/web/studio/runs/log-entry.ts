/** Determines from an entry of the execution log if the run failed or was cancelled. */
import type { LogEntry } from "../shared/model.js";

/** The service logs a cancelled run with an error of this name. */
export const isCancelledEntry = ({ error }: Pick<LogEntry, "error">) => error?.name === "CancelledError";

export const isFailedEntry = (entry: Pick<LogEntry, "type" | "error">) =>
  entry.type === "app.task.failed" && !isCancelledEntry(entry);
