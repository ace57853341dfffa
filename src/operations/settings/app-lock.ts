/** Locks an app's row, so that changes of the app wait for each other. */
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/**
 * Locks an app's settings and related rows until the transaction ends. All writers lock first, so they cannot deadlock.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockApp(executor: Executor, appId: number): Promise<void> {
  const locked = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  if (locked.length === 0) throw new ActionError("APP_NOT_FOUND");
}
