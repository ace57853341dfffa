/**
 * Reads and writes the rows of invitations. Each invitation has a one-time link, and is pending until this link is used, revoked or
 * expired.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { Role, RoleScope } from "../../rules/roles.js";

/** Invitation as the API returns it. Times are ISO 8601 text. */
export interface Invitation {
  id: number;
  organizationId: number;
  /** Null if the role applies to the whole organization. */
  appId: number | null;
  email: string;
  role: Role;
  /** ID of the person who created the invitation; null if the creator was not a person or was deleted. */
  createdBy: number | null;
  createdAt: string;
  /** Always equal to `createdAt`, because an invitation never changes. */
  updatedAt: string;
  expiresAt: string;
}

const INVITATION_COLUMNS = `
  invitation.id, invitation.organization_id AS "organizationId", app_id AS "appId", invitation.email, role,
  link.created_by AS "createdBy", link.created_at AS "createdAt", link.expires_at AS "expiresAt"`;
const INVITATION_WITH_LINK = "invitation JOIN one_time_link link ON link.id = link_id";
const IS_PENDING_SQL = "link.used_at IS NULL AND link.revoked_at IS NULL AND link.expires_at > now()";

type InvitationRow = Omit<Invitation, "createdAt" | "updatedAt" | "expiresAt"> & { createdAt: Date; expiresAt: Date };

const toInvitation = ({ createdAt, expiresAt, ...row }: InvitationRow): Invitation => ({
  ...row,
  createdAt: createdAt.toISOString(),
  updatedAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});

async function findInvitations(executor: SqlClient, condition: string, values: unknown[]): Promise<Invitation[]> {
  const sql = `SELECT ${INVITATION_COLUMNS} FROM ${INVITATION_WITH_LINK} WHERE ${condition} ORDER BY invitation.id DESC`;
  return (await rows<InvitationRow>(executor, sql, values)).map(toInvitation);
}

/** Lists the pending invitations of an organization, the newest first. If `appId` is not null, lists only invitations to this app. */
export const listPendingInvitations = (
  executor: SqlClient,
  { organizationId, appId }: RoleScope,
): Promise<Invitation[]> =>
  findInvitations(
    executor,
    `${IS_PENDING_SQL} AND invitation.organization_id = $1 AND ($2::bigint IS NULL OR app_id = $2)`,
    [organizationId, appId],
  );

export const findPendingInvitation = async (executor: SqlClient, organizationId: number, id: number) =>
  (
    await findInvitations(executor, `${IS_PENDING_SQL} AND invitation.organization_id = $1 AND invitation.id = $2`, [
      organizationId,
      id,
    ])
  )[0];

export const readInvitationByLinkId = async (executor: SqlClient, linkId: number): Promise<Invitation> =>
  (await findInvitations(executor, "link_id = $1", [linkId]))[0]!;

const INSERT_INVITATION = `
  INSERT INTO invitation (link_id, organization_id, app_id, email, role) VALUES ($1, $2, $3, $4, $5)`;

export async function insertInvitation(
  executor: SqlClient,
  linkId: number,
  { organizationId, appId }: RoleScope,
  { email, role }: { email: string; role: Role },
): Promise<Invitation> {
  await rows(executor, INSERT_INVITATION, [linkId, organizationId, appId, email, role]);
  return readInvitationByLinkId(executor, linkId);
}

const REVOKE_INVITATION = `
  UPDATE one_time_link AS link SET revoked_at = now() FROM invitation
   WHERE link_id = link.id AND invitation.id = $1 AND ${IS_PENDING_SQL} RETURNING link.id`;

/** Returns false if the invitation was already accepted or revoked, or has expired. */
export const revokeInvitation = async (executor: SqlClient, id: number): Promise<boolean> =>
  (await rows(executor, REVOKE_INVITATION, [id])).length > 0;
