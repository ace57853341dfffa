/**
 * Lists the members of organizations and apps, sets their roles and removes them. A caller cannot change a role that is above the caller's
 * own role. An organization always keeps at least one owner.
 */
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { requireText } from "../../rules/fields.js";
import {
  computeNextUpdatedAt,
  type ExpectedVersions,
  type ListItemVersion,
  requireExpectedItemVersion,
} from "../../rules/precondition.js";
import { getHighestRole, isRoleAbove, parseRole, type Role, type RoleScope } from "../../rules/roles.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { hasAdministratorRight, isAdministrator, lockAdministratorRight } from "../access/administrator-right.js";
import type { Credentials } from "../access/credentials.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "../accounts/access-events.js";
import {
  isAppOrStageSql,
  lockPeople,
  revokeInvalidOneTimeLinks,
  revokeReceivedInvitations,
} from "../accounts/invalid-links.js";
import { revokeLostAccess } from "../accounts/lost-roles.js";
import { requireMemberCapacity } from "../accounts/member-limit.js";
import { type AuditActor, recordChange } from "../records/audit.js";

/** Member of an organization or app. `lastSeenAt` is ISO 8601 text; null for a person who has never signed in. */
export interface Member {
  user: User;
  role: Role;
  lastSeenAt: string | null;
  updatedAt: string;
}

export const toListItemVersions = (members: readonly Member[]): ListItemVersion[] =>
  members.map(({ user, updatedAt }) => ({ id: user.id, updatedAt }));

/** The person whose role a request changes. `precondition` lists the ETags that the request accepts (`If-Match`). */
export interface MemberChangeTarget {
  scope: RoleScope;
  personId: number;
  precondition?: ExpectedVersions;
}

export interface Organization {
  id: number;
  name: string;
}

/** Selects the roles of the person $3 on the app $2, or in the organization $1 if $2 is null. Only the highest role counts. */
const SELECT_ROLES_IN_SCOPE = `
  SELECT role, of_organization AS "ofOrganization" FROM app_role WHERE app_id = $2 AND person_id = $3
  UNION ALL SELECT role, true FROM organization_member WHERE $2::bigint IS NULL AND organization_id = $1 AND person_id = $3`;

const SELECT_MEMBERS = `
  SELECT person.id, person.organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email,
         last_seen_at AS "lastSeenAt", json_agg(member.role) AS roles, max(member.updated_at) AS "updatedAt"
    FROM person JOIN (
      SELECT person_id, role, updated_at FROM app_member WHERE app_id = $2
      UNION ALL SELECT person_id, 'editor', updated_at FROM app_editor WHERE app_id = $2
      UNION ALL SELECT person_id, role, updated_at FROM organization_member WHERE $2::bigint IS NULL AND organization_id = $1
    ) AS member ON member.person_id = person.id
   GROUP BY person.id ORDER BY person.id`;

/** Selects a row if the person $2 belongs to the organization $1, or has a role in it or on one of its apps. */
const SELECT_MEMBERSHIP = `
  SELECT FROM person WHERE id = $2 AND (organization_id = $1
    OR EXISTS (SELECT FROM organization_member WHERE organization_id = $1 AND person_id = $2)
    OR EXISTS (SELECT FROM app_role JOIN app ON app.id = app_id WHERE app.organization_id = $1 AND person_id = $2))`;

/* Selects the roles that a removal deletes. `isOnStage` is true for a role on a stage of the app $2. */
const SELECT_ROLE_OF_PERSON = `
  SELECT role, $2::bigint IS NOT NULL AND app_id <> $2 AS "isOnStage" FROM app_role JOIN app ON app.id = app_id
   WHERE app.organization_id = $1 AND ($2::bigint IS NULL OR ${isAppOrStageSql("app_id", "$2")}) AND person_id = $3 AND NOT of_organization
  UNION ALL SELECT role, false FROM organization_member WHERE $2::bigint IS NULL AND organization_id = $1 AND person_id = $3`;

