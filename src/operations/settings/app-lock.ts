/** Locks an app's row or its organization's row, so that changes wait for each other. */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/**
 * Locks the organization of an app until the transaction ends. Call this function before a transaction gives a person
 * something on the app, before `lockApp`, and before the check that the person belongs to the organization. A removal of
 * a member holds the same lock. So it either finds all that the person has, or the check finds that the person is
 * removed.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockOrganizationOfApp(executor: SqlClient, appId: number): Promise<void> {
  const sql = "SELECT FROM organization WHERE id = (SELECT organization_id FROM app WHERE id = $1) FOR NO KEY UPDATE";
  if ((await rows(executor, sql, [appId])).length === 0) throw new ActionError("APP_NOT_FOUND");
}

/**
 * Locks an app's row until the transaction ends. Call this function before you lock any other row of the app.
 * Transactions with this lock run one after the other, so they cannot deadlock with each other. Code that removes
 * or unpublishes one action, changes a data source, or writes entries, runs or messages, does not take this lock.
 * Deadlocks with such code are still possible.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockApp(executor: SqlClient, appId: number): Promise<void> {
  const locked = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  if (locked.length === 0) throw new ActionError("APP_NOT_FOUND");
}
