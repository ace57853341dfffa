/**
 * Revokes one-time links that a change of a person's roles makes invalid: invitations and reset links. All code that
 * changes roles must call a function of this file. Also locks the rows of people and of their links.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { RoleScope } from "../../rules/roles.js";

/** Locks people in the order of their IDs. So changes of one person's roles and new reset links run one after the other. */
export const lockPeople = (executor: SqlClient, ids: readonly (number | null)[]) =>
  rows(executor, "SELECT FROM person WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE", [ids]);

/**
 * Returns SQL that is true if the column is the ID of the app `app` or of one of its stages. A stage is a copy of an app, including the
 * roles. So a role that is removed from the app must also end on its stages.
 */
export const isAppOrStageSql = (column: string, app: string): string =>
  `(${column} = ${app} OR ${column} IN (SELECT app_id FROM app_stage WHERE root_id = ${app}))`;

const SELECT_RECEIVED_INVITATION_LINKS = `
  SELECT link_id FROM invitation JOIN person ON lower(person.email) = lower(invitation.email) WHERE person.id = $1`;
/* Locks the unused links that the person $1 created or can use, and the link $2. */
const LOCK_LINKS = `
  SELECT FROM one_time_link
   WHERE (created_by = $1 OR person_id = $1 OR id = $2 OR id IN (${SELECT_RECEIVED_INVITATION_LINKS}))
     AND used_at IS NULL AND revoked_at IS NULL
   ORDER BY id FOR NO KEY UPDATE`;

/**
 * Locks a person first. Then locks the link `linkId`, and all unused links that the person created or can use. Call this function in a
 * transaction before it changes the person and its links. The same order of locks in all transactions prevents deadlocks.
 */
export async function lockPersonAndOneTimeLinks(
  executor: SqlClient,
  personId: number,
  linkId: number | null = null,
): Promise<void> {
  await lockPeople(executor, [personId]);
  await executor.query(LOCK_LINKS, [personId, linkId]);
}

/* Revokes pending invitations that the person $1 has created and may no longer create. */
const REVOKE_INVITATIONS = `
  UPDATE one_time_link SET revoked_at = now() FROM invitation
   WHERE link_id = one_time_link.id AND used_at IS NULL AND revoked_at IS NULL AND created_by = $1
     AND NOT EXISTS (SELECT FROM person WHERE id = $1 AND is_administrator)
     AND NOT EXISTS (
       SELECT FROM (SELECT role FROM organization_member m WHERE m.organization_id = invitation.organization_id AND m.person_id = $1
                    UNION ALL SELECT role FROM app_role r WHERE r.app_id = invitation.app_id AND r.person_id = $1) AS own
        WHERE own.role = 'owner' OR own.role = 'admin' AND invitation.role <> 'owner')`;
/**
 * Revokes pending invitations to the e-mail address of the person $1 in the organization $2. If $3 is set, revokes only those for the app
 * $3 and its stages.
 */
const REVOKE_RECEIVED_INVITATIONS = `
  UPDATE one_time_link SET revoked_at = now() FROM invitation
   WHERE link_id = one_time_link.id AND used_at IS NULL AND revoked_at IS NULL AND link_id IN (${SELECT_RECEIVED_INVITATION_LINKS})
     AND organization_id = $2 AND ($3::bigint IS NULL OR ${isAppOrStageSql("app_id", "$3")})`;
/**
 * Revokes reset links that the person $1 created or can use. The creator of a link must have a higher role than the person who uses it.
 * After a change of roles, this may no longer be true.
 */
const REVOKE_RESETS = `
  UPDATE one_time_link SET revoked_at = now()
   WHERE kind = 'reset' AND (created_by = $1 OR person_id = $1) AND used_at IS NULL AND revoked_at IS NULL`;

/**
 * Revokes pending invitations that the person created and may no longer create. Also revokes reset links that the person created or can
 * use. Call this function after a change of the person's roles, in the same transaction. Otherwise a former administrator could use a link
 * to regain a role, or to take over the account of a person with a higher role.
 */
export async function revokeInvalidOneTimeLinks(executor: SqlClient, personId: number): Promise<void> {
  await lockPersonAndOneTimeLinks(executor, personId);
  await executor.query(REVOKE_INVITATIONS, [personId]);
  await executor.query(REVOKE_RESETS, [personId]);
}

/**
 * Revokes the person's pending invitations to the organization and its apps. If `appId` is set, revokes only those to this app and its
 * stages. Call this function after you remove or lower a role, in the same transaction. Otherwise the person could regain the role with an
 * older invitation. Lock the organization first.
 */
export async function revokeReceivedInvitations(
  executor: SqlClient,
  { organizationId, appId }: RoleScope,
  personId: number,
): Promise<void> {
  await lockPersonAndOneTimeLinks(executor, personId);
  await executor.query(REVOKE_RECEIVED_INVITATIONS, [personId, organizationId, appId]);
}
