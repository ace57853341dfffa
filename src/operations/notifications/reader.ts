/** Determines the app user who is signed in to a page, as the reader of the app's notifications on this page. */
import type { DataSource } from "typeorm";
import { rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import type { ReadSession } from "../../rules/env-script.js";
import type { ScopeUser } from "../../rules/scope.js";
import { IS_CREDENTIAL_VALID_SQL } from "../access/credential-validity.js";

/**
 * PostgreSQL channel whose messages contain `appId:credentialId`: on the page with this credential, another user has
 * signed in, or the user has signed out.
 */
export const READER_CHANNEL = "svc_reader";

export interface NotificationReader {
  /** Key under which the database stores the reader's devices and the notifications that the reader has read. */
  key: string;
  user: ScopeUser;
  /** True for back ends and editors of the app, which can read all notifications. */
  canReadAll: boolean;
}

export type FindReader = (caller: Caller, appId: number) => Promise<NotificationReader>;

export function createFindReader(sessionOf: ReadSession): FindReader {
  return async function readerOf(caller, appId) {
    const { personId, credentialId, kind, copy } = caller;
    const seesAll = kind !== "live" && kind !== "viewer";
    const { user, entries } = await sessionOf({ appId, personId, credentialId, copy });
    if (entries) {
      const { id, dataSourceId, data } = entries.dataSource;
      return { key: `entry:${dataSourceId}:${id}`, user: { ...data, id, dataSourceId }, canReadAll: seesAll };
    }
    const key = personId === null ? `credential:${credentialId}` : `person:${personId}`;
    return { key, user: user && { ...user }, canReadAll: seesAll };
  };
}

/** Selects the valid credentials among $1, each with its person. Without a person, the person's fields are null. */
const SELECT_VALID_CREDENTIALS = `
  SELECT c.id AS "credentialId", person.id, first_name AS "firstName", last_name AS "lastName", email
    FROM credential AS c LEFT JOIN person ON person.id = c.person_id
   WHERE c.id = ANY ($1::bigint[]) AND ${IS_CREDENTIAL_VALID_SQL}`;

/**
 * Returns the current users of credentials, by the ID of the credential. A credential that is no longer valid, or to
 * which no user is signed in any more, has no entry in the result.
 */
export type ReadUsersOfCredentials = (
  executor: SqlClient,
  appId: number,
  credentialIds: readonly number[],
) => Promise<ReadonlyMap<number, Exclude<ScopeUser, null>>>;

/** Returns the app users who are signed in with the credentials of pages, by the ID of the credential. */
export type ReadSignedInUsers = (
  executor: SqlClient,
  appId: number,
  credentialIds: readonly number[],
) => Promise<ReadonlyMap<number, { id: number; dataSourceId: number; data: Record<string, unknown> }>>;

export function createUsersOfCredentialsReader(readSignedInUsers: ReadSignedInUsers): ReadUsersOfCredentials {
  return async function readUsersOfCredentials(executor, appId, credentialIds) {
    const users = new Map<number, Exclude<ScopeUser, null>>();
    if (credentialIds.length === 0) return users;
    const validCredentials = await rows<{ credentialId: number; id: number | null }>(
      executor,
      SELECT_VALID_CREDENTIALS,
      [credentialIds],
    );
    const signedInUsers = await readSignedInUsers(executor, appId, credentialIds);
    for (const { credentialId, ...person } of validCredentials) {
      const appUser = signedInUsers.get(credentialId);
      if (appUser) users.set(credentialId, { ...appUser.data, id: appUser.id, dataSourceId: appUser.dataSourceId });
      else if (person.id !== null) users.set(credentialId, person);
    }
    return users;
  };
}

/** Notifies every process of the service that another user is signed in to the page with this credential. */
export async function notifyReaderChange(db: DataSource, appId: number, credentialId: number): Promise<void> {
  await rows(db, `SELECT pg_notify('${READER_CHANNEL}', $1)`, [`${appId}:${credentialId}`]);
}
