/**
 * Stores people's identities at OpenID providers. Creates an account at the first sign-in, and sets a person's role
 * from the groups that the provider reports.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import { isRoleAbove, type Role } from "../../rules/roles.js";
import type { Credentials } from "../access/credentials.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "./access-events.js";
import { revokeInvalidOneTimeLinks, revokeReceivedInvitations } from "./invalid-links.js";
import { revokeLostAccess } from "./lost-roles.js";
import { requireMemberCapacity } from "./member-limit.js";
import type { SignedInRequest } from "./passkeys.js";
import { lockSignInMethods, requireSignInMethod } from "./sign-in-methods.js";

/** Identity that an OpenID provider has confirmed, with the data that the provider sent about the person. */
export interface ProvenIdentity {
  issuer: string;
  subject: string;
  /** E-mail address; null if the provider sent no valid address, or marked the address as not verified. */
  email: string | null;
  firstName: string;
  lastName: string;
  /** Role that the person's groups at the provider grant; null if no group grants a role. */
  role: Role | null;
  /**
   * Organization for a new account; null if no mapping matches. The configuration maps values of a claim of the provider to organizations.
   * If no claim is configured, it maps the domain of the verified e-mail address.
   */
  organizationId: number | null;
}

/** Identity at an OpenID provider with which a person can sign in to their account. Times are ISO 8601. */
export interface ProviderIdentity {
  id: number;
  provider: string;
  issuer: string;
  createdAt: string;
  /** Equals `createdAt`: requests can remove an identity, but not change it. */
  updatedAt: string;
  lastUsedAt: string | null;
}

/* Locks an identity, so that only one of two concurrent first sign-ins creates the account. */
const LOCK_IDENTITY = "SELECT pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 7))";
const SELECT_IDENTITY_OWNER = `
  SELECT person_id AS "personId", manages_roles AS "managesRoles" FROM person_identity WHERE issuer = $1 AND subject = $2`;
const MARK_IDENTITY_USED = `
  UPDATE person_identity SET last_used_at = now() WHERE issuer = $1 AND subject = $2 AND person_id = $3 RETURNING id`;
const INSERT_IDENTITY = `
  INSERT INTO person_identity (person_id, issuer, subject, provider, manages_roles, last_used_at) VALUES ($1, $2, $3, $4, $5, now())`;
const INSERT_PERSON = `
  INSERT INTO person (organization_id, first_name, last_name, email)
  SELECT id, $2, $3, $4 FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1
  RETURNING id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email`;
const SET_ROLE = `
  INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, $3)
  ON CONFLICT (organization_id, person_id) DO UPDATE SET role = excluded.role,
    updated_at = greatest(clock_timestamp(), organization_member.updated_at + interval '1 millisecond') WHERE organization_member.role <> excluded.role
  RETURNING role`;
const REMOVE_ROLE = "DELETE FROM organization_member WHERE organization_id = $1 AND person_id = $2 RETURNING role";
/**
 * Locks an organization, so that its owners cannot change. Execute COUNT_OTHER_OWNERS as a separate statement after this one: a single
 * statement would count the owners as they were before it waited for the lock.
 */
const LOCK_ORGANIZATION = "SELECT FROM organization WHERE id = $1 FOR NO KEY UPDATE";
const COUNT_OTHER_OWNERS = `
  SELECT (SELECT count(*) FROM organization_member WHERE organization_id = $1 AND role = 'owner' AND person_id <> $2) AS "otherOwnerCount",
         (SELECT role FROM organization_member WHERE organization_id = $1 AND person_id = $2) AS "roleBefore"`;
const SELECT_IDENTITIES = `
  SELECT id, provider, issuer, created_at AS "createdAt", last_used_at AS "lastUsedAt"
    FROM person_identity WHERE person_id = $1 ORDER BY id LIMIT 100`;
const DELETE_IDENTITY = "DELETE FROM person_identity WHERE id = $1 AND person_id = $2 RETURNING provider";

export class OpenIdIdentityStore {
  constructor(private readonly options: { db: Db; credentials: Credentials }) {}

  /** Returns the account of an identity; null if no account has this identity. Locks the identity until the transaction ends. */
  async lockAndFindOwner({ issuer, subject }: ProvenIdentity, executor: SqlClient) {
    await rows(executor, LOCK_IDENTITY, [issuer, subject]);
    type IdentityOwner = { personId: number; managesRoles: boolean };
    return (await rows<IdentityOwner>(executor, SELECT_IDENTITY_OWNER, [issuer, subject]))[0] ?? null;
  }

