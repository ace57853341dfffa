/** Checks the rights of a caller again, in the transaction that depends on them. */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isOperationAllowedForRole, type Operation } from "../../rules/access.js";
import type { Role } from "../../rules/roles.js";
import { lockAdministratorRight } from "./administrator-right.js";

const SELECT_ROLES = "SELECT role FROM app_role WHERE app_id = $1 AND person_id = $2";

/**
 * Checks that a person may still perform the operation on the app. Another request may have removed the person's role since this request
 * was authorized. Call this function after `lockOrganizationOfApp`, so that no other request can remove a member until the transaction
 * ends. Lock the app before the call too. This function takes the lock of `lockAdministratorRight`. If the transaction waited for the app
 * while it held this lock, administrators of all organizations would have to wait.
 * @throws FORBIDDEN
 */
export async function requireCurrentRight(
  executor: SqlClient,
  caller: Caller,
  operation: Operation,
  appId: number,
): Promise<void> {
  if (await lockAdministratorRight(executor, caller)) return;
  const roleRows = await rows<{ role: Role }>(executor, SELECT_ROLES, [appId, caller.personId]);
  if (!roleRows.some(({ role }) => isOperationAllowedForRole(operation, role))) throw new ActionError("FORBIDDEN");
}
