/** Returns the person behind a credential, with the organizations and apps in which they have a role. */
import { isClosedStageSql } from "../../data/app.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { Role } from "../../rules/roles.js";
import type { User } from "../access/people.js";

export interface Membership {
  id: number;
  name: string;
  role: Role;
}

export interface CallerAccess {
  user: User;
  organizations: Membership[];
  apps: Membership[];
  /** Expiry of the credential in ISO 8601; null if the credential does not expire. */
  expiresAt: string | null;
}

const SELECT_USER = `
  SELECT id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`;
const SELECT_ORGANIZATIONS =
  "SELECT id, name FROM organization WHERE $1 OR id = ANY ($2::bigint[]) ORDER BY id LIMIT 1000";
const SELECT_APPS = `
  SELECT id, name FROM app WHERE ($1 OR id = ANY ($2::bigint[])) AND NOT ${isClosedStageSql("app.id")} ORDER BY id LIMIT 1000`;

export type ReadCallerAccess = (caller: Caller) => Promise<CallerAccess>;

export function createCallerAccessReader({ db }: { db: Db }): ReadCallerAccess {
  /** Returns at most 1,000 organizations or apps of the person. An administrator of the service counts as the owner of all. */
  async function readMemberships(
    sql: string,
    isAdmin: boolean,
    roles: ReadonlyMap<number, Role>,
  ): Promise<Membership[]> {
    const membershipRows = await rows<{ id: number; name: string }>(db, sql, [isAdmin, [...roles.keys()]]);
    return membershipRows.map((row) => ({ ...row, role: isAdmin ? "owner" : roles.get(row.id)! }));
  }

  return async ({ kind, personId, roles, organizations, expiresAt }) => {
    const [user] = await rows<User>(db, SELECT_USER, [personId]);
    if (!user) throw new ActionError("FORBIDDEN");
    const isAdmin = kind === "admin";
    return {
      user,
      organizations: await readMemberships(SELECT_ORGANIZATIONS, isAdmin, organizations),
      apps: await readMemberships(SELECT_APPS, isAdmin, roles),
      expiresAt: Number.isFinite(expiresAt) ? new Date(expiresAt).toISOString() : null,
    };
  };
}
