/** The words of the ledger's rows: what state a run is in, and the type of its log entry. */

export const RUN_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];
/** SQL of a run that is being performed: with what a constraint says anyway, or the planner would look through all that have ended. */
export const RUNNING = "state = 'running' AND finished_at IS NULL";
export type ExecutionLogType = "app.task.completed" | "app.task.failed";