  /** Locks the person's sign-in methods, and marks the identity as used. Returns false if the person has removed the identity. */
  async markUsed({ issuer, subject }: ProvenIdentity, personId: number, executor: SqlClient): Promise<boolean> {
    await lockSignInMethods(executor, personId);
    return (await rows(executor, MARK_IDENTITY_USED, [issuer, subject, personId])).length > 0;
  }

  async insert(
    executor: SqlClient,
    personId: number,
    provider: string,
    { issuer, subject }: ProvenIdentity,
    { managesRoles }: { managesRoles: boolean },
  ): Promise<void> {
    await rows(executor, INSERT_IDENTITY, [personId, issuer, subject, provider, managesRoles]);
  }

  /**
   * Creates a person in the organization of the identity. If `organizationId` is null, uses the organization with the lowest ID. Returns
   * null if there is no such organization.
   */
  async createPerson(executor: SqlClient, identity: ProvenIdentity): Promise<User | null> {
    const { organizationId, firstName, lastName, email } = identity;
    return (await rows<User>(executor, INSERT_PERSON, [organizationId, firstName, lastName, email]))[0] ?? null;
  }

  /**
   * Sets the person's role in their organization. If `role` is null, removes the role and the access that depended on it. The last owner of
   * an organization keeps the role owner.
   * @param address network address of the sign-in, for the audit log
   * @throws REQUEST_INVALID if the organization has the maximum number of members
   */
  async setRole(
    executor: SqlClient,
    { id, organizationId }: User,
    role: Role | null,
    address: string | undefined,
  ): Promise<void> {
    await rows(executor, LOCK_ORGANIZATION, [organizationId]);
    type OwnershipState = { otherOwnerCount: number; roleBefore: Role | null };
    const [ownership] = await rows<OwnershipState>(executor, COUNT_OTHER_OWNERS, [organizationId, id]);
    const { otherOwnerCount, roleBefore } = ownership!;
    if (roleBefore === "owner" && otherOwnerCount === 0 && role !== "owner") return;
    const scope = { organizationId, appId: null };
    if (role !== null) await requireMemberCapacity(executor, scope, id);
    const changedRows =
      role === null
        ? await rows(executor, REMOVE_ROLE, [organizationId, id])
        : await rows(executor, SET_ROLE, [organizationId, id, role]);
    if (changedRows.length === 0) return;
    if (role === null) await revokeLostAccess(executor, scope, id);
    else await revokeInvalidOneTimeLinks(executor, id);
    if (role !== null && roleBefore !== null && isRoleAbove(roleBefore, role))
      await revokeReceivedInvitations(executor, scope, id);
    await recordAccessEvent(executor, {
      type: "member.role",
      subjectId: id,
      organizationId,
      address,
      data: { role, by: "openid" },
    });
    await this.options.credentials.clearCallerCaches(executor);
  }

  async list(personId: number, executor: SqlClient = this.options.db): Promise<ProviderIdentity[]> {
    type Row = Pick<ProviderIdentity, "id" | "provider" | "issuer"> & { createdAt: Date; lastUsedAt: Date | null };
    return (await rows<Row>(executor, SELECT_IDENTITIES, [personId])).map(({ createdAt, lastUsedAt, ...row }) => ({
      ...row,
      createdAt: createdAt.toISOString(),
      updatedAt: createdAt.toISOString(),
      lastUsedAt: lastUsedAt?.toISOString() ?? null,
    }));
  }

  /**
   * Removes an identity from the caller's account.
   * @throws NOT_FOUND; RESOURCE_CHANGED; REQUEST_INVALID if the person could not sign in without this identity
   */
  async remove({ caller, address }: SignedInRequest, id: number, precondition?: ExpectedVersions): Promise<void> {
    const { personId } = caller;
    await this.options.db.transaction(async (manager) => {
      await lockSignInMethods(manager, personId);
      const identities = await this.list(personId, manager);
      const identity = identities.find((identity) => identity.id === id);
      if (identity) requireExpectedItemVersion(identity, [identities], precondition);
      const [removed] = await rows<{ provider: string }>(manager, DELETE_IDENTITY, [id, personId]);
      if (!removed) throw new ActionError("NOT_FOUND", "no such identity");
      await requireSignInMethod(manager, personId);
      await recordAccessEvent(manager, {
        type: "person.identity.delete",
        personId,
        subjectId: personId,
        address,
        data: removed,
      });
    });
  }
}
