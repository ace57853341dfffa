/** Ends runs: one statement writes the outcomes and log entries of runs, and notifies other processes. */
import { queryPreparedRows, type SqlClient } from "../../data/database.js";
import { checkRunTransition, type RunEndState } from "../../data/run.js";
import type { EvaluationMode } from "../../engine/browser/run.js";
import { LOG_CHANNEL, type LogEntryData } from "../records/execution-logs.js";

export interface RunEndRecord {
  state: RunEndState;
  type: "app.task.completed" | "app.task.failed";
  data: LogEntryData;
  /** `host:port` of each host that the run contacted. */
  hosts?: readonly string[];
  /** JSON text of the requests that the run sent to other services. */
  requests?: string | null;
  sandbox?: EvaluationMode | null;
  /** Version of the app's secrets when the outcome was searched for them. If it has changed, the run is not ended. Null: no check. */
  secretsVersion?: number | null;
}

export interface RunToFinish extends RunEndRecord {
  id: number;
  holder: string | null;
}

const NEXT_ENTRY_ID = "nextval('execution_log_id_seq')";
const areSecretsCurrentSql = (version: string) =>
  `coalesce(${version} = (SELECT secrets_version FROM app WHERE app.id = run.app_id), true)`;
/** Stores the time of the actions' last run. Skips locked actions, whose locks would delay the ends of other apps' runs. */
const updateLastRunSql = (condition: string) => `touched AS (
    UPDATE action SET last_run_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM action WHERE id IN (SELECT action_id FROM ended WHERE ${condition})
                              FOR NO KEY UPDATE SKIP LOCKED)))`;
const insertEntrySql = (type: string, data: string, payloadAt: string) => `
  entry AS (
    INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
    SELECT log_id, app_id, action_id, id, ${type}, ${data}, ${payloadAt} FROM ended ORDER BY id RETURNING id, app_id, run_id)
  SELECT run_id AS "runId", pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id) FROM entry`;

/** Ends one run. Returns no row if it cannot. `listStatementParameters` returns the values of $1 to $10. */
const FINISH_ONE = `
  WITH ended AS (
    UPDATE run SET state = $3, holder = NULL, finished_at = now(), hosts = $7, sandbox = $9, requests = $10::json,
                   log_id = ${NEXT_ENTRY_ID}
     WHERE id = $1 AND finished_at IS NULL AND holder IS NOT DISTINCT FROM $2::uuid AND ${areSecretsCurrentSql("$8::bigint")}
    RETURNING id, app_id, action_id, log_id),
  ${updateLastRunSql("$2::uuid IS NOT NULL")},
  ${insertEntrySql("$4", "$5", "$6")}`;

/** Ends several runs. Each parameter is an array with a value per run. Locks the runs in the order of their IDs, to prevent deadlocks. */
const FINISH_MANY = `
  WITH ending AS (
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::bigint[], $9::text[], $10::text[])
             AS ending (id, holder, state, type, data, payload_at, hosts, secrets_version, sandbox, requests)),
  ended AS (
    UPDATE run SET state = ending.state, holder = NULL, finished_at = now(), hosts = ending.hosts::text[], sandbox = ending.sandbox,
                   requests = ending.requests::json, log_id = ${NEXT_ENTRY_ID}
      FROM ending
     WHERE run.id = ANY (ARRAY(SELECT id FROM run WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE)) AND run.id = ending.id AND run.finished_at IS NULL
       AND run.holder IS NOT DISTINCT FROM ending.holder AND ${areSecretsCurrentSql("ending.secrets_version")}
    RETURNING run.id, run.app_id, run.action_id, run.log_id, ending.holder, ending.type, ending.data, ending.payload_at),
  ${updateLastRunSql("holder IS NOT NULL")},
  ${insertEntrySql("type", "data::json", "payload_at")}`;

const toArrayLiteral = (texts: readonly string[]): string => `{${texts.map((text) => JSON.stringify(text)).join(",")}}`;

function listStatementParameters(run: RunToFinish) {
  const { id, holder, state, type, data, hosts = [], secretsVersion = null, sandbox = null, requests = null } = run;
  checkRunTransition(holder === null ? "queued" : "running", state);
  return [id, holder, state, type, data.text, data.payloadAt, hosts, secretsVersion, sandbox, requests];
}

/** Returns for each run whether this call ended it. False: the run had ended before, or its holder or the app's secrets had changed. */
export async function finishRuns(executor: SqlClient, runs: readonly RunToFinish[]): Promise<boolean[]> {
  const rows = runs.map(listStatementParameters);
  const isSingle = rows.length === 1;
  const columns = (rows[0] ?? []).map((_, column) =>
    rows.map((row) => (Array.isArray(row[column]) ? toArrayLiteral(row[column]) : row[column])),
  );
  const endedRows = await queryPreparedRows<{ runId: number }>(
    executor,
    isSingle ? "finish-run" : "finish-runs",
    isSingle ? FINISH_ONE : FINISH_MANY,
    isSingle ? rows[0]! : columns,
  );
  const ended = new Set(endedRows.map(({ runId }) => runId));
  // If `runs` contains a run twice, only its first entry gets true, because `delete` returns true once per ID.
  return runs.map(({ id }) => ended.delete(id));
}
