/** Access of one caller to actions by their `access` rules. Read it to see which credentials the rules apply to. */
import type { ActionAccess } from "../../data/action-types.js";
import { type Caller, isVisitor } from "../../rules/access.js";
import { admitsVisitor } from "../../rules/action-access.js";
import type { UserData } from "../../rules/caller-rules.js";

/** Access of one caller, for the length of one request. */
export interface RunAccess {
  /** Granted access values as JSON text; null if the rules do not apply to the caller. */
  granted: Set<string> | null;
  /** The app user whose data decided; null if none was needed. */
  user: string | null;
  /** Decides about an access value. */
  isGranted(access: string): Promise<boolean>;
}

interface RuntimeUser {
  id: number;
  dataSourceId: number;
  data: UserData;
}

export type UserOf = (caller: Caller) => Promise<RuntimeUser | null>;

/** The rules apply to runtime tokens only. Editors, backends and server actions may run every action of their app. */
export function runAccessOf(caller: Caller, userOf: UserOf): RunAccess {
  if (!isVisitor(caller)) return { granted: null, user: null, isGranted: async () => true };
  const kind = caller.kind === "viewer" ? "viewer" : "live";
  const access: RunAccess = {
    granted: new Set(),
    user: null,
    isGranted: (text) =>
      admitsVisitor(JSON.parse(text) as ActionAccess, kind, async () => {
        const user = await userOf(caller);
        access.user = user && `${user.dataSourceId}/${user.id}`;
        return user?.data ?? null;
      }),
  };
  return access;
}

/**
 * Idempotency key under which a run is stored. It includes the app user, because the next user of a page has the same credential and must not
 * get the result of an earlier user. Callers cannot send this form, because their keys have no space.
 */
export const keyOfUser = ({ user }: RunAccess, key: string | null): string | null =>
  user === null || key === null ? key : `user ${user} ${key}`;

/** The access values of a caller as a parameter of a statement. */
export const grantedParameter = ({ granted }: RunAccess): string[] | null => granted && [...granted];
