/**
 * Determines a caller's rights on entries, from the data source's access rules and the user who is signed in to the caller's page. A
 * removal treats columns that the caller cannot read as missing, so that the number of removed entries reveals no values.
 */

import { ActionError } from "../../errors.js";
import type { AppUserData } from "../../rules/caller-rules.js";
import type { EntryVerb } from "../../rules/entries/access-rules.js";
import {
  checkRequiredColumns,
  createAccessDeniedError,
  createVisibleEntryScope,
  type EntryCaller,
  type EntryPermissions,
  findEntryPermissions,
  listWhereColumns,
  maySelectEntryById,
  rejectWhereThatContradictsRule,
} from "../../rules/entries/entry-access.js";
import type { VisibleEntryScope } from "../../rules/entry-query/options.js";
import { parseDocumentPath } from "../../rules/entry-query/path.js";
import type { AdmittedRequest } from "../access/access-checks.js";
import type { LogEventCause } from "../records/log-events.js";
import type { AppUser, AppUsers } from "./app-users.js";
import type { StoredDataSource } from "./data-source-rows.js";
import type { EntryWritingCaller } from "./entry-changes.js";

export interface CallerEntryRights {
  caller: EntryCaller;
  /** Entry of the user who is signed in to the caller's page; null if there is none, or if the caller is trusted. */
  user: Pick<AppUser, "id" | "dataSourceId"> | null;
  writer: EntryWritingCaller;
  /** Creates the error for a missing right. A missing data source causes the same error, so that callers cannot find out which exist. */
  createAccessError(): ActionError;
  /** True if the access rules allow the caller to use the operation on at least some entries. */
  mayUse(source: StoredDataSource, verb: EntryVerb): boolean;
  /** Returns the columns and entries on which the caller may use the operation. @throws the error of `createAccessError` */
  requirePermissions(source: StoredDataSource, verb: EntryVerb): EntryPermissions;
  /**
   * Returns the entries and columns that the caller may read with this `where`.
   * @throws DATA_SOURCE_ACCESS_DENIED, errors of `requirePermissions`
   */
  createReadScope(source: StoredDataSource, where: unknown): VisibleEntryScope;
  /** Returns the entries that the caller may remove with this `where`. @throws the errors of `createReadScope` */
  createRemovalScope(source: StoredDataSource, where: unknown): VisibleEntryScope;
  /** Returns the entries and columns that the caller may read by ID; null if the caller may not read entries by ID. */
  createSingleEntryScope(source: StoredDataSource): VisibleEntryScope | null;
}

const WRITING_VERBS: readonly EntryVerb[] = ["insert", "update"];

function hasColumnRight(
  requirePermissions: CallerEntryRights["requirePermissions"],
  source: StoredDataSource,
  verb: EntryVerb,
  column: string,
): boolean {
  try {
    return requirePermissions(source, verb).mayAccessColumn(column);
  } catch {
    return false;
  }
}

const ANONYMOUS_EMITTER: LogEventCause = { kind: "live", credentialId: 0, personId: null, runId: null };

export function createHashedColumnSet(source: StoredDataSource): ReadonlySet<string> {
  return new Set(source.hashedColumns);
}

function readUserEmail(data: Readonly<Record<string, unknown>> | undefined): string | null {
  const email = data && Object.hasOwn(data, "Email") ? data["Email"] : undefined;
  return typeof email === "string" ? email.slice(0, 320).toWellFormed() : null;
}

/** @param createAccessError creates the error for a missing right and for a missing data source */
function createRights(
  entryCaller: EntryCaller,
  writer: Pick<EntryWritingCaller, "emitter" | "userEmail">,
  createAccessError: () => ActionError,
  user: CallerEntryRights["user"] = null,
): CallerEntryRights {
  const requirePermissions: CallerEntryRights["requirePermissions"] = (source, verb) => {
    try {
      return findEntryPermissions(source.accessRules, verb, entryCaller);
    } catch {
      throw createAccessError();
    }
  };
  const mayUse: CallerEntryRights["mayUse"] = (source, verb) => {
    try {
      requirePermissions(source, verb);
      return true;
    } catch {
      return false;
    }
  };
  const mayNameColumn: EntryWritingCaller["mayNameColumn"] = (source, column) => {
    const top = parseDocumentPath(column, "indexes", { entryAlias: "" });
    return (
      top.entryField === null &&
      WRITING_VERBS.some((verb) => hasColumnRight(requirePermissions, source, verb, top.segments[0]!))
    );
  };
  const createSingleEntryScope: CallerEntryRights["createSingleEntryScope"] = (source) => {
    try {
      const permissions = requirePermissions(source, "select");
      return maySelectEntryById(permissions)
        ? createVisibleEntryScope(permissions, createHashedColumnSet(source))
        : null;
    } catch {
      return null;
    }
  };
  return {
    caller: entryCaller,
    user,
    writer: { ...writer, mayNameColumn },
    createAccessError,
    requirePermissions,
    mayUse,
    createReadScope(source, where) {
      const permissions = requirePermissions(source, "select");
      checkRequiredColumns(permissions, listWhereColumns(where), "where");
      rejectWhereThatContradictsRule(permissions, where);
      return createVisibleEntryScope(permissions, createHashedColumnSet(source));
    },
    createRemovalScope(source, where) {
      const permissions = requirePermissions(source, "delete");
      checkRequiredColumns(permissions, listWhereColumns(where), "where");
      rejectWhereThatContradictsRule(permissions, where);
      const { canSeeColumn, filter } = createVisibleEntryScope(permissions, createHashedColumnSet(source));
      if (entryCaller.isTrusted) return { canSeeColumn, filter };
      // The `where` of a removal cannot test columns that the caller cannot read: the number of removed entries would reveal their values.
      const readableScope = createSingleEntryScope(source);
      return {
        canSeeColumn: (column) =>
          canSeeColumn(column) && (readableScope?.canSeeColumn(column) ?? permissions.requiredColumns.includes(column)),
        filter,
      };
    },
    createSingleEntryScope,
  };
}

export class EntryRightsResolver {
  constructor(private readonly options: { appUsers: AppUsers }) {}

  async resolve({ caller, isTrusted, address }: AdmittedRequest): Promise<CallerEntryRights> {
    const user = isTrusted ? null : await this.options.appUsers.findUserOfCaller(caller);
    const entryCaller: EntryCaller = isTrusted ? { isTrusted: true } : { isTrusted: false, user: user?.data ?? null };
    const emitter = { ...(caller ?? ANONYMOUS_EMITTER), ...(address !== undefined && { address }) };
    const createRefusal = () => (caller === null ? new ActionError("UNAUTHORIZED") : createAccessDeniedError());
    return createRights(entryCaller, { emitter, userEmail: readUserEmail(user?.data) }, createRefusal, user);
  }

  /** Returns the rights of a page. @param user data of the app user who is signed in to the page; null if no user is signed in */
  resolveForPage(user: AppUserData | null): CallerEntryRights {
    return createRights(
      { isTrusted: false, user },
      { emitter: ANONYMOUS_EMITTER, userEmail: null },
      createAccessDeniedError,
    );
  }
}
