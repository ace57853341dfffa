/** Adds and removes editors of an app. Also creates people for administrators of the service. members.ts changes the other roles. */
import type { EntityManager } from "typeorm";
import { type Db, isUniqueViolation, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { parseOptionalId, refuseField, requireEmail, requireText } from "../../rules/fields.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import type { RoleScope } from "../../rules/roles.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { Credentials } from "../access/credentials.js";
import { requireCurrentRight } from "../access/current-rights.js";
import { PERSON_BELONGS_TO_APP_SQL, type People, type User } from "../access/people.js";
import { recordAccessEvent } from "../accounts/access-events.js";
import { revokeInvalidOneTimeLinks } from "../accounts/invalid-links.js";
import { revokeLostAccess } from "../accounts/lost-roles.js";
import { requireMemberCapacity } from "../accounts/member-limit.js";
import { recordChange } from "../records/audit.js";
import { lockOrganizationOfApp } from "../settings/app-lock.js";

/** Person with the role editor on an app. `updatedAt` is the time of the last change of this role, as ISO 8601 text. */
export interface Editor extends User {
  updatedAt: string;
}

const PERSON_COLUMNS = `id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email`;

const INSERT_EDITOR = `
  INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, $2, $3, $4) RETURNING ${PERSON_COLUMNS}`;

const ADD_EDITOR = `
  INSERT INTO app_editor (app_id, person_id)
  SELECT app.id, person.id FROM app JOIN person ON ${PERSON_BELONGS_TO_APP_SQL} WHERE app.id = $1 AND person.id = $2
  ON CONFLICT (app_id, person_id) DO UPDATE SET person_id = excluded.person_id RETURNING xmax = 0 AS "isNew"`;
const REMOVE_EDITOR = "DELETE FROM app_editor WHERE app_id = $1 AND person_id = $2 RETURNING person_id";
/**
 * Removes the roles of the former editor $2 on the stages of the app $1. If the person still has another role on the app, keeps the roles
 * on stages that the person may have because of this other role.
 */
const REMOVE_STAGE_ROLES = [
  ["app_editor", "TRUE", "other.role IN ('owner', 'admin')"],
  ["app_member", "role IN ('operator', 'reader')", "TRUE"],
].map(
  ([table, isRemoved, isKept]) => `
  DELETE FROM ${table} WHERE app_id IN (SELECT app_id FROM app_stage WHERE root_id = $1) AND person_id = $2 AND ${isRemoved}
     AND NOT EXISTS (SELECT FROM app_member AS other WHERE other.app_id = $1 AND other.person_id = $2 AND ${isKept})`,
);
const SELECT_ORGANIZATION_OF_APP = `SELECT organization_id AS "organizationId" FROM app WHERE id = $1`;

const NEW_USER_SHAPE = createFlatShape(["firstName", "lastName", "email", "organizationId"], ["id"]);

/** Returns `value` if it is a positive integer. @throws REQUEST_INVALID for any other value */
function requirePositiveId(value: unknown, field: string): number {
  const id = parseOptionalId(value, field);
  if (id === null) throw new ActionError("REQUEST_INVALID", `${field} must be a positive whole number (got nothing)`);
  return id;
}

interface EditorsOptions {
  db: Db;
  credentials: Credentials;
  people: People;
}

/** Locks the organization of an app. Returns the IDs of the organization and the app. @throws APP_NOT_FOUND */
async function lockScope(manager: EntityManager, appId: number): Promise<RoleScope> {
  await lockOrganizationOfApp(manager, appId);
  const [app] = await rows<{ organizationId: number }>(manager, SELECT_ORGANIZATION_OF_APP, [appId]);
  if (!app) throw new ActionError("APP_NOT_FOUND");
  return { ...app, appId };
}

async function recordEditorChange(
  manager: EntityManager,
  caller: Caller,
  type: "editor.create" | "editor.delete",
  { organizationId, appId }: RoleScope,
  id: number,
): Promise<void> {
  const { personId, address } = caller;
  await recordAccessEvent(manager, { type, organizationId, personId, subjectId: id, address, data: { appId } });
  await recordChange(manager, caller, { appId: appId!, type, data: { userId: id } });
}

export class Editors {
  constructor(private readonly options: EditorsOptions) {}

  private async listEditors(appId: number, executor: SqlClient = this.options.db): Promise<Editor[]> {
    const editorRows = await rows<User & { updatedAt: Date }>(
      executor,
      `SELECT ${PERSON_COLUMNS}, updated_at AS "updatedAt" FROM person JOIN app_editor ON person_id = person.id
        WHERE app_id = $1 ORDER BY id`,
      [appId],
    );
    return editorRows.map(({ updatedAt, ...user }) => ({ ...user, updatedAt: updatedAt.toISOString() }));
  }

  list(appId: number): Promise<Editor[]> {
    return this.listEditors(appId);
  }

  /**
   * Creates a person without a role on any app, and an editor token for this person. Returns both.
   * @throws REQUEST_INVALID, EMAIL_IN_USE
   */
  async createPerson(caller: Caller, data: Record<string, unknown>): Promise<{ user: User; token: string }> {
    const { db, credentials, people } = this.options;
    const email = requireEmail(data["email"], "email");
    const names = [requireText(data["firstName"], "firstName"), requireText(data["lastName"], "lastName")];
    const organizationId = await people.requireOrganizationId(
      parseOptionalId(data["organizationId"], "organizationId"),
    );
    return db.transaction(async (manager) => {
      const [user] = await rows<User>(manager, INSERT_EDITOR, [organizationId, ...names, email]).catch(
        (error: unknown) => {
          throw isUniqueViolation(error) ? new ActionError("EMAIL_IN_USE") : error;
        },
      );
      refuseUnknownFields(data, NEW_USER_SHAPE);
      const { token } = await credentials.issue({ kind: "editor", personId: user!.id, name: "session" }, manager);
      const { personId, address } = caller;
      const creationEvent = { type: "person.create", organizationId, personId, subjectId: user!.id, address };
      await recordAccessEvent(manager, creationEvent);
      return { user: user!, token };
    });
  }

  /**
   * Gives the role editor to a person who belongs to the app's organization or has a role on the app. Returns the app's editors.
   * @throws ActionError APP_NOT_FOUND, REQUEST_INVALID, FORBIDDEN
   */
  async add(caller: Caller, appId: number, userId: unknown): Promise<Editor[]> {
    const { db, credentials } = this.options;
    const id = requirePositiveId(userId, "userId");
    await db.transaction(async (manager) => {
      const scope = await lockScope(manager, appId);
      await requireCurrentRight(manager, caller, "manageEditors", appId);
      await requireMemberCapacity(manager, scope, id);
      const [addedEditor] = await rows<{ isNew: boolean }>(manager, ADD_EDITOR, [appId, id]);
      if (!addedEditor)
        refuseField(
          "userId",
          "the ID of a person who belongs to this app's organization or has a role on this app",
          id,
        );
      throwIfUnknownField(caller);
      if (!addedEditor.isNew) return;
      await revokeInvalidOneTimeLinks(manager, id);
      await recordEditorChange(manager, caller, "editor.create", scope, id);
      await credentials.clearCallerCaches(manager);
    });
    await credentials.clearCallerCaches();
    return this.listEditors(appId);
  }

  /**
   * Removes the role editor on the app and its stages from a person. If the person then has no role on one of these apps, revokes the
   * tokens that act for the person there. Returns the remaining editors.
   * @throws ActionError APP_NOT_FOUND, REQUEST_INVALID, FORBIDDEN, RESOURCE_CHANGED
   */
  async remove(
    caller: Caller,
    { appId, precondition }: { appId: number; precondition?: ExpectedVersions },
    userId: unknown,
  ): Promise<Editor[]> {
    const { db, credentials } = this.options;
    const id = requirePositiveId(userId, "userId");
    await db.transaction(async (manager) => {
      const scope = await lockScope(manager, appId);
      await requireCurrentRight(manager, caller, "manageEditors", appId);
      if (precondition) {
        const before = await this.listEditors(appId, manager);
        requireExpectedItemVersion(
          before.find((editor) => editor.id === id),
          [before],
          precondition,
        );
      }
      throwIfUnknownField(caller);
      const removedRows = await rows(manager, REMOVE_EDITOR, [appId, id]);
      if (removedRows.length === 0) return;
      for (const sql of REMOVE_STAGE_ROLES) await rows(manager, sql, [appId, id]);
      await revokeLostAccess(manager, scope, id);
      await recordEditorChange(manager, caller, "editor.delete", scope, id);
      await credentials.clearCallerCaches(manager);
    });
    await credentials.clearCallerCaches();
    return this.listEditors(appId);
  }
}
