/**
 * Operations on entries for callers. Each finds the data source, checks the caller's right, validates the request, and calls the module
 * that does the work.
 */
import type { DataSource as Database } from "typeorm";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { meetsTests } from "../../rules/caller-rules.js";
import { isObject } from "../../rules/described.js";
import type { EntryVerb } from "../../rules/entries/access-rules.js";
import { accessDenied, mayNameById } from "../../rules/entries/entry-access.js";
import { columnsOf, parseCommit } from "../../rules/entries/entry-input.js";
import type { JsonText } from "../../rules/json-text.js";
import type { ReserveBytes } from "../../rules/page.js";
import type { ExpectedTags } from "../../rules/precondition.js";
import type { EntityReference } from "../../rules/reference.js";
import { flatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { type AdmittedRequest, reportDeferred } from "../access/gate.js";
import type { LiveSource } from "../records/live-source.js";
import type { DataSourceRows, StoredDataSource } from "./data-source-rows.js";
import { type Entry, entryView, type StoredEntry } from "./entry.js";
import type { EntryChanges } from "./entry-changes.js";
import type { CommitResult, EntryCommits } from "./entry-commits.js";
import type { EntryExport, EntryExportOptions } from "./entry-export.js";
import type { EntryFeed, EntryNews } from "./entry-feed.js";
import type { EntryImports, ImportResult } from "./entry-imports.js";
import type { FoundEntries } from "./entry-reads.js";
import type { EntryRights, Rights } from "./entry-rights.js";
import type { EntrySearches } from "./entry-searches.js";
import type { EntryVersion, EntryVersions } from "./entry-versions.js";
import type { EntryWrites } from "./entry-writes.js";
import type { RecentQueries, RecentQuery } from "./recent-queries.js";
import type { CsvLayout } from "./row-streams.js";

/** An app and one of its data sources. */
export interface DataSourceTarget {
  appId: number;
  ref: EntityReference;
}

/** Returns the rows to import. Called only after the caller's right has been checked. */
export interface ImportFile {
  append: boolean;
  /** Called after the caller's right has been checked. */
  rows: () => AsyncIterable<unknown>;
  /** Layout of the imported file, which is filled in while the file is read. */
  layout?: CsvLayout;
}

const REMOVAL_SHAPE = flatShape(["type", "where"]);

const ONE = `
  SELECT id, data, "order", created_at AS "createdAt", updated_at AS "updatedAt" FROM data_source_entry
   WHERE app_id = $1 AND data_source_id = $2 AND id = $3`;

export type Entries = ReturnType<typeof createEntries>;

export function createEntries(options: {
  db: Database;
  sources: DataSourceRows;
  rights: EntryRights;
  changes: EntryChanges;
  writes: EntryWrites;
  commits: EntryCommits;
  imports: EntryImports;
  versions: EntryVersions;
  searches: EntrySearches;
  recent: Pick<RecentQueries, "list">;
  exports: EntryExport;
  feed: EntryFeed;
}) {
  const { db, sources, changes, writes, commits, imports, versions, searches, recent, exports, feed } = options;

  /**
   * Finds the data source and the caller's rights. Callers without any of the rights learn neither whether the data source exists nor about
   * faults of their request.
   * @param verbs operations of which the rules must grant at least one; trusted callers have all
   */
  async function openSource(visit: AdmittedRequest, { appId, ref }: DataSourceTarget, ...verbs: EntryVerb[]) {
    const rights = await options.rights.of(visit);
    const source = await sources.find(appId, ref).catch((error: unknown) => {
      throw rights.as.trusted || !(error instanceof ActionError) ? error : rights.refused();
    });
    if (!verbs.some((verb) => rights.may(source, verb))) for (const verb of verbs) rights.grant(source, verb);
    reportDeferred(visit);
    return { rights, source };
  }

  async function readOne(rights: Rights, source: StoredDataSource, id: number): Promise<Entry> {
    const grant = rights.grant(source, "select");
    if (!mayNameById(grant)) throw accessDenied();
    const [entry] = await rows<StoredEntry>(db, ONE, [source.appId, source.id, id]);
    if (!entry || !meetsTests(entry.data, grant.tests)) throw new ActionError("ENTRY_NOT_FOUND");
    return entryView(entry, source.id, rights.scopeOfOne(source)!.canSee);
  }

  return {
    open: openSource,

    /** @throws DATA_SOURCE_NOT_FOUND, DATA_SOURCE_ACCESS_DENIED, ENTRY_NOT_FOUND */
    async get(visit: AdmittedRequest, place: DataSourceTarget, id: number): Promise<Entry> {
      const { rights, source } = await openSource(visit, place, "select");
      return readOne(rights, source, id);
    },

    /** Returns a page of entries, or the result of an aggregate. @throws as `get`; REQUEST_INVALID */
    async find(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      query: unknown,
      reserve?: ReserveBytes,
    ): Promise<FoundEntries> {
      const { rights, source } = await openSource(visit, place, "select");
      return searches.find(rights, source, query, reserve);
    },

    async distinct(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      columns: readonly string[],
    ): Promise<Record<string, JsonText[]>> {
      const { rights, source } = await openSource(visit, place, "select");
      return searches.distinct(rights, source, columns);
    },

    /** Returns the name of the data source, and the texts of all entries that the caller can see. @throws as `get` */
    async export(visit: AdmittedRequest, place: DataSourceTarget, wish: EntryExportOptions) {
      const { rights, source } = await openSource(visit, place, "select");
      const scope = rights.scope(source, null);
      return { name: source.name, texts: exports.exportRows(source, source.columns, scope, wish) };
    },

    /** Subscribes to changes as they are committed. @throws as `get`; REQUEST_INVALID */
    async follow(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      wish: { where: unknown; since: unknown },
    ): Promise<LiveSource<EntryNews>> {
      const { source } = await openSource(visit, place, "select");
      return feed.follow(visit, source, wish);
    },

    /** @param query `{where}` */
    async removeWhere(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      query: object,
    ): Promise<{ deletedCount: number }> {
      const { rights, source } = await openSource(visit, place, "delete");
      const { where } = query as { where?: unknown };
      if (!isObject(where)) {
        throw new ActionError("REQUEST_INVALID", "where must be an object: {} for all entries");
      }
      refuseUnknownFields(query, REMOVAL_SHAPE);
      return searches.remove(rights, source, where);
    },

    async insert(visit: AdmittedRequest, place: DataSourceTarget, body: unknown): Promise<Entry> {
      const { rights, source } = await openSource(visit, place, "insert");
      return writes.insert(rights, source, columnsOf(body, "the entry"));
    },

    async update(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      id: number,
      body: unknown,
      precondition: ExpectedTags,
    ): Promise<Entry> {
      const { rights, source } = await openSource(visit, place, "update");
      return writes.update(rights, source, { id, precondition }, columnsOf(body, "the entry"));
    },

    async remove(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      id: number,
      precondition: ExpectedTags,
    ): Promise<Entry> {
      const { rights, source } = await openSource(visit, place, "delete");
      return writes.remove(rights, source, { id, precondition });
    },

    async commit(visit: AdmittedRequest, place: DataSourceTarget, body: unknown): Promise<CommitResult> {
      const { rights, source } = await openSource(visit, place, "insert", "update", "delete");
      return commits.commit(rights, source, parseCommit(body));
    },

    async import(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      { append, rows, layout }: ImportFile,
    ): Promise<ImportResult> {
      const { rights, source } = await openSource(visit, place, "insert");
      return imports.import(rights, source, { append, rows: rows(), layout, operation: append ? "append" : "import" });
    },

    async listVersions({ appId, ref }: DataSourceTarget): Promise<EntryVersion[]> {
      return versions.list(await sources.find(appId, ref));
    },

    /** Lists the shapes of recent queries, each with the index that serves it. */
    async listQueries({ appId, ref }: DataSourceTarget): Promise<RecentQuery[]> {
      return recent.list(await sources.find(appId, ref));
    },

    /** @throws VERSION_NOT_FOUND */
    async restore(
      visit: AdmittedRequest,
      place: DataSourceTarget,
      versionId: number,
      precondition?: ExpectedTags,
    ): Promise<{ inserted: number }> {
      const { rights, source } = await openSource(visit, place);
      return { inserted: await versions.restore(changes, source, rights.writer, versionId, precondition) };
    },
  };
}
