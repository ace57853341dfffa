/** Checks the rights of a caller again, inside the transaction that needs these rights. */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isOperationAllowedForRole, type Operation } from "../../rules/access.js";
import type { Role } from "../../rules/roles.js";
import { lockAdministratorRight } from "./administrator-right.js";

const SELECT_ROLES = "SELECT role FROM app_role WHERE app_id = $1 AND person_id = $2";

/**
 * Checks again that a person may perform the operation on the app: another request may have removed the person's role since the first
 * check. Lock the app and call `lockOrganizationOfApp` first, so that no other request can remove a member until the transaction ends.
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
