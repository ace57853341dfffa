/**
 * Determines a caller's rights on media folders and files. Trusted callers, such as editors and back ends of the app, have all rights.
 * Other callers have the rights that the access rules grant to their user.
 */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { AppUserData } from "../../rules/caller-rules.js";
import { grantsMediaRight, MEDIA_RIGHTS, type MediaAccessRule, type MediaRight } from "../../rules/media-access.js";
import { type AdmittedRequest, throwDeferredError } from "../access/access-checks.js";
import type { LogEventCause } from "../records/log-events.js";

export type MediaRules = readonly MediaAccessRule[] | null;

export interface MediaAccess {
  isTrusted: boolean;
  hasRight(rules: MediaRules, right: MediaRight): boolean;
  /**
   * Checks that the access rules grant the caller a right. If they do, throws the deferred error of the request (an error of an earlier
   * check), if there is one.
   * @throws ActionError UNAUTHORIZED or FORBIDDEN, which do not reveal if the file or folder exists
   */
  requireRight(rules: MediaRules, right: MediaRight): void;
  /**
   * Checks a move: the access rules at the target (`after`) must not grant the caller rights that the current rules (`before`) do not
   * grant.
   * @throws UNAUTHORIZED or FORBIDDEN
   */
  requireNoAddedRights(after: MediaRules, before: MediaRules): void;
  /** Returns the error for a missing right: FORBIDDEN, or UNAUTHORIZED for a request without a credential. */
  createAccessError(): ActionError;
}

/** Sender of log events that a request without a credential causes. These events count against the quota of the app's visitors. */
const ANONYMOUS_EMITTER = { kind: "live", credentialId: 0, personId: null, runId: null } as const;

/** Returns the sender of the log events that the request causes. */
export const toLogEventCause = ({ caller, address }: AdmittedRequest): LogEventCause => ({
  ...(caller ?? ANONYMOUS_EMITTER),
  ...(address !== undefined && { address }),
});

/** Returns the app user who is signed in to the calling page; null if there is none. */
export type ResolveAppUser = (caller: Caller | null) => Promise<{ data: AppUserData } | null>;

export class MediaRightsResolver {
  constructor(private readonly options: { db: Db; findAppUser: ResolveAppUser }) {}

  /** Returns the app user who is signed in to the page. If there is none, returns the person who owns the token, or null. */
  private async findUser({ caller }: AdmittedRequest): Promise<AppUserData | null> {
    const { db, findAppUser } = this.options;
    const signedIn = await findAppUser(caller);
    if (signedIn) return signedIn.data;
    if (caller?.personId == null) return null;
    const [person] = await rows<AppUserData>(
      db,
      `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`,
      [caller.personId],
    );
    return person ?? null;
  }

  async resolveAccess(admission: AdmittedRequest): Promise<MediaAccess> {
    const { isTrusted, caller } = admission;
    const user = isTrusted ? null : await this.findUser(admission);
    const hasRight = (rules: MediaRules, right: MediaRight) => isTrusted || grantsMediaRight(rules, right, user);
    const createAccessError = () => new ActionError(caller ? "FORBIDDEN" : "UNAUTHORIZED");
    return {
      isTrusted,
      hasRight,
      createAccessError,
      requireRight(rules, right) {
        if (!hasRight(rules, right)) throw createAccessError();
        throwDeferredError(admission);
      },
      requireNoAddedRights(after, before) {
        // The right `create` is checked separately for the target.
        const gainedRights = MEDIA_RIGHTS.some(
          (right) => right !== "create" && hasRight(after, right) && !hasRight(before, right),
        );
        if (gainedRights) throw createAccessError();
      },
    };
  }
}