const DELETE_APP_ROLES = [
  "DELETE FROM app_editor WHERE app_id = $1 AND person_id = $2 RETURNING updated_at AS at",
  "DELETE FROM app_member WHERE app_id = $1 AND person_id = $2 RETURNING updated_at AS at",
];
/**
 * Statements that delete the roles of the person $2 on the stages of the app $1. Run them after DELETE_APP_ROLES, whose row locks prevent
 * the creation of a new stage until the transaction ends.
 */
const DELETE_STAGE_ROLES = ["app_editor", "app_member"].map(
  (table) =>
    `DELETE FROM ${table} WHERE app_id IN (SELECT app_id FROM app_stage WHERE root_id = $1) AND person_id = $2`,
);
const DELETE_ORGANIZATION_ROLES = [
  "DELETE FROM organization_member WHERE organization_id = $1 AND person_id = $2",
  "DELETE FROM app_editor USING app WHERE app.id = app_id AND app.organization_id = $1 AND person_id = $2",
  "DELETE FROM app_member USING app WHERE app.id = app_id AND app.organization_id = $1 AND person_id = $2",
];
const SET_ORGANIZATION_ROLE = `
  INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, $3)
  ON CONFLICT (organization_id, person_id) DO UPDATE
  SET role = excluded.role, updated_at = greatest(clock_timestamp(), organization_member.updated_at + interval '1 millisecond')`;
const INSERT_APP_MEMBER = "INSERT INTO app_member (app_id, person_id, role, updated_at) VALUES ($1, $2, $3, $4)";
const INSERT_APP_EDITOR = "INSERT INTO app_editor (app_id, person_id, updated_at) VALUES ($1, $2, $3)";

/** Selects the roles of the person $3 that are stored for the app $2, or for the organization $1 if $2 is null. */
const SELECT_STORED_ROLES = `
  SELECT role FROM app_member WHERE app_id = $2 AND person_id = $3
  UNION ALL SELECT 'editor' FROM app_editor WHERE app_id = $2 AND person_id = $3
  UNION ALL SELECT role FROM organization_member WHERE $2::bigint IS NULL AND organization_id = $1 AND person_id = $3`;

/* Selects every organization of the person $1. The role is null for a person who only belongs to the organization. */
const SELECT_ALL_ROLES = `
  SELECT organization_id AS "organizationId", json_agg(role) AS roles FROM (
    SELECT organization_id, NULL AS role FROM person WHERE id = $1
    UNION ALL SELECT organization_id, role FROM organization_member WHERE person_id = $1
    UNION ALL SELECT app.organization_id, role FROM app_role JOIN app ON app.id = app_id
               WHERE person_id = $1 AND NOT of_organization) AS all_roles GROUP BY organization_id`;
const SELECT_SCOPE_OF_APP = `SELECT organization_id AS "organizationId" FROM app WHERE id = $1`;
const SELECT_ORGANIZATIONS =
  "SELECT id, name FROM organization WHERE $1 OR id = ANY ($2::bigint[]) ORDER BY id LIMIT 1000";

export const createTooHighRoleError = (roleText: string): ActionError =>
  new ActionError("FORBIDDEN", `permission denied: ${roleText} is above your own role`);

/** @throws LAST_OWNER if the person is the only owner of the organization; never for a role on an app */
async function requireOtherOwner(manager: EntityManager, { organizationId, appId }: RoleScope, personId: number) {
  if (appId !== null) return;
  const sql = "SELECT person_id AS id FROM organization_member WHERE organization_id = $1 AND role = 'owner'";
  const otherOwners = await rows<{ id: number }>(manager, sql, [organizationId]);
  if (otherOwners.length === 1 && otherOwners[0]!.id === personId) throw new ActionError("LAST_OWNER");
}

async function listMembers(executor: SqlClient, { organizationId, appId }: RoleScope): Promise<Member[]> {
  type Row = User & { lastSeenAt: Date | null; roles: Role[]; updatedAt: Date };
  const memberRows = await rows<Row>(executor, SELECT_MEMBERS, [organizationId, appId]);
  return memberRows.map(({ lastSeenAt, roles, updatedAt, ...user }) => ({
    user,
    role: getHighestRole(roles)!,
    lastSeenAt: lastSeenAt?.toISOString() ?? null,
    updatedAt: updatedAt.toISOString(),
  }));
}

