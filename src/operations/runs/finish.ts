/** Ends runs: one statement writes the outcomes and log entries of runs, and notifies other processes. */
import { queryPreparedRows, type SqlClient } from "../../data/database.js";
import { checkRunTransition, type RunEndState } from "../../data/run.js";
import type { EvaluationMode } from "../../engine/browser/run.js";
import { LOG_CHANNEL, type LogEntryData } from "../records/execution-logs.js";

export interface RunEndRecord {
  id: number;
  /** Process that executes the run, or BROWSER_HOLDER_ID; null for a queued run. */
  holder: string | null;
  state: RunEndState;
  data: LogEntryData;
  /** `host:port` of each host that the run contacted. */
  hosts?: readonly string[];
  /** JSON text of the requests that the run sent to other services. */
  requests?: string | null;
  sandbox?: EvaluationMode | null;
  /** Version of the app's secrets when the outcome was searched for them. If it has changed, the run is not ended. Null: no check. */
  secretsVersion?: number | null;
}

/**
 * Ends runs. $1 to $9 are arrays with a value per run. $11 and $12 are the lowest and highest ID: with them, PostgreSQL opens only the
 * partitions of these runs. Locks the runs in the order of their IDs, to prevent deadlocks. Also stores the time of the actions' last run.
 * Skips locked actions, whose locks would delay the ends of other apps' runs.
 */
const FINISH_RUNS = `
  WITH ending AS (
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::int[], $6::text[], $7::bigint[], $8::text[], $9::text[])
             AS ending (id, holder, state, data, payload_at, hosts, secrets_version, sandbox, requests)),
  ended AS (
    UPDATE run SET state = ending.state, holder = NULL, finished_at = now(), hosts = ending.hosts::text[], sandbox = ending.sandbox,
                   requests = ending.requests::json, log_id = nextval('execution_log_id_seq')
      FROM ending
     WHERE run.id = ANY (ARRAY(SELECT id FROM run WHERE id = ANY ($1::bigint[]) AND id BETWEEN $11 AND $12 ORDER BY id FOR NO KEY UPDATE))
       AND run.id = ending.id AND run.id BETWEEN $11 AND $12 AND run.finished_at IS NULL
       AND run.holder IS NOT DISTINCT FROM ending.holder
       AND coalesce(ending.secrets_version = (SELECT app.secrets_version FROM app WHERE app.id = run.app_id), true)
    RETURNING run.id, run.app_id, run.action_id, run.log_id, run.state, ending.holder, ending.data, ending.payload_at),
  touched AS (
    UPDATE action SET last_run_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM action WHERE id IN (SELECT action_id FROM ended WHERE holder IS NOT NULL)
                              FOR NO KEY UPDATE SKIP LOCKED))),
  entry AS (
    INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
    SELECT log_id, app_id, action_id, id, CASE WHEN state = 'completed' THEN 'app.task.completed' ELSE 'app.task.failed' END,
           coalesce($10, data)::json, payload_at FROM ended ORDER BY id RETURNING id, app_id, run_id)
  SELECT run_id AS "runId", pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

const toArrayLiteral = (texts: readonly string[]): string => `{${texts.map((text) => JSON.stringify(text)).join(",")}}`;

/** Returns for each run whether this call ended it. False: the run had ended before, or its holder or the app's secrets had changed. */
export async function finishRuns(executor: SqlClient, runs: readonly RunEndRecord[]): Promise<boolean[]> {
  for (const { holder, state } of runs) checkRunTransition(holder === null ? "queued" : "running", state);
  // The entry of a single run can be a buffer, which an array of texts cannot contain.
  const singleEntry = runs.length === 1 ? runs[0]!.data.text : null;
  const ids = runs.map(({ id }) => id);
  const values = [
    ids,
    runs.map(({ holder }) => holder),
    runs.map(({ state }) => state),
    runs.map(({ data }) => (singleEntry === null ? data.text : null)),
    runs.map(({ data }) => data.payloadAt),
    runs.map(({ hosts = [] }) => toArrayLiteral(hosts)),
    runs.map(({ secretsVersion = null }) => secretsVersion),
    runs.map(({ sandbox = null }) => sandbox),
    runs.map(({ requests = null }) => requests),
    singleEntry,
    Math.min(...ids),
    Math.max(...ids),
  ];
  const endedRows = await queryPreparedRows<{ runId: number }>(executor, "finish-runs", FINISH_RUNS, values);
  const ended = new Set(endedRows.map(({ runId }) => runId));
  // If `runs` contains a run twice, only its first entry gets true, because `delete` returns true once per ID.
  return runs.map(({ id }) => ended.delete(id));
}
