/**
 * Determines a caller's rights on a folder or file. Editors and back ends of the app have all rights; others have those
 * that access rules grant to their user.
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

/** Rights of one caller. The caller's user is read once. */
export interface MediaGrants {
  isTrusted: boolean;
  has(rules: MediaRules, right: MediaRight): boolean;
  /**
   * Checks a right.
   * @throws ActionError UNAUTHORIZED or FORBIDDEN, which do not reveal whether the item exists; then the postponed
   * fault of the request
   */
  need(rules: MediaRules, right: MediaRight): void;
  /** Checks a move: the rules at the target must not grant a right that the current rules do not grant. @throws as `need` */
  needNoMore(after: MediaRules, before: MediaRules): void;
  /** Returns the error for a missing right. */
  refusal(): ActionError;
}

/** Emitter of events of anonymous callers. They use the quota of the page's visitors. */
const ANONYMOUS_EMITTER = { kind: "live", credentialId: 0, personId: null, runId: null } as const;

/** Returns the emitter for events of this caller. */
export const emitterOf = ({ caller, address }: AdmittedRequest): Emitter => ({
  ...(caller ?? ANONYMOUS_EMITTER),
  ...(address !== undefined && { address }),
});

export type MediaCallers = ReturnType<typeof createMediaCallers>;

/** Returns the app user who is signed in to a caller's page. */
export type AppUserOf = (caller: Caller | null) => Promise<{ data: UserData } | null>;

export function createMediaCallers({ db, appUserOf }: { db: DataSource; appUserOf: AppUserOf }) {
  /** Returns the user of a page: the app user who is signed in, or the person of its token. */
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
    async of(admission: AdmittedRequest): Promise<MediaGrants> {
      const { isTrusted, caller } = admission;
      const user = isTrusted ? null : await userOf(admission);
      const has = (rules: MediaRules, right: MediaRight) => isTrusted || grantsRight(rules, right, user);
      const accessError = () => new ActionError(caller ? "FORBIDDEN" : "UNAUTHORIZED");
      return {
        isTrusted,
        has,
        refusal: accessError,
        need(rules, right) {
          if (!has(rules, right)) throw accessError();
          throwDeferred(admission);
        },
        needNoMore(after, before) {
          // The target itself checks `create`.
          const gainedRights = MEDIA_RIGHTS.some(
            (right) => right !== "create" && has(after, right) && !has(before, right),
          );
          if (gainedRights) throw accessError();
        },
      };
    },
  };
}
