/** Locks an app's row, so that changes of the app wait for each other. */
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/**
 * Locks an app's row until the transaction ends. Call it before you lock any other row of the app: transactions that do
 * this run one after the other, so they cannot deadlock with each other. Many writers do not call it, such as those of
 * single actions, data sources, entries, runs and messages. This lock does not prevent a deadlock with them.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockApp(executor: Executor, appId: number): Promise<void> {
  const locked = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  if (locked.length === 0) throw new ActionError("APP_NOT_FOUND");
}
