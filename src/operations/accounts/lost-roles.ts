/**
 * Ends the access of people who lose roles: one-time links, OAuth grants, tokens and sessions. All code that removes a
 * role must call a function of this file.
 */
import type { SqlClient } from "../../data/database.js";
import type { RoleScope } from "../../rules/roles.js";
import { isAppOrStageSql, revokeInvalidOneTimeLinks, revokeReceivedInvitations } from "./invalid-links.js";

const IS_APP_IN_SCOPE = `($2::bigint IS NULL OR ${isAppOrStageSql("app.id", "$2")})`;

/**
 * Revokes the OAuth grants of the person $3 on apps on which the person has no role. $1 limits this to an organization, $2 to an app and
 * its stages; null means no limit. Does nothing for an administrator of the service.
 */
const REVOKE_GRANTS = `
  UPDATE oauth_grant SET revoked_at = now() FROM app
   WHERE app.id = app_id AND ($1::bigint IS NULL OR app.organization_id = $1) AND ${IS_APP_IN_SCOPE}
     AND person_id = $3 AND revoked_at IS NULL
     AND NOT EXISTS (SELECT FROM app_role WHERE app_role.app_id = app.id AND app_role.person_id = $3)
     AND NOT EXISTS (SELECT FROM person WHERE id = $3 AND is_administrator)`;
/**
 * Revokes the tokens of the person $3 on apps of the organization $1 where the person has no role. $2 limits this to an app and its stages;
 * null means no limit. Run tokens stay valid.
 */
const REVOKE_TOKENS = `
  UPDATE credential SET revoked_at = now() FROM app
   WHERE app.id = app_id AND app.organization_id = $1 AND ${IS_APP_IN_SCOPE}
     AND person_id = $3 AND kind <> 'task' AND revoked_at IS NULL
     AND NOT EXISTS (SELECT FROM app_role WHERE app_role.app_id = app.id AND app_role.person_id = $3)`;
const REVOKE_SESSIONS = `
  UPDATE credential SET revoked_at = now()
   WHERE person_id = $1 AND kind = 'editor' AND revoked_at IS NULL
     AND NOT EXISTS (SELECT FROM app_role WHERE person_id = $1)
     AND NOT EXISTS (SELECT FROM organization_member WHERE person_id = $1)
     AND NOT EXISTS (SELECT FROM person WHERE id = $1 AND is_administrator)`;

/**
 * Revokes a person's OAuth grants for apps on which the person has no role. Call this function when an administrator of the service loses
 * this right, before `endSessionsIfNoRoleLeft`: all transactions must lock grants before tokens, so that they cannot deadlock.
 */
export const revokeGrantsWithoutRole = (executor: SqlClient, personId: number) =>
  executor.query(REVOKE_GRANTS, [null, null, personId]);

/** Ends the sessions and editor tokens of a person who has no role left. Does nothing for an administrator of the service. */
export const endSessionsIfNoRoleLeft = (executor: SqlClient, personId: number) =>
  executor.query(REVOKE_SESSIONS, [personId]);

/**
 * Revokes the access that a person loses together with a role: one-time links, OAuth grants, tokens and sessions. The role was in the
 * organization or, if `appId` is set, on this app. Lock the organization first, and call this function after you remove the role, in the
 * same transaction. After the commit, call `clearCallerCaches`.
 */
export async function revokeLostAccess(executor: SqlClient, scope: RoleScope, personId: number): Promise<void> {
  const { organizationId, appId } = scope;
  await revokeInvalidOneTimeLinks(executor, personId);
  await revokeReceivedInvitations(executor, scope, personId);
  await executor.query(REVOKE_GRANTS, [organizationId, appId, personId]);
  await executor.query(REVOKE_TOKENS, [organizationId, appId, personId]);
  await endSessionsIfNoRoleLeft(executor, personId);
}
