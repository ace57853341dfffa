/**
 * Removes a stage and its data. A short transaction first closes the stage, so that nothing can use it any more. Then the data is deleted
 * in batches, because one statement for all rows could exceed the statement timeout.
 */
import type { EntityManager } from "typeorm";
import { CLOSED_STAGE_EXPIRY_SQL } from "../../data/app.js";
import { type Db, rows } from "../../data/database.js";
import { IS_RUNNING_SQL } from "../../data/run.js";
import type { DataSourceDefinitionStore } from "../data-sources/source-definitions.js";
import { cancelQueuedRuns } from "../history/queued-runs.js";
import { EMPTY_PAYLOAD } from "../runs/outcomes.js";
import { CANCEL_RUN_CHANNEL } from "../runs/run-types.js";

/** Shorter than PostgreSQL's `deadlock_timeout` of one second. So in a deadlock, the removal fails first and releases its locks. */
const LIMIT_LOCK_WAIT = "SET LOCAL lock_timeout = '200ms'";

/** Ends the triggers, pages, Git pulls and roles of the stage $1. Writes few rows, because other transactions can wait for the locks. */
const CLOSE_STAGE = [
  "UPDATE app SET published_at = NULL WHERE id = $1",
  `WITH ended AS (DELETE FROM app_git WHERE app_id = $1 RETURNING credential_id)
   UPDATE credential SET revoked_at = now() FROM ended WHERE credential.id = ended.credential_id`,
  ...["schedule", "http_route", "log_trigger", "app_editor", "app_member", "invitation"].map(
    (table) => `DELETE FROM ${table} WHERE app_id = $1`,
  ),
];
const CANCEL_RUNNING_RUNS = `
  SELECT pg_notify('${CANCEL_RUN_CHANNEL}', id::text) FROM run WHERE ${IS_RUNNING_SQL} AND app_id = $1`;

const BATCH_SIZE = 1_000;
/** Batch size for tables whose rows can have several megabytes. */
const LARGE_ROWS_BATCH_SIZE = 20;

const createReferenceCondition = (table: string, column: string) =>
  `${column} IN (SELECT id FROM ${table} WHERE app_id = $1)`;
const IS_OF_APP = "app_id = $1";
const IS_OF_ACTION = createReferenceCondition("action", "action_id");

type BatchedTable = readonly [table: string, condition: string, batchSize?: number];

/** Tables whose rows make the service send something, and the tables that refer to them. */
const SENDING_TABLES: readonly BatchedTable[] = [
  ["message", IS_OF_APP],
  ["push_delivery", createReferenceCondition("notification", "notification_id")],
  ["push_subscription", IS_OF_APP],
  ["notification_read", createReferenceCondition("notification", "notification_id")],
  ["notification", IS_OF_APP],
  ["notification_read_all", IS_OF_APP],
  ["alert_delivery", createReferenceCondition("alert_rule", "rule_id")],
  ["alert_state", createReferenceCondition("alert_rule", "rule_id")],
  ["alert_rule", IS_OF_APP],
];

/** Tables that can have many or large rows of the app $1. Each table comes before the tables to which it refers. */
export const BATCH_DELETED_TABLES: readonly BatchedTable[] = [
  ...SENDING_TABLES,
  ["http_event", IS_OF_ACTION],
  ["http_refusal", IS_OF_ACTION],
  ["payload_preset", IS_OF_ACTION, LARGE_ROWS_BATCH_SIZE],
  ["action_version", IS_OF_ACTION, LARGE_ROWS_BATCH_SIZE],
  ["kept_script_use", IS_OF_ACTION],
  ["action", IS_OF_APP, LARGE_ROWS_BATCH_SIZE],
  ["idempotency", IS_OF_APP],
  ["run_key", createReferenceCondition("credential", "credential_id")],
  ["oauth_secret", createReferenceCondition("oauth_grant", "grant_id")],
  ["credential", IS_OF_APP],
  ["oauth_grant", IS_OF_APP],
  ["data_source_entry", IS_OF_APP],
  ["data_source_change", IS_OF_APP],
  ["data_source_version_part", IS_OF_APP, LARGE_ROWS_BATCH_SIZE],
  ["data_source_version", IS_OF_APP],
  ["media_file", IS_OF_APP],
  ["media_blob", IS_OF_APP],
  ["app_version_setting", createReferenceCondition("app_version", "app_version_id")],
  ["app_version", IS_OF_APP],
  ["promotion", IS_OF_APP, LARGE_ROWS_BATCH_SIZE],
  ["replaced_setting", IS_OF_APP],
];

