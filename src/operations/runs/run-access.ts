/** Decides which actions a caller may run, by the `access` rules of the actions. */
import type { ActionAccess } from "../../data/action-types.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { mayPageRunAction } from "../../rules/action-access.js";
import type { AppUserData } from "../../rules/caller-rules.js";

export interface CallerActionAccess {
  /** Access rules (JSON texts) that were checked and that the caller meets; null if the caller may run every action of the app. */
  metRules: Set<string> | null;
  /** App user whose data an access rule has read, as `<data source ID>/<entry ID>`; null if none has. */
  user: string | null;
  meetsRule(access: string): Promise<boolean>;
}

interface RuntimeUser {
  id: number;
  dataSourceId: number;
  data: AppUserData;
}

export type FindAppUser = (caller: Caller) => Promise<RuntimeUser | null>;

/** Access rules apply only to pages. Editors, back ends and server actions may run every action of their app. */
export function createCallerActionAccess(caller: Caller, findAppUser: FindAppUser): CallerActionAccess {
  if (!isPageCaller(caller)) return { metRules: null, user: null, meetsRule: async () => true };
  const kind = caller.kind === "viewer" ? "viewer" : "live";
  const access: CallerActionAccess = {
    metRules: new Set(),
    user: null,
    meetsRule: (text) =>
      mayPageRunAction(JSON.parse(text) as ActionAccess, kind, async () => {
        const user = await findAppUser(caller);
        access.user = user && `${user.dataSourceId}/${user.id}`;
        return user?.data ?? null;
      }),
  };
  return access;
}

/** Adds the app user to the key: the next user of the same page has the same credential, but must not get this user's result. */
export const createStoredIdempotencyKey = ({ user }: CallerActionAccess, key: string | null): string | null =>
  user === null || key === null ? key : `user ${user} ${key}`;
