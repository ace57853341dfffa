/**
 * How runs end in the ledger: state, log entry and notice in one statement, which those that end together share. Each is fenced by its
 * holder. Knows SQL and states, not what a run does.
 */
import type { DataSource } from "typeorm";
import { type Executor, isDatabaseAway, preparedRows } from "../../data/database.js";
import { createBatches } from "../../engine/batches.js";
import type { Mode } from "../../engine/browser/run.js";
import { type EntryData, LOG_CHANNEL } from "../records/execution-logs.js";

/** How a run ended: its state, and its log entry. */
export interface Ending {
  state: "completed" | "failed" | "cancelled";
  type: "app.task.completed" | "app.task.failed";
  data: EntryData;
  /** `host:port` of each host that the run contacted. */
  hosts?: readonly string[];
  /** Where its code was evaluated on the server; null if it was not. */
  sandbox?: Mode | null;
  /** It stands only where this is the number of the last change of the app's secrets still; null: whatever that is. */
  secretsVersion?: number | null;
}

/** A run with its end; `holder` null: one that is queued. */
export interface EndedRun extends Ending {
  id: number;
  holder: string | null;
}

/** Ends in one statement, of which each has a text of its own: their number is what a connection keeps prepared. */
const TOGETHER = 8;
const STATEMENTS_AT_ONCE = 2;
/** What is larger is sent alone: it holds up nobody else's end. */
const SMALL_CHARACTERS = 64 * 1024;

const COLUMNS = ["id", "holder", "state", "type", "data", "payload_at", "hosts", "secrets_version", "sandbox"];
const TYPES = ["bigint", "uuid", "text", "text", "json", "integer", "text[]", "bigint", "text"];

const secretsStand = (version: string) =>
  `(${version} IS NULL OR ${version} = (SELECT secrets_version FROM app WHERE app.id = run.app_id))`;

/* A run has one entry, since it ends once: its row says which. */
const NEXT_ENTRY = "nextval('execution_log_id_seq')";
const NOTICE = `pg_notify('${LOG_CHANNEL}', app_id || ':' || id || ':' || run_id)`;

/* The columns of one run: all that most statements have, and a tenth cheaper than a list of one. */
const END_ONE = `
  WITH ended AS (
    UPDATE run SET state = $3, holder = NULL, finished_at = now(), hosts = $7, sandbox = $9, log_id = ${NEXT_ENTRY}
     WHERE id = $1 AND finished_at IS NULL AND holder IS NOT DISTINCT FROM $2::uuid AND ${secretsStand("$8::bigint")}
    RETURNING id, app_id, action_id, log_id),
  touched AS (
    UPDATE action SET last_run_at = now() FROM ended WHERE action.id = ended.action_id AND $2::uuid IS NOT NULL),
  entry AS (
    INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
    SELECT log_id, app_id, action_id, id, $4, $5, $6 FROM ended RETURNING id, app_id, run_id)
  SELECT run_id AS "runId", ${NOTICE} FROM entry`;

/* A row a run. Actions are locked in the order of their ids, so that two such statements never wait for each other in a circle. */
function textFor(count: number): string {
  if (count === 1) return END_ONE;
  const parameter = (row: number, column: number) => `$${row * COLUMNS.length + column + 1}::${TYPES[column]}`;
  const all = Array.from({ length: count }, (_, row) => row);
  const given = all.map((row) => `(${COLUMNS.map((_, column) => parameter(row, column)).join(", ")})`);
  return `
  WITH given (${COLUMNS.join(", ")}) AS (VALUES ${given.join(", ")}),
  ended AS (
    UPDATE run SET state = given.state, holder = NULL, finished_at = now(), hosts = given.hosts, sandbox = given.sandbox, log_id = ${NEXT_ENTRY}
      FROM given
     WHERE run.id = ANY (ARRAY[${all.map((row) => parameter(row, 0)).join(", ")}]) AND run.id = given.id
       AND run.finished_at IS NULL AND run.holder IS NOT DISTINCT FROM given.holder AND ${secretsStand("given.secrets_version")}
    RETURNING run.id, run.app_id, run.action_id, run.log_id, given.holder, given.type, given.data, given.payload_at),
  touched AS (
    UPDATE action SET last_run_at = now()
     WHERE id = ANY (ARRAY(SELECT id FROM action WHERE id IN (SELECT action_id FROM ended WHERE holder IS NOT NULL)
                            ORDER BY id FOR NO KEY UPDATE))),
  entry AS (
    INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at)
    SELECT log_id, app_id, action_id, id, type, data, payload_at FROM ended ORDER BY id RETURNING id, app_id, run_id)
  SELECT run_id AS "runId", ${NOTICE} FROM entry`;
}

const TEXTS = Array.from({ length: TOGETHER }, (_, before) => textFor(before + 1));

/** Which of them ended: false for one that had ended or changed hands, or whose secrets had changed. All or, where it throws, none. */
async function endRuns(executor: Executor, runs: readonly EndedRun[]): Promise<boolean[]> {
  const values = runs.flatMap(
    ({ id, holder, state, type, data, hosts = [], secretsVersion = null, sandbox = null }) => {
      return [id, holder, state, type, data.text, data.payloadAt, hosts, secretsVersion, sandbox];
    },
  );
  const text = TEXTS[runs.length - 1]!;
  const written = await preparedRows<{ runId: number }>(executor, `end-runs-${runs.length}`, text, values);
  const ended = new Set(written.map(({ runId }) => runId));
  // Once: whoever else ended the same run here did not.
  return runs.map(({ id }) => ended.delete(id));
}

/** Ends one run: in the transaction of `executor` where one is given, else with others that end at the same moment. */
export function createEndings(db: DataSource): (run: EndedRun, executor?: Executor) => Promise<boolean> {
  const gathered = createBatches<EndedRun, boolean>({
    work: (runs) => endRuns(db, runs),
    most: TOGETHER,
    atOnce: STATEMENTS_AT_ONCE,
    isOfOne: (error) => !isDatabaseAway(error),
  });
  return async (run, executor) => {
    if (!executor && run.data.text.length <= SMALL_CHARACTERS) return gathered.add(run);
    return (await endRuns(executor ?? db, [run]))[0]!;
  };
}
