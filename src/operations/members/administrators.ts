/** Lists, adds and removes administrators of the service. The last administrator who can sign in cannot be removed. */
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { SERVICE_ADMINISTRATORS_MAX } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { refuseField } from "../../rules/fields.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import { hasAdministratorRight, lockAdministrators } from "../access/administrator-right.js";
import type { Credentials } from "../access/credentials.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "../accounts/access-events.js";
import { revokeInvalidOneTimeLinks } from "../accounts/invalid-links.js";
import { endSessionsIfNoRoleLeft, revokeGrantsWithoutRole } from "../accounts/lost-roles.js";

/* SQL condition: the person has a passphrase, a passkey or an identity at an OpenID provider. */
const CAN_SIGN_IN_SQL = `(passphrase_hash IS NOT NULL OR EXISTS (SELECT FROM passkey WHERE passkey.person_id = person.id)
  OR EXISTS (SELECT FROM person_identity WHERE person_identity.person_id = person.id))`;
const LIST_ADMINISTRATORS = `
  SELECT id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email,
         administrator_since AS "updatedAt"
    FROM person WHERE is_administrator ORDER BY id LIMIT ${SERVICE_ADMINISTRATORS_MAX}`;
const COUNT_OTHER_ADMINISTRATORS = `SELECT count(*)::int AS count FROM person WHERE is_administrator AND id <> $1 AND ${CAN_SIGN_IN_SQL}`;
/** Sets or removes the right. Each change stores a later time than before, so that a precondition (If-Match) with an older ETag fails. */
const SET_ADMINISTRATOR_RIGHT = `
  UPDATE person SET is_administrator = $2,
         administrator_since = greatest(clock_timestamp(), administrator_since + interval '1 millisecond')
   WHERE id = $1`;
const SELECT_ADMINISTRATOR = `SELECT is_administrator AS "isAdministrator", ${CAN_SIGN_IN_SQL} AS "canSignIn" FROM person WHERE id = $1`;

/** Administrator of the service. `updatedAt` is the time at which the person got this right, as ISO 8601 text. */
export interface Administrator extends User {
  updatedAt: string;
}

interface AdministratorState {
  isAdministrator: boolean;
  canSignIn: boolean;
}

async function requirePossibleAdministrator(
  manager: EntityManager,
  personId: number,
  { canSignIn }: AdministratorState,
): Promise<void> {
  if (!canSignIn) refuseField("userId", "the ID of a person who can sign in", personId);
  const administratorRows = await rows(manager, LIST_ADMINISTRATORS);
  if (administratorRows.length < SERVICE_ADMINISTRATORS_MAX) return;
  throw new ActionError(
    "REQUEST_INVALID",
    `the service already has the maximum of ${SERVICE_ADMINISTRATORS_MAX} administrators; remove one first`,
  );
}

export class Administrators {
  constructor(private readonly options: { db: Db; credentials: Credentials }) {}

  private async read(executor: SqlClient = this.options.db): Promise<Administrator[]> {
    const administratorRows = await rows<User & { updatedAt: Date }>(executor, LIST_ADMINISTRATORS);
    return administratorRows.map(({ updatedAt, ...user }) => ({ ...user, updatedAt: updatedAt.toISOString() }));
  }

  /** @throws RESOURCE_CHANGED if `precondition` contains neither the ETag of the administrator nor that of the list of administrators */
  private async requireUnchangedAdministrator(
    manager: EntityManager,
    personId: number,
    precondition: ExpectedVersions,
  ): Promise<void> {
    if (!precondition) return;
    const administrators = await this.read(manager);
    const administrator = administrators.find(({ id }) => id === personId);
    requireExpectedItemVersion(administrator, [administrators], precondition);
  }

  private async changeAdministrator(
    caller: Caller,
    personId: number,
    isAdministrator: boolean,
    precondition?: ExpectedVersions,
  ): Promise<Administrator[]> {
    const { db, credentials } = this.options;
    await db.transaction(async (manager) => {
      await lockAdministrators(manager);
      if (!(await hasAdministratorRight(manager, caller))) throw new ActionError("FORBIDDEN");
      const [person] = await rows<AdministratorState>(manager, SELECT_ADMINISTRATOR, [personId]);
      if (!person) throw new ActionError("NOT_FOUND", "there is no person with this ID");
      await this.requireUnchangedAdministrator(manager, personId, precondition);
      if (person.isAdministrator === isAdministrator) return;
      if (isAdministrator) await requirePossibleAdministrator(manager, personId, person);
      else {
        const [others] = await rows<{ count: number }>(manager, COUNT_OTHER_ADMINISTRATORS, [personId]);
        if (others!.count === 0) throw new ActionError("LAST_ADMINISTRATOR");
      }
      await manager.query(SET_ADMINISTRATOR_RIGHT, [personId, isAdministrator]);
      await revokeInvalidOneTimeLinks(manager, personId);
      if (!isAdministrator) {
        await revokeGrantsWithoutRole(manager, personId);
        await endSessionsIfNoRoleLeft(manager, personId);
      }
      const type = isAdministrator ? "administrator.create" : "administrator.delete";
      const { address } = caller;
      await recordAccessEvent(manager, { type, personId: caller.personId, subjectId: personId, address });
      await credentials.clearCallerCaches(manager);
    });
    await credentials.clearCallerCaches();
    return this.read();
  }

  list() {
    return this.read();
  }

  /**
   * Makes a person an administrator. Returns all administrators.
   * @throws FORBIDDEN; NOT_FOUND; REQUEST_INVALID for a person who cannot sign in, or if there are too many administrators
   */
  add(caller: Caller, personId: number): Promise<Administrator[]> {
    return this.changeAdministrator(caller, personId, true);
  }

  /**
   * Removes the administrator right from a person. Ends the person's OAuth grants on apps where the person has no role. If the person has
   * no role at all, also ends the person's sessions. Returns the remaining administrators.
   * @throws ActionError FORBIDDEN, NOT_FOUND, LAST_ADMINISTRATOR, RESOURCE_CHANGED
   */
  remove(caller: Caller, personId: number, precondition?: ExpectedVersions): Promise<Administrator[]> {
    return this.changeAdministrator(caller, personId, false, precondition);
  }
}
