/** What the `access` of actions grants to one caller of `run` and `runWithResult`. Read it to see which credentials access concerns. */
import type { ActionAccess } from "../../data/action-types.js";
import { type Caller, isVisitor } from "../../rules/access.js";
import { admitsVisitor } from "../../rules/action-access.js";
import type { UserData } from "../../rules/caller-rules.js";

/** Access of one caller to the actions that it names, for the length of one request. */
export interface RunAccess {
  /** Access values, as JSON text, that the caller was found to have; null for callers that no access concerns. */
  granted: Set<string> | null;
  /** The app user by whom access was judged; null while none was needed. */
  user: string | null;
  /** Decides about an access value. */
  judge(access: string): Promise<boolean>;
}

interface RuntimeUser {
  id: number;
  dataSourceId: number;
  data: UserData;
}

export type UserOf = (caller: Caller) => Promise<RuntimeUser | null>;

/** Access concerns runtime tokens only: editors, backends and server actions run every action of their app. */
export function runAccessOf(caller: Caller, userOf: UserOf): RunAccess {
  if (!isVisitor(caller)) return { granted: null, user: null, judge: async () => true };
  const kind = caller.kind === "viewer" ? "viewer" : "live";
  const access: RunAccess = {
    granted: new Set(),
    user: null,
    judge: (text) =>
      admitsVisitor(JSON.parse(text) as ActionAccess, kind, async () => {
        const user = await userOf(caller);
        access.user = user && `${user.dataSourceId}/${user.id}`;
        return user?.data ?? null;
      }),
  };
  return access;
}

/**
 * The idempotency key under which a run is stored. A credential outlives a sign-in, and the next user of the page must not get the answer
 * that an earlier user got. Callers cannot send this form, since their keys hold no space.
 */
export const keyOfUser = ({ user }: RunAccess, key: string | null): string | null =>
  user === null || key === null ? key : `user ${user} ${key}`;

/** The access values of a caller as a parameter of a statement. */
export const grantedParameter = ({ granted }: RunAccess): string[] | null => granted && [...granted];
