/**
 * Decides which actions one caller may run, by their `access` rules. Read this file to see to which credentials the
 * rules apply.
 */
import type { ActionAccess } from "../../data/action-types.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { mayPageRunAction } from "../../rules/action-access.js";
import type { UserData } from "../../rules/caller-rules.js";

/** Access decisions for one caller during one request. */
export interface RunAccess {
  /** `access` rules that the caller fulfils, as JSON texts; null if rules do not apply to the caller. */
  granted: Set<string> | null;
  /** `<data source ID>/<entry ID>` of the app user whose data a rule has read; null if no rule has read user data. */
  user: string | null;
  /** Returns true if the caller fulfils this `access` rule. */
  isGranted(access: string): Promise<boolean>;
}

interface RuntimeUser {
  id: number;
  dataSourceId: number;
  data: UserData;
}

export type UserOf = (caller: Caller) => Promise<RuntimeUser | null>;

/**
 * Returns the access of a caller. Rules apply to runtime tokens only: editors, back ends and server actions may run
 * every action of their app.
 */
export function runAccessOf(caller: Caller, userOf: UserOf): RunAccess {
  if (!isPageCaller(caller)) return { granted: null, user: null, isGranted: async () => true };
  const kind = caller.kind === "viewer" ? "viewer" : "live";
  const access: RunAccess = {
    granted: new Set(),
    user: null,
    isGranted: (text) =>
      mayPageRunAction(JSON.parse(text) as ActionAccess, kind, async () => {
        const user = await userOf(caller);
        access.user = user && `${user.dataSourceId}/${user.id}`;
        return user?.data ?? null;
      }),
  };
  return access;
}

/**
 * Returns the idempotency key under which a run is stored. It includes the app user, because the next user of a page
 * has the same credential and must not get this user's result. Keys of callers contain no space, so none can equal such
 * a key.
 */
export const keyOfUser = ({ user }: RunAccess, key: string | null): string | null =>
  user === null || key === null ? key : `user ${user} ${key}`;

/** Returns the fulfilled `access` rules as a parameter of a statement. */
export const grantedParameter = ({ granted }: RunAccess): string[] | null => granted && [...granted];
