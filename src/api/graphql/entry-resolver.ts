/**
 * GraphQL resolver of the entries of data sources (tables of an app). Each method checks the caller's access and then
 * calls one operation. For callers without rights on the app, the data source's access rules decide.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Entries, EntryImportFile } from "../../operations/data-sources/entries.js";
import type { Entry } from "../../operations/data-sources/entry.js";
import type { EntryCommitResult } from "../../operations/data-sources/entry-commits.js";
import type { EntryExportOptions } from "../../operations/data-sources/entry-export.js";
import type { EntryImportResult } from "../../operations/data-sources/entry-imports.js";
import type { FindEntriesResult } from "../../operations/data-sources/entry-reads.js";
import type { EntryChangeMessage } from "../../operations/data-sources/entry-subscribers.js";
import { guardSubscriptionSource } from "../../operations/records/subscription-source.js";
import { type IdOrName, parseReference, type ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import {
  DeletedEntriesType,
  EntryChangesType,
  EntryCommitInput,
  EntryCommitResultType,
  EntryImportResultType,
  EntryListType,
  EntryQueryInput,
  EntryType,
} from "./data-source-types.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { ReferenceArgument, ReferenceKindArgument } from "./reference-arguments.js";

/**
 * Context of the subscription. It contains the access check and the entries, because the decorator of a subscription
 * cannot access the resolver instance.
 */
export interface EntrySubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  entries: Pick<Entries, "follow">;
}

interface EntryFollowArguments {
  appId: number;
  dataSourceId: string;
  by?: ReferenceKind | null;
  where?: unknown;
  since?: string;
}

/** Returns the query as REST passes it: without null and undefined fields, and with `true` instead of the cursor "first". */
function removeAbsentFields(query: EntryQueryInput | null | undefined): object {
  const presentFields = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    presentFields.map(([name, value]) => [name, name === "cursor" && value === "first" ? true : value]),
  );
}

