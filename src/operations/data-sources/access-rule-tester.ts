/** Tests the access rules of a data source: shows an editor what a user of the app could read and write. Stores nothing. */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { AppUserData } from "../../rules/caller-rules.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { ACCESS_RULE_SHAPE, ENTRY_VERBS, type EntryVerb, parseAccessRules } from "../../rules/entries/access-rules.js";
import { convertColumnConditionsToWhere, findDecidingRuleIndex } from "../../rules/entries/entry-access.js";
import { type EntryData, parseEntryId } from "../../rules/entries/entry-input.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import { parseReference } from "../../rules/reference.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "../../rules/unknown-fields.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import type { DataSourceReference } from "./entries.js";
import { pickVisibleColumns } from "./entry.js";
import type { FindEntriesResult } from "./entry-reads.js";
import { type CallerEntryRights, createHashedColumnSet, type EntryRightsResolver } from "./entry-rights.js";
import type { EntrySearches } from "./entry-searches.js";

const MAX_EXAMPLE_ENTRIES = 20;

/** Decision of the access rules about one operation on entries (select, insert, update, delete). */
export interface AccessRuleDecision {
  verb: EntryVerb;
  allowed: boolean;
  /** Index (from 0) of the access rule that decides about the operation; null if no rule matches the user. */
  rule: number | null;
  /** Columns that the user may read (select, delete) or write (insert, update). */
  columns: string[];
  /** Columns that a request must contain: in `where` for select and delete, in the data for insert and update. */
  required: readonly string[];
  /** Reason why the operation is denied although a rule matches the user. Null if it is allowed, or if no rule matches. */
  reason: string | null;
}

export interface AccessRuleTestResult {
  /** Tested user: the data in the request, or the columns of the stored entry that are not hashed. Null for an anonymous visitor. */
  user: AppUserData | null;
  verbs: AccessRuleDecision[];
  /** The first entries that the user can read (at most 20); null if the read failed, for example without the right to read. */
  entries: FindEntriesResult["entries"] | null;
  /** Message of the error with which the read of entries failed; otherwise null. */
  reason: string | null;
}

const RULE_TEST_SHAPE: Shape = {
  fields: { user: createFlatShape(["dataSourceId", "entryId", "data"]), accessRules: [ACCESS_RULE_SHAPE], where: null },
};

const SELECT_ENTRY_DATA = "SELECT data FROM data_source_entry WHERE app_id = $1 AND data_source_id = $2 AND id = $3";

/** Returns the message of an ActionError. @throws any other error */
const requireActionErrorMessage = (error: unknown): string => {
  if (error instanceof ActionError) return error.message;
  throw error;
};

interface AccessRuleTesterOptions {
  db: Db;
  sources: DataSourceRows;
  rights: EntryRightsResolver;
  searches: EntrySearches;
}

function decideVerb(
  userRights: CallerEntryRights,
  source: StoredDataSource,
  user: AppUserData | null,
  verb: EntryVerb,
): AccessRuleDecision {
  const ruleIndex = findDecidingRuleIndex(source.accessRules, verb, user);
  const rule = ruleIndex < 0 ? null : ruleIndex;
  try {
    const { mayAccessColumn, requiredColumns: required } = userRights.requirePermissions(source, verb);
    const hiddenColumns = verb === "select" || verb === "delete" ? createHashedColumnSet(source) : new Set<string>();
    const columns = source.columns.filter((column) => mayAccessColumn(column) && !hiddenColumns.has(column));
    return { verb, allowed: true, rule, columns, required, reason: null };
  } catch {
    const reason =
      rule === null
        ? null
        : "the user has no value for a placeholder in the rule's conditions, or two of these conditions contradict each other";
    return { verb, allowed: false, rule, columns: [], required: [], reason };
  }
}

export class AccessRuleTester {
  constructor(private readonly options: AccessRuleTesterOptions) {}

  private async readTestedUser(appId: number, input: unknown): Promise<AppUserData | null> {
    const { db, sources } = this.options;
    if (input === undefined || input === null) return null;
    if (isObject(input) && isObject(input["data"])) return input["data"];
    const ref = isObject(input) ? input["dataSourceId"] : undefined;
    if (!isObject(input) || (typeof ref !== "string" && typeof ref !== "number")) {
      const message = `user must be null, {dataSourceId, entryId} or {data} (got ${describeValue(input)})`;
      throw new ActionError("REQUEST_INVALID", message);
    }
    const source = await sources.find(appId, parseReference(ref));
    const values = [appId, source.id, parseEntryId(input["entryId"], "user.entryId")];
    const [entry] = await rows<{ data: EntryData }>(db, SELECT_ENTRY_DATA, values);
    if (!entry) throw new ActionError("ENTRY_NOT_FOUND");
    return pickVisibleColumns(entry.data, (column) => !source.hashedColumns.includes(column));
  }

  private async readVisibleEntries(
    userRights: CallerEntryRights,
    source: StoredDataSource,
    requestedWhere: unknown,
    reserve?: ReserveResponseBytes,
  ): Promise<Pick<AccessRuleTestResult, "entries" | "reason">> {
    try {
      // Without a `where` in the request, uses the conditions that the access rule requires.
      const testedWhere =
        requestedWhere ?? convertColumnConditionsToWhere(userRights.requirePermissions(source, "select").conditions);
      const { entries } = await this.options.searches.find(
        userRights,
        source,
        { ...(testedWhere !== null && { where: testedWhere }), limit: MAX_EXAMPLE_ENTRIES },
        reserve,
      );
      return { entries, reason: null };
    } catch (error) {
      return { entries: null, reason: requireActionErrorMessage(error) };
    }
  }

  /**
   * Returns the decision about each operation, and the first entries that the user can read.
   * @param body `{user, accessRules, where}`. Defaults: an anonymous visitor, the stored rules, the conditions of the access rule
   * @throws ActionError REQUEST_INVALID that names the field, DATA_SOURCE_NOT_FOUND, ENTRY_NOT_FOUND
   */
  async testRules(
    { appId, ref }: DataSourceReference,
    body: unknown,
    reserve?: ReserveResponseBytes,
  ): Promise<AccessRuleTestResult> {
    const { sources, rights } = this.options;
    const { user: requestedUser, accessRules, where: testedWhere } = isObject(body) ? body : {};
    const stored = await sources.find(appId, ref);
    const source = accessRules == null ? stored : { ...stored, accessRules: parseAccessRules(accessRules) };
    const user = await this.readTestedUser(appId, requestedUser);
    refuseUnknownFields(body, RULE_TEST_SHAPE);
    const userRights = rights.resolveForPage(user);
    const verbs = ENTRY_VERBS.map((verb) => decideVerb(userRights, source, user, verb));
    return { user, verbs, ...(await this.readVisibleEntries(userRights, source, testedWhere, reserve)) };
  }
}
