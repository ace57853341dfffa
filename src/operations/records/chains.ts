/**
 * Writes log entries for runs that the service did not start, because a chain of runs became too long. In a chain, each run emits a log
 * event that starts the next run.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { buildLogEntryData, LOG_CHANNEL } from "./execution-logs.js";
import type { HaltedRun } from "./log-event-statement.js";

/** Selects the last runs of a chain that ends with the run $1: at most 51, in their order. */
const SELECT_CHAIN = `
  WITH RECURSIVE chain AS (
    SELECT id, action_id, cause_run_id, 0 AS step FROM run WHERE id = $1
    UNION ALL
    SELECT run.id, run.action_id, run.cause_run_id, step + 1 FROM run JOIN chain ON run.id = chain.cause_run_id
     WHERE step < 50)
  SELECT id, action_id AS "actionId" FROM chain ORDER BY step DESC`;

const INSERT_LOG_ENTRY = `
  WITH entry AS (
    INSERT INTO execution_log (app_id, task_id, run_id, type, data, payload_at)
    VALUES ($1, $2, $3, 'app.task.failed', $4, $5)
    RETURNING id, app_id, run_id),
  named AS (UPDATE run SET log_id = entry.id FROM entry WHERE run.id = entry.run_id)
  SELECT pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

/** Describes the chain that ends with this run, for example `run 4 (action 7) -> run 5 (action 8)`. */
async function describeChain(executor: SqlClient, runId: number): Promise<string> {
  const chainLinks = await rows<{ id: number; actionId: number }>(executor, SELECT_CHAIN, [runId]);
  return chainLinks.map(({ id, actionId }) => `run ${id} (action ${actionId})`).join(" -> ");
}

/**
 * Writes a log entry for each run in `haltedRuns`: a failed run, whose error describes the chain. The run `causeId` emitted the event that
 * would have started these runs.
 */
export async function logHaltedRuns(
  executor: SqlClient,
  appId: number,
  causeId: number,
  haltedRuns: HaltedRun[],
): Promise<void> {
  const chainDescription = await describeChain(executor, causeId);
  for (const { id, actionId, reason } of haltedRuns) {
    const message = `not started, ${reason}: ${chainDescription} -> run ${id} (action ${actionId})`;
    const error = { name: "RecursionError", message, stack: `RecursionError: ${message}` };
    const data = buildLogEntryData({
      trigger: "log",
      runOn: "server",
      taskId: actionId,
      payload: null,
      durationMs: 0,
      outcome: { ok: false, error },
    });
    await rows(executor, INSERT_LOG_ENTRY, [appId, actionId, id, data.text, data.payloadAt]);
  }
}