/** @throws ActionError RESOURCE_CHANGED if `precondition` contains neither the ETag of the member nor that of the list of members */
async function requireUnchangedMember(
  manager: EntityManager,
  scope: RoleScope,
  personId: number,
  precondition: ExpectedVersions,
) {
  if (!precondition) return;
  const members = toListItemVersions(await listMembers(manager, scope));
  requireExpectedItemVersion(
    members.find(({ id }) => id === personId),
    [members],
    precondition,
  );
}

export class Members {
  constructor(private readonly options: { db: Db; credentials: Credentials }) {}

  /**
   * True if the caller ranks above the person. Always false if the person is an administrator; otherwise true if the caller is one. Other
   * callers must be owner or admin in each organization of the person, with a role above all roles of the person there. Reads the roles
   * from the database.
   */
  private async outranksPerson(manager: EntityManager, caller: Caller, personId: number): Promise<boolean> {
    if (await isAdministrator(manager, personId)) return false;
    if (await hasAdministratorRight(manager, caller)) return true;
    type RolesInOrganization = { organizationId: number; roles: (Role | null)[] };
    for (const { organizationId, roles } of await rows<RolesInOrganization>(manager, SELECT_ALL_ROLES, [personId])) {
      const callerRole = await this.readRoleInScope(manager, { organizationId, appId: null }, caller.personId);
      const isManager = callerRole === "owner" || callerRole === "admin";
      if (!isManager || roles.some((role) => role !== null && !isRoleAbove(callerRole, role))) return false;
    }
    return true;
  }

  async readRoleInScope(manager: EntityManager, scope: RoleScope, personId: number | null): Promise<Role | null> {
    const roleRows = await rows<{ role: Role }>(manager, SELECT_ROLES_IN_SCOPE, [
      scope.organizationId,
      scope.appId,
      personId,
    ]);
    return getHighestRole(roleRows.map(({ role }) => role));
  }

  /**
   * Returns the caller's role from the database, because `caller` may come from a cache. An administrator of the service counts as owner.
   * Call this function after `lockOrganization`, so that no other request can change the role until the transaction ends.
   * @throws FORBIDDEN if the role is neither owner nor admin
   */
  async requireManagingRole(manager: EntityManager, caller: Caller, scope: RoleScope): Promise<Role> {
    const role = (await lockAdministratorRight(manager, caller))
      ? "owner"
      : await this.readRoleInScope(manager, scope, caller.personId);
    if (role !== "owner" && role !== "admin") throw new ActionError("FORBIDDEN");
    return role;
  }

  /** Locks an organization, so that changes of its roles and of its apps' roles run one after the other. */
  lockOrganization(manager: EntityManager, { organizationId }: RoleScope) {
    return rows(manager, "SELECT FROM organization WHERE id = $1 FOR NO KEY UPDATE", [organizationId]);
  }

  /** Replaces the person's role on the app, or in the organization if `appId` is null. */
  async writeRole(manager: EntityManager, { organizationId, appId }: RoleScope, personId: number, role: Role) {
    if (appId === null) {
      await manager.query(SET_ORGANIZATION_ROLE, [organizationId, personId, role]);
      await revokeInvalidOneTimeLinks(manager, personId);
      return;
    }
    const deletedUpdateTimes: Date[] = [];
    for (const sql of DELETE_APP_ROLES) {
      for (const { at } of await rows<{ at: Date }>(manager, sql, [appId, personId])) deletedUpdateTimes.push(at);
    }
    const at = computeNextUpdatedAt(deletedUpdateTimes[0]);
    if (role === "editor") await manager.query(INSERT_APP_EDITOR, [appId, personId, at]);
    else await manager.query(INSERT_APP_MEMBER, [appId, personId, role, at]);
    await revokeInvalidOneTimeLinks(manager, personId);
  }

  private async hasExactRole(
    manager: EntityManager,
    { organizationId, appId }: RoleScope,
    personId: number,
    role: Role,
  ): Promise<boolean> {
    const storedRoles = await rows<{ role: Role }>(manager, SELECT_STORED_ROLES, [organizationId, appId, personId]);
    return storedRoles.length === 1 && storedRoles[0]!.role === role;
  }

