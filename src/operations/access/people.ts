/** Organizations, people and editors: made by administrators, named by id. Knows no token's use. */
import type { DataSource } from "typeorm";
import { type Executor, isDuplicate, rows } from "../../data/database.js";
import type { Person } from "../../data/person.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { SessionOf } from "../../rules/env-script.js";
import { optionalId, requiredEmail, requiredText } from "../../rules/fields.js";
import { mustBeInList, type Precondition } from "../../rules/precondition.js";
import { flat, refuseUnknownFields, reportUnknownField } from "../../rules/unknown-fields.js";
import type { Credentials } from "./credentials.js";

/** A person of an organization. */
export interface User extends Person {
  organizationId: number;
}

/** A person with permission to edit an app; `updatedAt` is ISO 8601. */
export interface Editor extends User {
  updatedAt: string;
}

const COLUMNS = `id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email`;

const INSERT = `
  INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, $2, $3, $4) RETURNING ${COLUMNS}`;

/** True for a person of the app's organization: at home there, or with a role in it or on the app. */
const BELONGS = `(person.organization_id = app.organization_id
  OR EXISTS (SELECT FROM app_role WHERE app_role.app_id = app.id AND app_role.person_id = person.id))`;

const ADD_EDITOR = `
  INSERT INTO app_editor (app_id, person_id)
  SELECT app.id, person.id FROM app JOIN person ON ${BELONGS} WHERE app.id = $1 AND person.id = $2
  ON CONFLICT (app_id, person_id) DO UPDATE SET person_id = excluded.person_id RETURNING person_id`;

const PERSON = `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`;

const NEW_USER = flat(["firstName", "lastName", "email", "organizationId"], ["id"]);

/** @throws REQUEST_INVALID unless it is a positive integer */
function requiredId(value: unknown, field: string): number {
  const id = optionalId(value, field);
  if (id === null) throw new ActionError("REQUEST_INVALID", `${field} must be a positive whole number (got nothing)`);
  return id;
}

export type People = ReturnType<typeof createPeople>;

export function createPeople({ db, credentials }: { db: DataSource; credentials: Credentials }) {
  async function organizationOf(id: number | null): Promise<number> {
    const [row] = await rows<{ id: number }>(
      db,
      "SELECT id FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1",
      [id],
    );
    if (!row) throw new ActionError("REQUEST_INVALID", "organizationId names no organization");
    return row.id;
  }

  async function editors(appId: number, executor: Executor = db): Promise<Editor[]> {
    const found = await rows<User & { updatedAt: Date }>(
      executor,
      `SELECT ${COLUMNS}, updated_at AS "updatedAt" FROM person JOIN app_editor ON person_id = person.id
        WHERE app_id = $1 ORDER BY id`,
      [appId],
    );
    return found.map(({ updatedAt, ...user }) => ({ ...user, updatedAt: updatedAt.toISOString() }));
  }

  /** Who a page or a server run works for, as `Svc.Session` reads it (specification, Authentication 3). */
  const session: SessionOf = async ({ appId, personId, copy }) => {
    const found = personId === null ? [] : await rows<Person>(db, PERSON, [personId]);
    return { appId, user: found[0] ?? null, environment: copy };
  };

  return {
    organizationOf,
    editors,
    session,

    /** Makes a person with an editor's session, who edits nothing yet. @throws REQUEST_INVALID */
    async create(data: Record<string, unknown>): Promise<{ user: User; token: string }> {
      const email = requiredEmail(data["email"], "email");
      const names = [requiredText(data["firstName"], "firstName"), requiredText(data["lastName"], "lastName")];
      const organizationId = await organizationOf(optionalId(data["organizationId"], "organizationId"));
      return db.transaction(async (manager) => {
        const [user] = await rows<User>(manager, INSERT, [organizationId, ...names, email]).catch((error: unknown) => {
          throw isDuplicate(error) ? new ActionError("EMAIL_IN_USE") : error;
        });
        refuseUnknownFields(data, NEW_USER);
        const { token } = await credentials.issue({ kind: "editor", personId: user!.id, name: "session" }, manager);
        return { user: user!, token };
      });
    },

    /** Gives a person of the app's organization editor rights; answers with the app's editors. @throws REQUEST_INVALID */
    async addEditor(caller: Caller, appId: number, userId: unknown): Promise<Editor[]> {
      const id = requiredId(userId, "userId");
      await db.transaction(async (manager) => {
        const added = await rows(manager, ADD_EDITOR, [appId, id]);
        if (added.length === 0)
          throw new ActionError("REQUEST_INVALID", "userId is not a member of this app's organization");
        reportUnknownField(caller);
      });
      await credentials.announce();
      return editors(appId);
    },

    /** Takes editor rights away, at once; answers with the editors who are left. @throws REQUEST_INVALID, RESOURCE_CHANGED */
    async removeEditor(
      caller: Caller,
      { appId, precondition }: { appId: number; precondition?: Precondition },
      userId: unknown,
    ): Promise<Editor[]> {
      const id = requiredId(userId, "userId");
      await db.transaction(async (manager) => {
        if (precondition) {
          await rows(manager, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
          const before = await editors(appId, manager);
          mustBeInList(
            before.find((one) => one.id === id),
            [before],
            precondition,
          );
        }
        reportUnknownField(caller);
        await manager.query("DELETE FROM app_editor WHERE app_id = $1 AND person_id = $2", [appId, id]);
      });
      await credentials.announce();
      return editors(appId);
    },

    /** The id, when it is null or a person of the app's organization. @throws REQUEST_INVALID */
    async mustExist(appId: number, userId: number | null): Promise<number | null> {
      if (userId === null) return null;
      const found = await rows(db, `SELECT 1 FROM person JOIN app ON ${BELONGS} WHERE person.id = $1 AND app.id = $2`, [
        userId,
        appId,
      ]);
      if (found.length === 0)
        throw new ActionError("REQUEST_INVALID", "userId is not a member of this app's organization");
      return userId;
    },
  };
}
