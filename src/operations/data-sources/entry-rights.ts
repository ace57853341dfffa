/**
 * Determines a caller's rights on the entries of a data source, from the access rules and the page's user. Also limits
 * removals by hidden columns, so that their count does not reveal values.
 */

import { ActionError } from "../../errors.js";
import type { UserData } from "../../rules/caller-rules.js";
import type { EntryVerb } from "../../rules/entries/access-rules.js";
import {
  accessDenied,
  columnsInWhere,
  type EntryCaller,
  type EntryGrant,
  grantFor,
  mayNameById,
  requireColumns,
  requireValues,
  scopeFor,
} from "../../rules/entries/entry-access.js";
import type { EntryScope } from "../../rules/entry-query/options.js";
import { parsePath } from "../../rules/entry-query/path.js";
import type { AdmittedRequest } from "../access/gate.js";
import type { Emitter } from "../records/log-events.js";
import type { AppUser, AppUsers } from "./app-users.js";
import type { StoredDataSource } from "./data-source-rows.js";
import type { EntryWriter } from "./entry-changes.js";

/** Rights of one caller for one request. */
export interface Rights {
  caller: EntryCaller;
  /** Entry of the user who is signed in to the page; null if no user is signed in, or the caller is trusted. */
  user: Pick<AppUser, "id" | "dataSourceId"> | null;
  writer: EntryWriter;
  /**
   * Returns the error for a missing right. A missing data source gets the same error, so that the error does not reveal
   * whether a data source exists.
   */
  accessError(): ActionError;
  /** True if the access rules allow the operation, at least for some entries. */
  may(source: StoredDataSource, verb: EntryVerb): boolean;
  /** Returns the columns and entries to which the caller may apply the operation. @throws DATA_SOURCE_ACCESS_DENIED */
  grant(source: StoredDataSource, verb: EntryVerb): EntryGrant;
  /** Returns the entries and columns that a read with this `where` may return. @throws DATA_SOURCE_ACCESS_DENIED */
  scope(source: StoredDataSource, where: unknown): EntryScope;
  /** Returns the entries that a removal with this `where` may remove. @throws DATA_SOURCE_ACCESS_DENIED */
  scopeOfRemoval(source: StoredDataSource, where: unknown): EntryScope;
  /** Returns the scope for reading one entry by its ID; null if the caller may read nothing. */
  scopeForId(source: StoredDataSource): EntryScope | null;
}

const WRITING_VERBS: readonly EntryVerb[] = ["insert", "update"];

function mayUseColumn(grant: Rights["grant"], source: StoredDataSource, verb: EntryVerb, column: string): boolean {
  try {
    return grant(source, verb).mayTouch(column);
  } catch {
    return false;
  }
}

const ANONYMOUS_EMITTER: Emitter = { kind: "live", credentialId: 0, personId: null, runId: null };

export function hashedOf(source: StoredDataSource): ReadonlySet<string> {
  return new Set(source.hashedColumns);
}

function emailOf(data: Readonly<Record<string, unknown>> | undefined): string | null {
  const email = data && Object.hasOwn(data, "Email") ? data["Email"] : undefined;
  return typeof email === "string" ? email.slice(0, 320).toWellFormed() : null;
}

export type EntryRights = ReturnType<typeof createEntryRights>;

/**
 * Creates the functions that look up the caller's rights in a data source's access rules.
 * @param accessError creates the error for a missing right. Missing data sources get the same error, so that it does
 *   not reveal whether they exist
 */
function rightsOf(
  as: EntryCaller,
  writer: Pick<EntryWriter, "emitter" | "userEmail">,
  accessError: () => ActionError,
  user: Rights["user"] = null,
): Rights {
  const grant: Rights["grant"] = (source, verb) => {
    try {
      return grantFor(source.accessRules, verb, as);
    } catch {
      throw accessError();
    }
  };
  const may: Rights["may"] = (source, verb) => {
    try {
      grant(source, verb);
      return true;
    } catch {
      return false;
    }
  };
  const mayName: EntryWriter["mayName"] = (source, column) => {
    const top = parsePath(column, "indexes", { entry: "" });
    return top.own === null && WRITING_VERBS.some((verb) => mayUseColumn(grant, source, verb, top.segments[0]!));
  };
  const scopeOfSingleEntry: Rights["scopeForId"] = (source) => {
    try {
      const accessGrant = grant(source, "select");
      return mayNameById(accessGrant) ? scopeFor(accessGrant, hashedOf(source)) : null;
    } catch {
      return null;
    }
  };
  return {
    caller: as,
    user,
    writer: { ...writer, mayName },
    accessError: accessError,
    grant,
    may,
    scope(source, where) {
      const accessGrant = grant(source, "select");
      requireColumns(accessGrant, columnsInWhere(where), "where");
      requireValues(accessGrant, where);
      return scopeFor(accessGrant, hashedOf(source));
    },
    scopeOfRemoval(source, where) {
      const accessGrant = grant(source, "delete");
      requireColumns(accessGrant, columnsInWhere(where), "where");
      requireValues(accessGrant, where);
      const { canSee: sees, filter } = scopeFor(accessGrant, hashedOf(source));
      if (as.trusted) return { canSee: sees, filter };
      // The number of removed entries must not reveal values of columns that the caller cannot read.
      const readableScope = scopeOfSingleEntry(source);
      return {
        canSee: (column) => sees(column) && (readableScope?.canSee(column) ?? accessGrant.required.includes(column)),
        filter,
      };
    },
    scopeForId: scopeOfSingleEntry,
  };
}

export function createEntryRights({ appUsers }: { appUsers: AppUsers }) {
  return {
    /** Returns the rights of the caller of a request. */
    async of({ caller, isTrusted, address }: AdmittedRequest): Promise<Rights> {
      const user = isTrusted ? null : await appUsers.userOf(caller);
      const as: EntryCaller = isTrusted ? { trusted: true } : { trusted: false, user: user?.data ?? null };
      const emitter = { ...(caller ?? ANONYMOUS_EMITTER), ...(address !== undefined && { address }) };
      const refused = () => (caller === null ? new ActionError("UNAUTHORIZED") : accessDenied());
      return rightsOf(as, { emitter, userEmail: emailOf(user?.data) }, refused, user);
    },

    /** Returns the rights of a page. @param user data of the signed-in user; null if no user is signed in */
    ofPage: (user: UserData | null): Rights =>
      rightsOf({ trusted: false, user }, { emitter: ANONYMOUS_EMITTER, userEmail: null }, accessDenied),
  };
}
