/** Writes entries of the execution log without runs, and sends the same database notifications as the end of a run. */
import type { Client } from "pg";
import { LOG_CHANNEL } from "../../src/operations/records/execution-logs.js";

const INSERT_LOG_ENTRY = `
  WITH entry AS (
    INSERT INTO execution_log (app_id, task_id, run_id, type, data)
    VALUES ($1, $3, (SELECT least(min(run_id), 0) - 1 FROM execution_log), 'app.task.completed', $2)
    RETURNING id, app_id, run_id)
  SELECT pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

export const createLogData = (payload: object) => ({
  mode: "on-demand",
  runOn: "server",
  taskId: 1,
  payload,
  duration: 12,
  actionVersion: "v3",
  result: { data: { orders: [1, 2, 3], note: "as it is usually returned" }, success: true },
});

/** Writes one entry. Do not call this function concurrently, because entries of concurrent calls can get the same run ID. */
export async function addLogEntry(
  db: Pick<Client, "query">,
  appId: number,
  payload: object,
  actionId = 1,
): Promise<void> {
  await db.query({
    name: "add-log-entry",
    text: INSERT_LOG_ENTRY,
    values: [appId, JSON.stringify(createLogData(payload)), actionId],
  });
}
