/**
 * Decides by the `access` rules of actions which actions a caller may run. Read this file to learn to which credentials
 * these rules apply.
 */
import type { ActionAccess } from "../../data/action-types.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { mayPageRunAction } from "../../rules/action-access.js";
import type { UserData } from "../../rules/caller-rules.js";

/** Decisions about the `access` rules of actions, for one caller during one request. */
export interface CallerActionAccess {
  /**
   * The `access` rules that the caller meets, as JSON texts; null if the rules do not apply to the caller, who may then
   * run every action.
   */
  metRules: Set<string> | null;
  /**
   * The app user whose data an access rule has read, in the form `<data source ID>/<entry ID>`. Null if no rule has
   * read a user's data.
   */
  user: string | null;
  meetsRule(access: string): Promise<boolean>;
}

interface RuntimeUser {
  id: number;
  dataSourceId: number;
  data: UserData;
}

export type FindAppUser = (caller: Caller) => Promise<RuntimeUser | null>;

/**
 * Returns the access decisions for a caller. The rules apply only to runtime tokens (pages). Editors, back ends and
 * server actions may run every action of their app.
 */
export function createCallerActionAccess(caller: Caller, userOf: FindAppUser): CallerActionAccess {
  if (!isPageCaller(caller)) return { metRules: null, user: null, meetsRule: async () => true };
  const kind = caller.kind === "viewer" ? "viewer" : "live";
  const access: CallerActionAccess = {
    metRules: new Set(),
    user: null,
    meetsRule: (text) =>
      mayPageRunAction(JSON.parse(text) as ActionAccess, kind, async () => {
        const user = await userOf(caller);
        access.user = user && `${user.dataSourceId}/${user.id}`;
        return user?.data ?? null;
      }),
  };
  return access;
}

/**
 * Returns the idempotency key under which a run is stored. The stored key includes the app user: the next user of the
 * same page has the same credential, but must not get this user's result. Keys that callers send contain no space, so
 * they never equal a key with a user.
 */
export const toUserIdempotencyKey = ({ user }: CallerActionAccess, key: string | null): string | null =>
  user === null || key === null ? key : `user ${user} ${key}`;

/** Returns the `access` rules that the caller meets, as the parameter of an SQL statement. */
export const toMetRulesParameter = ({ metRules }: CallerActionAccess): string[] | null => metRules && [...metRules];
