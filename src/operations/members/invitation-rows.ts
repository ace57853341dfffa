/**
 * Reads rows of invitations. Each belongs to a one-time link, whose state decides whether the invitation is pending.
 * Read this file together with invitations.ts.
 */
import { type Executor, rows } from "../../data/database.js";
import type { Role, RoleScope } from "../../rules/roles.js";

/** A pending invitation. Times are ISO 8601. */
export interface Invitation {
  id: number;
  organizationId: number;
  /** ID of the app; null if the role applies to the whole organization. */
  appId: number | null;
  email: string;
  role: Role;
  /** ID of the person who created the invitation, or null. */
  createdBy: number | null;
  createdAt: string;
  /** Equals `createdAt`: an invitation never changes, it can only be revoked or accepted. */
  updatedAt: string;
  expiresAt: string;
}

const COLUMNS = `
  invitation.id, invitation.organization_id AS "organizationId", app_id AS "appId", invitation.email, role,
  link.created_by AS "createdBy", link.created_at AS "createdAt", link.expires_at AS "expiresAt"`;
const INVITATION_WITH_LINK = "invitation JOIN one_time_link link ON link.id = link_id";
const IS_PENDING = "link.used_at IS NULL AND link.revoked_at IS NULL AND link.expires_at > now()";

type Row = Omit<Invitation, "createdAt" | "updatedAt" | "expiresAt"> & { createdAt: Date; expiresAt: Date };

const toInvitation = ({ createdAt, expiresAt, ...row }: Row): Invitation => ({
  ...row,
  createdAt: createdAt.toISOString(),
  updatedAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});

async function findWhere(executor: Executor, condition: string, values: unknown[]): Promise<Invitation[]> {
  const sql = `SELECT ${COLUMNS} FROM ${INVITATION_WITH_LINK} WHERE ${condition} ORDER BY invitation.id DESC`;
  return (await rows<Row>(executor, sql, values)).map(toInvitation);
}

/**
 * Selects pending invitations of the organization, the newest first. If `appId` is set, selects only invitations to
 * that app.
 */
export const pendingInvitations = (executor: Executor, { organizationId, appId }: RoleScope): Promise<Invitation[]> =>
  findWhere(executor, `${IS_PENDING} AND invitation.organization_id = $1 AND ($2::bigint IS NULL OR app_id = $2)`, [
    organizationId,
    appId,
  ]);

export const pendingInvitation = async (executor: Executor, organizationId: number, id: number) =>
  (
    await findWhere(executor, `${IS_PENDING} AND invitation.organization_id = $1 AND invitation.id = $2`, [
      organizationId,
      id,
    ])
  )[0];

export const invitationOfLink = async (executor: Executor, linkId: number): Promise<Invitation> =>
  (await findWhere(executor, "link_id = $1", [linkId]))[0]!;

const INSERT_INVITATION = `
  INSERT INTO invitation (link_id, organization_id, app_id, email, role) VALUES ($1, $2, $3, $4, $5)`;

export async function insertInvitation(
  executor: Executor,
  linkId: number,
  { organizationId, appId }: RoleScope,
  { email, role }: { email: string; role: Role },
): Promise<Invitation> {
  await rows(executor, INSERT_INVITATION, [linkId, organizationId, appId, email, role]);
  return invitationOfLink(executor, linkId);
}

export const revokeInvitation = (executor: Executor, id: number) =>
  executor.query(
    "UPDATE one_time_link SET revoked_at = now() FROM invitation WHERE link_id = one_time_link.id AND invitation.id = $1",
    [id],
  );
