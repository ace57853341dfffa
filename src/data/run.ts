/** The words of the ledger's rows: what state a run is in, and the type of its log entry. */

export const RUN_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];
export type ExecutionLogType = "app.task.completed" | "app.task.failed";
