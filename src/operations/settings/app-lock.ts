/** Locks an app's row, so that changes of the app wait for each other. */
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/**
 * Locks an app's row until the transaction ends. Writers of settings and definitions call it before they lock any other
 * row of the app, so they run one after the other and cannot deadlock with each other. Writers of entries, runs and
 * messages do not call it. They wait for it only if they insert a row that refers to an app that is being deleted.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockApp(executor: Executor, appId: number): Promise<void> {
  const locked = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  if (locked.length === 0) throw new ActionError("APP_NOT_FOUND");
}
