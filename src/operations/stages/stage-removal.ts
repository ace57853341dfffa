/**
 * Removes a stage and its data. A short transaction first closes the stage, so that nothing can use it any more. Then
 * the data is deleted in batches, because one statement for all rows could exceed the statement timeout.
 */
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { IS_RUNNING_SQL } from "../../data/run.js";
import type { DataSourceKey } from "../data-sources/entry-rows.js";
import { removeEntriesExcept } from "../data-sources/entry-statements.js";
import type { SourceDefinitions } from "../data-sources/source-definitions.js";
import { EMPTY_PAYLOAD } from "../runs/outcomes.js";
import { cancelQueuedRuns } from "../runs/queued-runs.js";
import { CANCEL_RUN_CHANNEL } from "../runs/run-types.js";

/**
 * Limits each lock wait of a removal to less than PostgreSQL's `deadlock_timeout` of one second. Another transaction
 * may hold a lock on a row of the stage, and wait for a row that the removal has locked. Then the removal fails first,
 * and releases its locks.
 */
const LIMIT_LOCK_WAIT = "SET LOCAL lock_timeout = '200ms'";

/**
 * Value of `app_stage.expires_at` of a closed stage. A closed stage can only be deleted. Its `root_id` is its own ID, so
 * that it belongs to no group, and releases its name.
 */
export const CLOSED_SQL = "'-infinity'::timestamptz";

/**
 * Statements that close the stage $1. They end everything that could use the stage or act in it: actions with their
 * schedules and HTTP triggers, pages, tokens, roles, Git pulls, and messages that are not sent yet. The process that
 * executes a run of the stage cancels it. Messages that a process is sending now are skipped.
 */
const CLOSE_STAGE = [
  "UPDATE app SET published_at = NULL WHERE id = $1",
  "DELETE FROM action WHERE app_id = $1",
  `WITH ended AS (DELETE FROM app_git WHERE app_id = $1 RETURNING credential_id)
   UPDATE credential SET revoked_at = now() FROM ended WHERE credential.id = ended.credential_id`,
  "DELETE FROM oauth_grant WHERE app_id = $1",
  "UPDATE credential SET revoked_at = now() WHERE app_id = $1 AND revoked_at IS NULL",
  ...["app_editor", "app_member", "invitation", "alert_rule", "notification"].map(
    (table) => `DELETE FROM ${table} WHERE app_id = $1`,
  ),
  `DELETE FROM message WHERE id IN (
     SELECT id FROM message WHERE app_id = $1 AND status = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED)`,
  `SELECT pg_notify('${CANCEL_RUN_CHANNEL}', id::text) FROM run WHERE ${IS_RUNNING_SQL} AND app_id = $1`,
];

const SELECT_DATA_SOURCES = `SELECT app_id AS "appId", id FROM data_source WHERE app_id = $1 ORDER BY id`;
const DELETE_OLDEST_VERSION = `
  DELETE FROM data_source_version WHERE app_id = $1 AND id = (
    SELECT id FROM data_source_version WHERE app_id = $1 ORDER BY id LIMIT 1) RETURNING id`;
/** Deletes the closed stage $1. Locks the stage's row before the app, as `closeStage` does. */
const DELETE_CLOSED_STAGE = `
  DELETE FROM app WHERE id IN (SELECT app_id FROM app_stage WHERE app_id = $1 AND expires_at = ${CLOSED_SQL} FOR UPDATE)`;

/** Runs `work` in a transaction whose statements do not wait long for locks. @throws an error of `isLockTimeout` */
export function transactWithShortWaits<T>(db: Db, work: (manager: EntityManager) => Promise<T>): Promise<T> {
  return db.transaction(async (manager) => {
    await rows(manager, LIMIT_LOCK_WAIT);
    return work(manager);
  });
}

/**
 * Closes a stage in the caller's transaction, if its row meets a condition. Returns false and changes nothing if the
 * row does not. Locks the app before its row of `app_stage`, as all transactions that lock both.
 * @param condition SQL condition on the row of `app_stage`. $1 is the ID of the stage, further parameters are `values`
 */
export async function closeStage(
  manager: EntityManager,
  stageId: number,
  condition: string,
  ...values: unknown[]
): Promise<boolean> {
  await rows(manager, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [stageId]);
  const sql = `UPDATE app_stage SET root_id = app_id, expires_at = ${CLOSED_SQL} WHERE app_id = $1 AND ${condition} RETURNING app_id`;
  if ((await rows(manager, sql, [stageId, ...values])).length === 0) return false;
  for (const statement of CLOSE_STAGE) await rows(manager, statement, [stageId]);
  return true;
}

/** Deletes a closed stage and its data. @throws an error of `isLockTimeout` if other requests still use rows of it */
export async function deleteClosedStage(
  db: Db,
  definitions: Pick<SourceDefinitions, "dropIndexes">,
  stageId: number,
): Promise<void> {
  await cancelQueuedRuns(db, stageId, { payload: EMPTY_PAYLOAD });
  for (const source of await rows<DataSourceKey>(db, SELECT_DATA_SOURCES, [stageId]))
    await transactWithShortWaits(db, (manager) => removeEntriesExcept(manager, source, [], { entries: -1, bytes: 0 }));
  while ((await rows(db, DELETE_OLDEST_VERSION, [stageId])).length > 0);
  await transactWithShortWaits(db, (manager) => rows(manager, DELETE_CLOSED_STAGE, [stageId]));
  definitions.dropIndexes({ appId: stageId });
}