/**
 * Returns SQL that deletes a batch of rows. Skips locked rows: the later deletion of the app waits for these locks and also deletes these
 * rows.
 */
const createBatchSql = (table: string, condition: string, batchSize: number) => `
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${condition} LIMIT ${batchSize} FOR UPDATE SKIP LOCKED)) RETURNING 1`;

const DELETE_CLOSED_STAGE = `
  DELETE FROM app WHERE id = (SELECT app_id FROM app_stage WHERE app_id = $1 AND expires_at = ${CLOSED_STAGE_EXPIRY_SQL})`;

/**
 * Runs `work` in a transaction whose statements wait at most 200 ms for a lock.
 * @throws an error for which `isLockTimeout` returns true
 */
export function transactWithShortLockWaits<T>(db: Db, work: (manager: EntityManager) => Promise<T>): Promise<T> {
  return db.transaction(async (manager) => {
    await rows(manager, LIMIT_LOCK_WAIT);
    return work(manager);
  });
}

/**
 * Closes a stage. Returns false and changes nothing if the stage's row of `app_stage` does not meet `condition`. Locks the app before this
 * row, as all transactions that lock both do.
 * @param condition SQL condition. $1 is the ID of the stage, further parameters are `values`
 */
export async function closeStage(
  manager: EntityManager,
  stageId: number,
  condition: string,
  ...values: unknown[]
): Promise<boolean> {
  await rows(manager, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [stageId]);
  const sql = `UPDATE app_stage SET root_id = app_id, expires_at = ${CLOSED_STAGE_EXPIRY_SQL} WHERE app_id = $1 AND ${condition} RETURNING app_id`;
  if ((await rows(manager, sql, [stageId, ...values])).length === 0) return false;
  for (const statement of CLOSE_STAGE) await rows(manager, statement, [stageId]);
  return true;
}

/** Cancels the queued runs of a closed stage until `isOver` returns true, and notifies all processes to cancel its running runs. */
export async function cancelStageRuns(db: Db, stageId: number, isOver: () => boolean): Promise<void> {
  await cancelQueuedRuns(db, stageId, { payload: EMPTY_PAYLOAD, isOver });
  await rows(db, CANCEL_RUNNING_RUNS, [stageId]);
}

type DeleteRows = (sql: string) => Promise<unknown[]>;

const createDeleteRows =
  (db: Db, stageId: number): DeleteRows =>
  (sql) =>
    transactWithShortLockWaits(db, (manager) => rows(manager, sql, [stageId]));

async function deleteBatches(deleteRows: DeleteRows, tables: readonly BatchedTable[], isOver: () => boolean) {
  for (const [table, condition, batchSize = BATCH_SIZE] of tables) {
    const sql = createBatchSql(table, condition, batchSize);
    while (!isOver() && (await deleteRows(sql)).length > 0);
  }
}

/** Deletes what a closed stage could still send: messages, notifications and alerts. */
export const deleteUnsentMessages = (db: Db, stageId: number, isOver: () => boolean): Promise<void> =>
  deleteBatches(createDeleteRows(db, stageId), SENDING_TABLES, isOver);

/**
 * Deletes a closed stage in batches. Stops after a batch when `isOver` returns true; the next call continues.
 * @throws an error for which `isLockTimeout` returns true, if other requests still use rows of the stage
 */
export async function deleteClosedStage(
  db: Db,
  definitions: Pick<DataSourceDefinitionStore, "dropIndexes">,
  stageId: number,
  isOver: () => boolean,
): Promise<void> {
  const deleteRows = createDeleteRows(db, stageId);
  await deleteBatches(deleteRows, BATCH_DELETED_TABLES, isOver);
  if (isOver()) return;
  await deleteRows(DELETE_CLOSED_STAGE);
  definitions.dropIndexes({ appId: stageId });
}
