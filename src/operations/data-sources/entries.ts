/**
 * Operations of callers on entries. Each finds the data source, checks the caller's rights, validates the request, and calls the module
 * that does the work.
 */
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { meetsColumnConditions } from "../../rules/caller-rules.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import type { EntryVerb } from "../../rules/entries/access-rules.js";
import { createAccessDeniedError, maySelectEntryById } from "../../rules/entries/entry-access.js";
import { parseEntryCommit, parseEntryData } from "../../rules/entries/entry-input.js";
import type { JsonText } from "../../rules/json-text.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { IdOrName } from "../../rules/reference.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import { type AdmittedRequest, throwDeferredError } from "../access/access-checks.js";
import type { SubscriptionSource } from "../records/subscription-source.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import type { DataSourceSnapshot, DataSourceSnapshots } from "./data-source-snapshots.js";
import { type Entry, type StoredEntry, toEntry } from "./entry.js";
import type { EntryChangeTransactions } from "./entry-changes.js";
import type { EntryCommitResult, EntryCommits } from "./entry-commits.js";
import type { EntryExport, EntryExportOptions } from "./entry-export.js";
import type { EntryChangeFeed } from "./entry-feed.js";
import type { EntryImportResult, EntryImports } from "./entry-imports.js";
import type { FindEntriesResult } from "./entry-reads.js";
import type { CallerEntryRights, EntryRightsResolver } from "./entry-rights.js";
import type { EntrySearches } from "./entry-searches.js";
import type { EntryChangeMessage } from "./entry-subscribers.js";
import type { EntryWrites } from "./entry-writes.js";
import type { RecentQueries, RecentQuery } from "./recent-queries.js";
import type { CsvLayout } from "./row-streams.js";

export interface DataSourceReference {
  appId: number;
  ref: IdOrName;
}

export interface EntryImportFile {
  /** True to keep the existing entries of the data source; false to replace them. */
  keepsExisting: boolean;
  /** Returns an iterator over the rows of the file. It is called only after the caller's rights have been checked. */
  rows: () => AsyncIterable<unknown>;
  /** Object into which the reader writes properties of the file, such as delimiter and columns, while it reads the file. */
  layout?: CsvLayout;
}

const REMOVAL_SHAPE = createFlatShape(["type", "where"]);

const SELECT_ENTRY = `
  SELECT id, data, "order", created_at AS "createdAt", updated_at AS "updatedAt" FROM data_source_entry
   WHERE app_id = $1 AND data_source_id = $2 AND id = $3`;

interface EntriesOptions {
  db: Db;
  sources: DataSourceRows;
  rights: EntryRightsResolver;
  changes: EntryChangeTransactions;
  writes: EntryWrites;
  commits: EntryCommits;
  imports: EntryImports;
  snapshots: DataSourceSnapshots;
  searches: EntrySearches;
  recentQueries: Pick<RecentQueries, "list">;
  exports: EntryExport;
  feed: EntryChangeFeed;
}

export class Entries {
  constructor(private readonly options: EntriesOptions) {}

  private async readOne(rights: CallerEntryRights, source: StoredDataSource, id: number): Promise<Entry> {
    const grant = rights.requirePermissions(source, "select");
    if (!maySelectEntryById(grant)) throw createAccessDeniedError();
    const [entry] = await rows<StoredEntry>(this.options.db, SELECT_ENTRY, [source.appId, source.id, id]);
    if (!entry || !meetsColumnConditions(entry.data, grant.conditions)) throw new ActionError("ENTRY_NOT_FOUND");
    return toEntry(entry, source.id, rights.createSingleEntryScope(source)!.canSeeColumn);
  }

  /**
   * Finds the data source and the caller's rights on it. Access rules must allow at least one of the operations `verbs`. A caller without
   * this right always gets the same error, which does not reveal whether the data source exists.
   */
  async open(request: AdmittedRequest, { appId, ref }: DataSourceReference, ...verbs: EntryVerb[]) {
    const rights = await this.options.rights.resolve(request);
    const source = await this.options.sources.find(appId, ref).catch((error: unknown) => {
      throw rights.caller.isTrusted || !(error instanceof ActionError) ? error : rights.createAccessError();
    });
    if (!verbs.some((verb) => rights.mayUse(source, verb)))
      for (const verb of verbs) rights.requirePermissions(source, verb);
    throwDeferredError(request);
    return { rights, source };
  }

  /** Returns one entry. @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, ENTRY_NOT_FOUND */
  async get(request: AdmittedRequest, target: DataSourceReference, id: number): Promise<Entry> {
    const { rights, source } = await this.open(request, target, "select");
    return this.readOne(rights, source, id);
  }

