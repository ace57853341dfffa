/**
 * Determines a caller's rights on a media folder or file. Trusted callers, such as editors and back ends of the app,
 * have all rights. Other callers have the rights that the access rules grant to their user.
 */
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { UserData } from "../../rules/caller-rules.js";
import { grantsRight, MEDIA_RIGHTS, type MediaRight, type MediaRule } from "../../rules/media-access.js";
import { type AdmittedRequest, throwDeferred } from "../access/gate.js";
import type { Emitter } from "../records/log-events.js";

export type MediaRules = readonly MediaRule[] | null;

/** Rights of the caller of one request. */
export interface MediaGrants {
  isTrusted: boolean;
  hasRight(rules: MediaRules, right: MediaRight): boolean;
  /**
   * Checks a right.
   * @throws ActionError UNAUTHORIZED or FORBIDDEN if it is missing, without revealing whether the item exists. With the
   *   right, throws the deferred error of the request, if there is one
   */
  requireRight(rules: MediaRules, right: MediaRight): void;
  /**
   * Checks a move: the access rules at the target must not grant the caller more rights than the current rules. @throws
   * as `requireRight`
   */
  requireNoMoreRights(after: MediaRules, before: MediaRules): void;
  /** Returns the error for a missing right. */
  accessError(): ActionError;
}

/** Emitter for events of anonymous callers. Their requests count toward the quota of the app's visitors. */
const ANONYMOUS_EMITTER = { kind: "live", credentialId: 0, personId: null, runId: null } as const;

/** Returns the emitter for events of this caller. */
export const emitterOf = ({ caller, address }: AdmittedRequest): Emitter => ({
  ...(caller ?? ANONYMOUS_EMITTER),
  ...(address !== undefined && { address }),
});

export type MediaCallers = ReturnType<typeof createMediaCallers>;

/** Returns the app user who is signed in to the calling page; null if no user is. */
export type AppUserOf = (caller: Caller | null) => Promise<{ data: UserData } | null>;

export function createMediaCallers({ db, appUserOf }: { db: DataSource; appUserOf: AppUserOf }) {
  /**
   * Returns the data of the page's user: the app user who is signed in, or the person to whom the page's token belongs.
   */
  async function userOf({ caller }: AdmittedRequest): Promise<UserData | null> {
    const signedIn = await appUserOf(caller);
    if (signedIn) return signedIn.data;
    if (caller?.personId == null) return null;
    const [person] = await rows<UserData>(
      db,
      `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`,
      [caller.personId],
    );
    return person ?? null;
  }

  return {
    async grantsFor(admission: AdmittedRequest): Promise<MediaGrants> {
      const { isTrusted, caller } = admission;
      const user = isTrusted ? null : await userOf(admission);
      const hasRight = (rules: MediaRules, right: MediaRight) => isTrusted || grantsRight(rules, right, user);
      const accessError = () => new ActionError(caller ? "FORBIDDEN" : "UNAUTHORIZED");
      return {
        isTrusted,
        hasRight,
        accessError: accessError,
        requireRight(rules, right) {
          if (!hasRight(rules, right)) throw accessError();
          throwDeferred(admission);
        },
        requireNoMoreRights(after, before) {
          // The right `create` concerns items inside the moved item. The caller's right to create at the target is
          // checked separately.
          const gainedRights = MEDIA_RIGHTS.some(
            (right) => right !== "create" && hasRight(after, right) && !hasRight(before, right),
          );
          if (gainedRights) throw accessError();
        },
      };
    },
  };
}