  async recordRoleChange(
    manager: EntityManager,
    caller: AuditActor & { address?: string | undefined },
    { organizationId, appId }: RoleScope,
    change: { type: string; subjectId: number; data: Record<string, unknown> },
  ): Promise<void> {
    throwIfUnknownField(caller);
    const { personId, credentialId, address } = caller;
    const { type, subjectId, data } = change;
    await recordAccessEvent(manager, { type, organizationId, personId, subjectId, address, data: { ...data, appId } });
    if (appId === null) return;
    await recordChange(manager, { personId, credentialId }, { appId, type, data: { ...data, userId: subjectId } });
  }

  list(scope: RoleScope): Promise<Member[]> {
    return listMembers(this.options.db, scope);
  }

  /**
   * Sets the role of a person who belongs to the organization, or has a role in it or on one of its apps. A lower role than before also
   * revokes pending invitations to the person. If the person has this role already, changes nothing.
   * @throws ActionError REQUEST_INVALID; NOT_FOUND; FORBIDDEN if the old or new role is above the caller's role; RESOURCE_CHANGED;
   *   LAST_OWNER
   */
  async set(caller: Caller, { scope, personId, precondition }: MemberChangeTarget, value: unknown): Promise<void> {
    const { db, credentials } = this.options;
    await db.transaction(async (manager) => {
      await this.lockOrganization(manager, scope);
      const callerRole = await this.requireManagingRole(manager, caller, scope);
      const role = parseRole(value, "role");
      const membershipRows = await rows(manager, SELECT_MEMBERSHIP, [scope.organizationId, personId]);
      if (membershipRows.length === 0)
        throw new ActionError("NOT_FOUND", "no person with this ID belongs to this organization");
      const before = await this.readRoleInScope(manager, scope, personId);
      if (isRoleAbove(role, callerRole)) throw createTooHighRoleError(`the role ${role}`);
      if (before !== null && isRoleAbove(before, callerRole))
        throw createTooHighRoleError(`the person's current role (${before})`);
      await requireUnchangedMember(manager, scope, personId, precondition);
      if (await this.hasExactRole(manager, scope, personId, role)) return throwIfUnknownField(caller);
      if (role !== "owner") await requireOtherOwner(manager, scope, personId);
      await requireMemberCapacity(manager, scope, personId);
      await this.writeRole(manager, scope, personId, role);
      if (before !== null && isRoleAbove(before, role)) await revokeReceivedInvitations(manager, scope, personId);
      await this.recordRoleChange(manager, caller, scope, {
        type: "member.update",
        subjectId: personId,
        data: { role, before },
      });
      await credentials.clearCallerCaches(manager);
    });
    await credentials.clearCallerCaches();
  }

  /**
   * Removes a person's role on an app and its stages (copies of the app), or all roles in an organization and on its apps. On apps where no
   * role remains, revokes the tokens that act for the person. Without any role, the person's sessions end.
   * @throws NOT_FOUND, FORBIDDEN, RESOURCE_CHANGED, LAST_OWNER
   */
  async remove(caller: Caller, { scope, personId, precondition }: MemberChangeTarget): Promise<void> {
    const { db, credentials } = this.options;
    const { organizationId, appId } = scope;
    await db.transaction(async (manager) => {
      await this.lockOrganization(manager, scope);
      const callerRole = await this.requireManagingRole(manager, caller, scope);
      type RoleInScope = { role: Role; isOnStage: boolean };
      const rolesInScope = await rows<RoleInScope>(manager, SELECT_ROLE_OF_PERSON, [organizationId, appId, personId]);
      const before = getHighestRole(rolesInScope.filter(({ isOnStage }) => !isOnStage).map(({ role }) => role));
      if (before === null)
        throw new ActionError(
          "NOT_FOUND",
          "this person is not a member of this organization or app, so there is no role to remove",
        );
      const tooHighRole = rolesInScope.find(({ role }) => isRoleAbove(role, callerRole));
      if (tooHighRole) {
        const { role, isOnStage } = tooHighRole;
        throw createTooHighRoleError(`the person's role (${role}${isOnStage ? " on a stage of this app" : ""})`);
      }
      await requireUnchangedMember(manager, scope, personId, precondition);
      await requireOtherOwner(manager, scope, personId);
      for (const sql of appId === null ? DELETE_ORGANIZATION_ROLES : [...DELETE_APP_ROLES, ...DELETE_STAGE_ROLES]) {
        await manager.query(sql, [appId ?? organizationId, personId]);
      }
      await revokeLostAccess(manager, scope, personId);
      await this.recordRoleChange(manager, caller, scope, {
        type: "member.delete",
        subjectId: personId,
        data: { before },
      });
      await credentials.clearCallerCaches(manager);
    });
    await credentials.clearCallerCaches();
  }