@Resolver()
export class EntryResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Entries,
  ) {}

  @Query(() => EntryType, { description: "Returns an entry of a data source." })
  async dataSourceEntry(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("id", () => Int, { description: "ID of the entry." }) id: number,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<Entry> {
    const visit = await this.accessChecks.admitAppRequest(context, "readEntries", appId);
    return this.service.get(visit, { appId, ref }, id);
  }

  @Query(() => EntryListType, {
    description: "Queries the entries of a data source. An aggregate returns `documents` instead of entries.",
  })
  async dataSourceEntries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("query", () => EntryQueryInput, {
      nullable: true,
      description: "Filter, sort order, page, joins and aggregate; the first page of all entries by default.",
    })
    query?: EntryQueryInput | null,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<EntryListType> {
    const { entries, ...pages } = await this.find(context, appId, ref, removeAbsentFields(query));
    const isAggregate = query?.aggregate != null;
    return { entries: isAggregate ? [] : (entries as EntryType[]), documents: isAggregate ? entries : null, ...pages };
  }

  @Query(() => GraphQLJSON, {
    description: "Returns the distinct values of the given columns: an object with one list of values for each column.",
  })
  async dataSourceIndexes(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("columns", () => [String], { description: "Names of the columns." }) columns: string[],
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<object> {
    const admission = await this.accessChecks.admitAppRequest(context, "readEntries", appId);
    return this.service.distinct(admission, { appId, ref }, columns);
  }

  @Subscription(() => EntryChangesType, {
    description: "Emits changes of the entries that match a filter. The first message contains the current position.",
    subscribe: async ({ args, context }) => {
      const { appId, dataSourceId, by, where, since } = args as EntryFollowArguments;
      const { accessChecks, entries, ...requestContext } = context as EntrySubscriptionContext;
      const admission = await accessChecks.admitAppRequest(requestContext, "readEntries", appId);
      const changeSource = await entries.follow(
        admission,
        { appId, ref: parseReference(dataSourceId, by) },
        { where, since },
      );
      return guardSubscriptionSource(changeSource, {
        appId,
        check: (caller) => accessChecks.recheckAdmission(caller, "readEntries", appId),
      });
    },
  })
  dataSourceChanged(
    @Root() message: EntryChangeMessage,
    @AppIdArgument() _appId: number,
    @ReferenceArgument("dataSourceId") _ref: IdOrName,
    @Arg("where", () => GraphQLJSON, {
      nullable: true,
      description: "Filter that the entries must match; all entries by default.",
    })
    _where?: unknown,
    @Arg("since", () => String, {
      nullable: true,
      description: "Position of an earlier message, after which the subscription resumes; from now on by default.",
    })
    _since?: string,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): EntryChangeMessage {
    return message;
  }

  @Mutation(() => DeletedEntriesType, { description: "Deletes the entries that match a filter." })
  async deleteEntries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("where", () => GraphQLJSON, { description: "Filter that the entries must match." }) where: unknown,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<DeletedEntriesType> {
    return this.removeMatching(context, appId, ref, { where });
  }

  async removeMatching(
    context: RequestContext,
    appId: number,
    ref: IdOrName,
    query: object,
  ): Promise<DeletedEntriesType> {
    const visit = await this.accessChecks.admitAppRequest(context, "removeEntries", appId);
    return this.service.removeWhere(visit, { appId, ref }, query);
  }

  async find(context: RequestContext, appId: number, ref: IdOrName, query: unknown): Promise<FindEntriesResult> {
    const visit = await this.accessChecks.admitAppRequest(context, "readEntries", appId);
    return this.service.find(visit, { appId, ref }, query, context.responseBudget?.reserveBytes);
  }

  @Mutation(() => EntryType, { description: "Inserts an entry." })
  async insertEntry(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("data", () => GraphQLJSON, { nullable: true, description: "Values of the entry by column." }) data: unknown,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<Entry> {
    const visit = await this.accessChecks.admitAppRequest(context, "writeEntries", appId);
    return this.service.insert(visit, { appId, ref }, data);
  }

  @Mutation(() => EntryType, { description: "Updates an entry; omitted columns keep their values." })
  async updateEntry(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("id", () => Int, { description: "ID of the entry." }) id: number,
    @Arg("data", () => GraphQLJSON, { nullable: true, description: "Values to change by column." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<Entry> {
    const visit = await this.accessChecks.admitAppRequest(context, "writeEntries", appId);
    return this.service.update(visit, { appId, ref }, id, data, toExpectedVersions(ifUpdatedAt ?? null));
  }

  @Mutation(() => EntryType, { description: "Deletes an entry and returns its last state." })
  async deleteEntry(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("id", () => Int, { description: "ID of the entry." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<Entry> {
    const visit = await this.accessChecks.admitAppRequest(context, "removeEntries", appId);
    return this.service.remove(visit, { appId, ref }, id, toExpectedVersions(ifUpdatedAt ?? null));
  }

  @Mutation(() => EntryCommitResultType, { description: "Inserts, updates and deletes entries in one transaction." })
  async commitEntries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("commit", () => EntryCommitInput, { nullable: true, description: "Entries to insert, update and delete." })
    commit: unknown,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<EntryCommitResult> {
    const visit = await this.accessChecks.admitAppRequest(context, "writeEntries", appId);
    return this.service.commit(visit, { appId, ref }, commit);
  }

  @Mutation(() => EntryImportResultType, {
    description: "Replaces or appends entries in one transaction. Use REST to import files.",
  })
  async importEntries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("entries", () => [GraphQLJSON], { description: "Data of the entries." }) entries: unknown[],
    @Arg("append", () => Boolean, {
      nullable: true,
      description: "True to add the entries to the existing ones; false by default, which replaces them.",
    })
    append?: boolean,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<EntryImportResult> {
    const visit = await this.accessChecks.admitAppRequest(context, "writeEntries", appId);
    const rows = async function* () {
      yield* entries;
    };
    return this.service.import(visit, { appId, ref }, { keepsExisting: append ?? false, rows });
  }

  /** Exports all entries that the caller may read. Not in the GraphQL schema: only the REST route calls this method. */
  async exportEntryFile(context: RequestContext, appId: number, ref: IdOrName, options: EntryExportOptions) {
    const visit = await this.accessChecks.admitAppRequest(context, "readEntries", appId);
    return this.service.export(visit, { appId, ref }, options);
  }

  /** Imports entries from a file. Not in the GraphQL schema: only the REST route calls this method. */
  async importEntryFile(
    context: RequestContext,
    appId: number,
    ref: IdOrName,
    file: EntryImportFile,
  ): Promise<EntryImportResult> {
    const visit = await this.accessChecks.admitAppRequest(context, "writeEntries", appId);
    return this.service.import(visit, { appId, ref }, file);
  }
}
