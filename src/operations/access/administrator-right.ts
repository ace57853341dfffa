/**
 * Checks the administrator right of a caller, and prevents changes of this right until a transaction ends. Read this file before you change
 * code that adds or removes administrators.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";

const ADMINISTRATORS_KEY = "hashtext('administrators')";
const LOCK_EXCLUSIVELY = `SELECT pg_advisory_xact_lock(${ADMINISTRATORS_KEY})`;
const LOCK_SHARED = `SELECT pg_advisory_xact_lock_shared(${ADMINISTRATORS_KEY})`;
const SELECT_ADMINISTRATOR = "SELECT FROM person WHERE id = $1 AND is_administrator";

/**
 * Takes a lock until the transaction ends, so that transactions that add or remove administrators run one after the other. Call this
 * function before the transaction locks people or one-time links.
 */
export async function lockAdministrators(executor: SqlClient): Promise<void> {
  await rows(executor, LOCK_EXCLUSIVELY);
}

export async function isAdministrator(executor: SqlClient, personId: number | null): Promise<boolean> {
  return (await rows(executor, SELECT_ADMINISTRATOR, [personId])).length > 0;
}

/**
 * True if the caller has the administrator right. For a signed-in person, the function reads the right from the database, because `caller`
 * may come from a cache. A token of kind `admin` always has the right.
 */
export async function hasAdministratorRight(executor: SqlClient, caller: Caller): Promise<boolean> {
  return caller.kind === "admin" && (caller.session === undefined || isAdministrator(executor, caller.personId));
}

/**
 * Returns the same as `hasAdministratorRight`. If the caller is a signed-in administrator, no other transaction can add or remove
 * administrators until this transaction ends. Lock organizations and apps before this call, and people after it.
 */
export async function lockAdministratorRight(executor: SqlClient, caller: Caller): Promise<boolean> {
  if (caller.kind === "admin" && caller.session !== undefined) await rows(executor, LOCK_SHARED);
  return hasAdministratorRight(executor, caller);
}