  /**
   * Checks that the caller may reset the person's passphrase: the caller must be an administrator of the service, or an owner or admin
   * with a higher role in each organization of the person. If the person is an administrator of the service, no caller may.
   * Locks both people, so that no role changes until the transaction ends. @throws ActionError FORBIDDEN
   */
  async requireHigherRole(manager: EntityManager, caller: Caller, personId: number): Promise<void> {
    await lockPeople(manager, [caller.personId, personId]);
    if (await this.outranksPerson(manager, caller, personId)) return;
    throw new ActionError(
      "FORBIDDEN",
      "permission denied: this person must not be an administrator of the service, and must have a role below your own role in each of the person's organizations",
    );
  }

  /** Checks that the person belongs to the organization, or has a role in it or on one of its apps. @throws NOT_FOUND */
  async requireMembership(organizationId: number, personId: number): Promise<void> {
    if ((await rows(this.options.db, SELECT_MEMBERSHIP, [organizationId, personId])).length > 0) return;
    throw new ActionError("NOT_FOUND", "no person with this ID belongs to this organization");
  }

  /** Returns the ID of an app, with the ID of its organization. @throws APP_NOT_FOUND */
  async requireScopeOfApp(appId: number): Promise<RoleScope> {
    const [app] = await rows<{ organizationId: number }>(this.options.db, SELECT_SCOPE_OF_APP, [appId]);
    if (!app) throw new ActionError("APP_NOT_FOUND");
    return { organizationId: app.organizationId, appId };
  }

  /** Returns the IDs of an app and its organization; null if the app does not belong to this organization. */
  async findScopeInOrganization(organizationId: number, appId: number): Promise<RoleScope | null> {
    const [app] = await rows<{ organizationId: number }>(this.options.db, SELECT_SCOPE_OF_APP, [appId]);
    return app?.organizationId === organizationId ? { organizationId, appId } : null;
  }

  /** Lists at most 1,000 organizations of the caller, with the caller's roles. An administrator gets all organizations. */
  async listOrganizations(caller: Caller): Promise<(Organization & { role: Role })[]> {
    const isAdmin = caller.kind === "admin";
    const organizationRows = await rows<Organization>(this.options.db, SELECT_ORGANIZATIONS, [
      isAdmin,
      [...caller.organizations.keys()],
    ]);
    return organizationRows.map(({ id, name }) => ({
      id,
      name,
      role: isAdmin ? "owner" : caller.organizations.get(id)!,
    }));
  }

  /** Creates an organization with the caller as its owner. @throws REQUEST_INVALID; FORBIDDEN if the caller is no administrator */
  async createOrganization(caller: Caller, name: unknown): Promise<Organization> {
    const { db, credentials } = this.options;
    const text = requireText(name, "name");
    const newOrganization = await db.transaction(async (manager) => {
      if (!(await lockAdministratorRight(manager, caller))) throw new ActionError("FORBIDDEN");
      const sql = "INSERT INTO organization (name) VALUES ($1) RETURNING id, name";
      const [organization] = await rows<Organization>(manager, sql, [text]);
      const scope = { organizationId: organization!.id, appId: null };
      if (caller.personId !== null) await this.writeRole(manager, scope, caller.personId, "owner");
      throwIfUnknownField(caller);
      const { personId, address } = caller;
      await recordAccessEvent(manager, {
        type: "organization.create",
        ...scope,
        personId,
        address,
        data: { name: text },
      });
      return organization!;
    });
    await credentials.clearCallerCaches();
    return newOrganization;
  }
}
