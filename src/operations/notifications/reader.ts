/** Determines the app user or person who is signed in to a page, as the reader of the app's notifications. */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import { isUserInScope, type NotificationScope, type ScopeUser } from "../../rules/notification-scope.js";
import { IS_CREDENTIAL_VALID_SQL } from "../access/credential-validity.js";

/** PostgreSQL channel. A message `appId:credentialId` reports a sign-in or sign-out on the page with this credential. */
export const PAGE_USER_CHANGE_CHANNEL = "svc_reader";

export const IS_VISITOR_READER_SQL = "reader LIKE 'credential:%'";

export interface NotificationReader {
  /** Key under which the database stores the reader's devices and the notifications that the reader marked as read. */
  key: string;
  user: ScopeUser;
  /** True if no app user or person is signed in: for visitors, and tokens without a person. `key` then begins with `credential:`. */
  isVisitor: boolean;
  /** True for back ends and editors of the app, which can read all notifications. */
  canReadAll: boolean;
}

export type FindNotificationReader = (caller: Caller, appId: number) => Promise<NotificationReader>;

export function createNotificationReaderFinder(readAppSession: ReadAppSession): FindNotificationReader {
  return async function findReader(caller, appId) {
    const { personId, credentialId, kind, copy } = caller;
    const canReadAll = kind !== "live" && kind !== "viewer";
    const { user, entries } = await readAppSession({ appId, personId, credentialId, copy });
    if (entries) {
      const { id, dataSourceId, data } = entries.dataSource;
      return {
        key: `entry:${dataSourceId}:${id}`,
        user: { ...data, id, dataSourceId },
        isVisitor: false,
        canReadAll: canReadAll,
      };
    }
    const key = personId === null ? `credential:${credentialId}` : `person:${personId}`;
    return { key, user: user && { ...user }, isVisitor: personId === null, canReadAll: canReadAll };
  };
}

/** Selects the valid credentials among $1. `hasSignIn` is true if an app user is signed in to the credential's page in the app $2. */
const SELECT_VALID_CREDENTIALS = `
  SELECT c.id AS "credentialId", person.id, first_name AS "firstName", last_name AS "lastName", email,
         EXISTS (SELECT FROM app_user_session AS session WHERE session.credential_id = c.id AND session.app_id = $2) AS "hasSignIn"
    FROM credential AS c LEFT JOIN person ON person.id = c.person_id
   WHERE c.id = ANY ($1::bigint[]) AND ${IS_CREDENTIAL_VALID_SQL}`;

interface ValidCredential {
  credentialId: number;
  hasSignIn: boolean;
  id: number | null;
}

/**
 * Returns the valid credentials whose current user meets the conditions of `scope`. If `scope` is null, returns all credentials, also
 * expired ones.
 */
export type FindCredentialsInScope = (
  executor: SqlClient,
  appId: number,
  credentialIds: readonly number[],
  scope: NotificationScope | null,
) => Promise<ReadonlySet<number>>;

/** Returns the app users who are signed in to pages, by the ID of the page's credential. */
export type ReadSignedInUsers = (
  executor: SqlClient,
  appId: number,
  credentialIds: readonly number[],
) => Promise<ReadonlyMap<number, { id: number; dataSourceId: number; data: Record<string, unknown> }>>;

/** Maximum number of users in memory at once, because the entry of a user can have ENTRY_MAX_BYTES. */
const USERS_PER_STATEMENT = 32;

export function createScopeMatcher(readSignedInUsers: ReadSignedInUsers): FindCredentialsInScope {
  return async function findCredentialsInScope(executor, appId, credentialIds, scope) {
    if (scope === null) return new Set(credentialIds);
    const credentialsInScope = new Set<number>();
    const values = [[...new Set(credentialIds)], appId];
    const validCredentials = await rows<ValidCredential>(executor, SELECT_VALID_CREDENTIALS, values);
    const addIfInScope = ({ credentialId, hasSignIn: _, ...person }: ValidCredential, appUser?: ScopeUser) => {
      const personOrNull = person.id === null ? null : person;
      if (isUserInScope(scope, appUser ?? personOrNull)) credentialsInScope.add(credentialId);
    };
    const [signedIn, others] = [true, false].map((hasSignIn) =>
      validCredentials.filter((credential) => credential.hasSignIn === hasSignIn),
    ) as [ValidCredential[], ValidCredential[]];
    for (const credential of others) addIfInScope(credential);
    for (let start = 0; start < signedIn.length; start += USERS_PER_STATEMENT) {
      const batch = signedIn.slice(start, start + USERS_PER_STATEMENT);
      const batchIds = batch.map(({ credentialId }) => credentialId);
      const users = await readSignedInUsers(executor, appId, batchIds);
      for (const credential of batch) {
        const user = users.get(credential.credentialId);
        addIfInScope(credential, user && { ...user.data, id: user.id, dataSourceId: user.dataSourceId });
      }
    }
    return credentialsInScope;
  };
}

export async function notifyPageUserChange(db: Db, appId: number, credentialId: number): Promise<void> {
  await rows(db, `SELECT pg_notify('${PAGE_USER_CHANGE_CHANNEL}', $1)`, [`${appId}:${credentialId}`]);
}
