/**
 * Determines a caller's rights on a media folder or file. Trusted callers, such as editors and back ends of the app,
 * have all rights. Other callers have the rights that the access rules grant to their user.
 */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { AppUserData } from "../../rules/caller-rules.js";
import { grantsMediaRight, MEDIA_RIGHTS, type MediaAccessRule, type MediaRight } from "../../rules/media-access.js";
import { type AdmittedRequest, throwDeferredError } from "../access/access-checks.js";
import type { LogEventEmitter } from "../records/log-events.js";

export type MediaRules = readonly MediaAccessRule[] | null;

/** Checks the rights that the caller of one request has on media. */
export interface MediaAccess {
  isTrusted: boolean;
  hasRight(rules: MediaRules, right: MediaRight): boolean;
  /**
   * Checks that the access rules grant the caller a right.
   * @throws ActionError UNAUTHORIZED or FORBIDDEN without this right; the error does not reveal whether the file or folder exists. If the
   *   caller has the right, throws the deferred error of an earlier check of the request, if there is one
   */
  requireRight(rules: MediaRules, right: MediaRight): void;
  /**
   * Checks a move: the access rules at the target (`after`) must not grant the caller rights that the current rules
   * (`before`) do not grant.
   * @throws the errors of `requireRight`
   */
  requireNoAddedRights(after: MediaRules, before: MediaRules): void;
  /** Returns the error UNAUTHORIZED or FORBIDDEN for a missing right. */
  accessError(): ActionError;
}

/** Emitter for anonymous callers. Their requests count toward the quota of the app's visitors. */
const ANONYMOUS_EMITTER = { kind: "live", credentialId: 0, personId: null, runId: null } as const;

/** Returns the emitter of the log events that this caller's request causes. */
export const toLogEventEmitter = ({ caller, address }: AdmittedRequest): LogEventEmitter => ({
  ...(caller ?? ANONYMOUS_EMITTER),
  ...(address !== undefined && { address }),
});

/** Returns the app user who is signed in to the page that calls; null if no user is signed in. */
export type ResolveAppUser = (caller: Caller | null) => Promise<{ data: AppUserData } | null>;

export class MediaRightsResolver {
  constructor(private readonly options: { db: Db; appUserOf: ResolveAppUser }) {}

  /** Returns the app user who is signed in to the page, or the person who owns the page's token. */
  private async userOf({ caller }: AdmittedRequest): Promise<AppUserData | null> {
    const { db, appUserOf } = this.options;
    const signedIn = await appUserOf(caller);
    if (signedIn) return signedIn.data;
    if (caller?.personId == null) return null;
    const [person] = await rows<AppUserData>(
      db,
      `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`,
      [caller.personId],
    );
    return person ?? null;
  }

  async grantsFor(admission: AdmittedRequest): Promise<MediaAccess> {
    const { isTrusted, caller } = admission;
    const user = isTrusted ? null : await this.userOf(admission);
    const hasRight = (rules: MediaRules, right: MediaRight) => isTrusted || grantsMediaRight(rules, right, user);
    const accessError = () => new ActionError(caller ? "FORBIDDEN" : "UNAUTHORIZED");
    return {
      isTrusted,
      hasRight,
      accessError: accessError,
      requireRight(rules, right) {
        if (!hasRight(rules, right)) throw accessError();
        throwDeferredError(admission);
      },
      requireNoAddedRights(after, before) {
        // The right `create` concerns new items inside the moved folder. Creation at the target is checked separately.
        const gainedRights = MEDIA_RIGHTS.some(
          (right) => right !== "create" && hasRight(after, right) && !hasRight(before, right),
        );
        if (gainedRights) throw accessError();
      },
    };
  }
}
