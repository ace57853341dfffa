/**
 * Limits the number of people with a role in an organization or on an app. All code that gives a role must call `requireMemberCapacity`.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { MEMBERS_PER_ORGANIZATION_OR_APP_MAX } from "../../limits.js";
import type { RoleScope } from "../../rules/roles.js";

const COUNT_MEMBERS = `SELECT count(DISTINCT person_id) AS count, coalesce(bool_or(person_id = $2), false) AS "isMember"`;
const COUNT_ORGANIZATION_MEMBERS = `${COUNT_MEMBERS} FROM organization_member WHERE organization_id = $1`;
const COUNT_APP_MEMBERS = `${COUNT_MEMBERS} FROM app_role WHERE app_id = $1 AND NOT of_organization`;

/**
 * Checks that the organization can have one more member. If `appId` is set, checks the app instead. Does nothing if the person is a member
 * already. Lock the organization first, and call this function before you write the role, in the same transaction.
 * @throws REQUEST_INVALID
 */
export async function requireMemberCapacity(
  executor: SqlClient,
  { organizationId, appId }: RoleScope,
  personId: number,
): Promise<void> {
  const sql = appId === null ? COUNT_ORGANIZATION_MEMBERS : COUNT_APP_MEMBERS;
  const values = [appId ?? organizationId, personId];
  const [members] = await rows<{ count: number; isMember: boolean }>(executor, sql, values);
  if (members!.isMember || members!.count < MEMBERS_PER_ORGANIZATION_OR_APP_MAX) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `an organization or app can have at most ${MEMBERS_PER_ORGANIZATION_OR_APP_MAX} members; remove one first`,
  );
}
