/** Finds people and their organizations by ID. The editors of apps are in `members/editors.ts`. */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { Person } from "../../data/person.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import { refuseField } from "../../rules/fields.js";

export interface User extends Person {
  organizationId: number;
}

/** SQL condition: the person belongs to the organization of the app, or has a role on the app. */
export const PERSON_BELONGS_TO_APP_SQL = `(person.organization_id = app.organization_id
  OR EXISTS (SELECT FROM app_role WHERE app_role.app_id = app.id AND app_role.person_id = person.id))`;

const SELECT_PERSON = `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`;

export class People {
  constructor(private readonly options: { db: Db }) {}

  /** Returns the data of `Svc.Session.get()` for pages and server runs. */
  readonly session: ReadAppSession = async ({ appId, personId, copy }) => {
    const personRows = personId === null ? [] : await rows<Person>(this.options.db, SELECT_PERSON, [personId]);
    return { appId, user: personRows[0] ?? null, environment: copy };
  };

  /** Returns `id` if this organization exists. If `id` is null, returns the lowest ID of all organizations. @throws REQUEST_INVALID */
  async requireOrganizationId(id: number | null): Promise<number> {
    const [row] = await rows<{ id: number }>(
      this.options.db,
      "SELECT id FROM organization WHERE $1::bigint IS NULL OR id = $1 ORDER BY id LIMIT 1",
      [id],
    );
    return row?.id ?? refuseField("organizationId", "the ID of an existing organization", id);
  }

  /**
   * Checks that the person `userId` belongs to the app's organization or has a role on the app. Null is also valid.
   * @throws REQUEST_INVALID
   */
  async requireAppUser(executor: SqlClient, appId: number, userId: number | null): Promise<void> {
    if (userId === null) return;
    const personRows = await rows(
      executor,
      `SELECT 1 FROM person JOIN app ON ${PERSON_BELONGS_TO_APP_SQL} WHERE person.id = $1 AND app.id = $2`,
      [userId, appId],
    );
    if (personRows.length === 0)
      refuseField(
        "userId",
        "the ID of a person who belongs to this app's organization or has a role on this app",
        userId,
      );
  }
}