  /**
   * Returns a page of matching entries, or the result of an aggregate function.
   * @throws the errors of `get`; REQUEST_INVALID
   */
  async find(
    request: AdmittedRequest,
    target: DataSourceReference,
    query: unknown,
    reserve?: ReserveResponseBytes,
  ): Promise<FindEntriesResult> {
    const { rights, source } = await this.open(request, target, "select");
    return this.options.searches.find(rights, source, query, reserve);
  }

  async distinct(
    request: AdmittedRequest,
    target: DataSourceReference,
    columns: readonly string[],
  ): Promise<Record<string, JsonText[]>> {
    const { rights, source } = await this.open(request, target, "select");
    return this.options.searches.distinct(rights, source, columns);
  }

  /**
   * Exports all entries that the caller can see. Returns the name of the data source, and an iterator over the parts of the exported text.
   * @throws the errors of `get`
   */
  async export(request: AdmittedRequest, target: DataSourceReference, options: EntryExportOptions) {
    const { rights, source } = await this.open(request, target, "select");
    const scope = rights.createReadScope(source, null);
    return { name: source.name, texts: this.options.exports.exportRows(source, source.columns, scope, options) };
  }

  /** Subscribes to committed changes of entries. @throws the errors of `get`; REQUEST_INVALID */
  async follow(
    request: AdmittedRequest,
    target: DataSourceReference,
    options: { where: unknown; since: unknown },
  ): Promise<SubscriptionSource<EntryChangeMessage>> {
    const { source } = await this.open(request, target, "select");
    return this.options.feed.follow(request, source, options);
  }

  /** Deletes all entries that match a `where`. @param query an object with the field `where` */
  async removeWhere(
    request: AdmittedRequest,
    target: DataSourceReference,
    query: object,
  ): Promise<{ deletedCount: number }> {
    const { rights, source } = await this.open(request, target, "delete");
    const { where } = query as { where?: unknown };
    if (!isObject(where)) {
      const received = describeValue(where);
      throw new ActionError(
        "REQUEST_INVALID",
        `where must be an object (got ${received}); use {} to remove all entries`,
      );
    }
    refuseUnknownFields(query, REMOVAL_SHAPE);
    return this.options.searches.remove(rights, source, where);
  }

  async insert(request: AdmittedRequest, target: DataSourceReference, body: unknown): Promise<Entry> {
    const { rights, source } = await this.open(request, target, "insert");
    return this.options.writes.insert(rights, source, parseEntryData(body, "the entry"));
  }

  async update(
    request: AdmittedRequest,
    target: DataSourceReference,
    id: number,
    body: unknown,
    precondition: ExpectedVersions,
  ): Promise<Entry> {
    const { rights, source } = await this.open(request, target, "update");
    return this.options.writes.update(rights, source, { id, precondition }, parseEntryData(body, "the entry"));
  }

  async remove(
    request: AdmittedRequest,
    target: DataSourceReference,
    id: number,
    precondition: ExpectedVersions,
  ): Promise<Entry> {
    const { rights, source } = await this.open(request, target, "delete");
    throwIfUnknownField(request);
    return this.options.writes.remove(rights, source, { id, precondition });
  }

  async commit(request: AdmittedRequest, target: DataSourceReference, body: unknown): Promise<EntryCommitResult> {
    const { rights, source } = await this.open(request, target, "insert", "update", "delete");
    return this.options.commits.commit(rights, source, parseEntryCommit(body));
  }

  async import(
    request: AdmittedRequest,
    target: DataSourceReference,
    { keepsExisting, rows, layout }: EntryImportFile,
  ): Promise<EntryImportResult> {
    const { rights, source } = await this.open(request, target, "insert");
    return this.options.imports.import(rights, source, {
      keepsExisting,
      rows: rows(),
      layout,
      operation: keepsExisting ? "append" : "import",
    });
  }

  async listVersions({ appId, ref }: DataSourceReference): Promise<DataSourceSnapshot[]> {
    const { sources, snapshots } = this.options;
    return snapshots.list(await sources.find(appId, ref));
  }

  /** Lists the shapes of recent queries (queries without values) on the data source, each with the index that it can use. */
  async listQueries({ appId, ref }: DataSourceReference): Promise<RecentQuery[]> {
    const { sources, recentQueries } = this.options;
    return recentQueries.list(await sources.find(appId, ref));
  }

  /** Replaces all entries of the data source by the entries of a snapshot. @throws VERSION_NOT_FOUND, RESOURCE_CHANGED */
  async restore(
    request: AdmittedRequest,
    target: DataSourceReference,
    versionId: number,
    precondition?: ExpectedVersions,
  ): Promise<{ inserted: number }> {
    const { changes, snapshots } = this.options;
    const { rights, source } = await this.open(request, target);
    if (request.caller) throwIfUnknownField(request.caller);
    return { inserted: await snapshots.restore(changes, source, rights.writer, versionId, precondition) };
  }
}
