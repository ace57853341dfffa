/** For whom a caller reads notifications: the one place that says who the app's user is. Makes no credential. */
import type { Caller } from "../../rules/access.js";
import type { SessionOf } from "../../rules/env-script.js";
import type { ScopeUser } from "../../rules/scope.js";

export interface Reader {
  /** By which read marks and devices are found again. */
  key: string;
  user: ScopeUser;
  /** Reads everything of the app, whatever its scope: its backend and its authors. */
  seesAll: boolean;
}

export type ReaderOf = ReturnType<typeof createReaderOf>;

export function createReaderOf(sessionOf: SessionOf) {
  return async function readerOf(caller: Caller, appId: number): Promise<Reader> {
    const { personId, credentialId, kind, copy } = caller;
    const seesAll = kind !== "live" && kind !== "viewer";
    const { user, entries } = await sessionOf({ appId, personId, credentialId, copy });
    if (entries) {
      const { id, dataSourceId, data } = entries.dataSource;
      return { key: `entry:${dataSourceId}:${id}`, user: { ...data, id, dataSourceId }, seesAll };
    }
    const key = personId === null ? `credential:${credentialId}` : `person:${personId}`;
    return { key, user: user && { ...user }, seesAll };
  };
}
