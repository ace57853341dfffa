/** Determines the app user who is signed in to a page, as the reader of the app's notifications on this page. */
import type { DataSource } from "typeorm";
import { rows, type SqlClient } from "../../data/database.js";
import type { Caller } from "../../rules/access.js";
import type { ReadSession } from "../../rules/env-script.js";
import type { ScopeUser } from "../../rules/scope.js";

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

const SELECT_USER_ENTRIES = `
  SELECT entry.id, entry.data_source_id AS "dataSourceId", entry.doc - ARRAY(SELECT jsonb_array_elements_text(source.hashed_columns)) AS data
    FROM unnest($2::int[], $3::bigint[]) AS wanted (source_id, id)
    JOIN data_source_entry AS entry ON entry.app_id = $1 AND entry.id = wanted.id AND entry.data_source_id = wanted.source_id
    JOIN data_source AS source ON source.app_id = $1 AND source.id = wanted.source_id
   WHERE source.is_users
      OR EXISTS (SELECT FROM app_user_session AS session
                  WHERE session.app_id = $1 AND session.data_source_id = source.id AND session.entry_id = entry.id
                    AND session.verified <> '{}')`;
const SELECT_PERSONS = `
  SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = ANY ($1::bigint[])`;

interface UserEntry {
  id: number;
  dataSourceId: number;
  data: Record<string, unknown>;
}

/**
 * Returns the current users of readers, by the reader's key. A reader to whom no user belongs has no entry in the
 * result.
 */
export async function readUsersOfReaders(
  executor: SqlClient,
  appId: number,
  keys: Iterable<string>,
): Promise<ReadonlyMap<string, Exclude<ScopeUser, null>>> {
  const keyParts = [...new Set(keys)].map((key) => key.split(":") as [kind: string, first: string, second?: string]);
  const entries = keyParts.filter(([kind]) => kind === "entry");
  const personIds = keyParts.filter(([kind]) => kind === "person").map(([, id]) => id);
  const users = new Map<string, Exclude<ScopeUser, null>>();
  if (entries.length > 0) {
    const entryRows = await rows<UserEntry>(executor, SELECT_USER_ENTRIES, [
      appId,
      entries.map(([, of]) => of),
      entries.map(([, , id]) => id),
    ]);
    for (const { id, dataSourceId, data } of entryRows)
      users.set(`entry:${dataSourceId}:${id}`, { ...data, id, dataSourceId });
  }
  if (personIds.length > 0) {
    const personRows = await rows<{ id: number }>(executor, SELECT_PERSONS, [personIds]);
    for (const person of personRows) users.set(`person:${person.id}`, { ...person });
  }
  return users;
}

/** Notifies every process of the service that another user is signed in to the page with this credential. */
export async function notifyReaderChange(db: DataSource, appId: number, credentialId: number): Promise<void> {
  await rows(db, `SELECT pg_notify('${READER_CHANNEL}', $1)`, [`${appId}:${credentialId}`]);
}
