/**
 * GraphQL resolver of data sources (tables of an app) and their snapshots. Each method checks the caller's access and
 * then calls one operation.
 */
import { Arg, Ctx, Int, Mutation, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AccessRuleTester, AccessRuleTestResult } from "../../operations/data-sources/access-rule-tester.js";
import type { DataSourceView } from "../../operations/data-sources/data-source-rows.js";
import type { DataSourceSnapshot } from "../../operations/data-sources/data-source-snapshots.js";
import type { DataSources } from "../../operations/data-sources/data-sources.js";
import type { Entries } from "../../operations/data-sources/entries.js";
import type { RecentQuery } from "../../operations/data-sources/recent-queries.js";
import type { IdOrName, ReferenceKind } from "../../rules/reference.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import {
  AccessTrialInput,
  AccessTrialType,
  CreateDataSourceInput,
  DataSourceType,
  DataSourceVersionType,
  EntryImportResultType,
  RecentQueryType,
  UpdateDataSourceInput,
} from "./data-source-types.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { ReferenceArgument, ReferenceKindArgument } from "./reference-arguments.js";

@Resolver(() => DataSourceType)
export class DataSourceResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: DataSources,
    private readonly entries: Pick<Entries, "listQueries" | "listVersions" | "restore">,
    private readonly trials: AccessRuleTester,
  ) {}

  @Query(() => [DataSourceType], { description: "Lists the app's data sources, oldest first." })
  async dataSources(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<DataSourceView[]> {
    await this.accessChecks.requireAppAccess(context, "readDataSources", appId);
    return this.service.list(appId, context.responseBudget?.reserveBytes);
  }

  @Query(() => DataSourceType, { description: "Returns a data source by its ID or name." })
  async dataSource(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("id") ref: IdOrName,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<DataSourceView> {
    await this.accessChecks.requireAppAccess(context, "readDataSources", appId);
    return this.service.get(appId, ref);
  }

  @Mutation(() => DataSourceType, { description: "Creates a data source." })
  async createDataSource(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => CreateDataSourceInput, { nullable: true, description: "Properties of the new data source." })
    data: unknown,
  ): Promise<DataSourceView> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeDataSources", appId);
    return this.service.create(caller, appId, data);
  }

  @Mutation(() => DataSourceType, { description: "Updates a data source; omitted properties keep their values." })
  async updateDataSource(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("id") ref: IdOrName,
    @Arg("data", () => UpdateDataSourceInput, { nullable: true, description: "Properties to change." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<DataSourceView> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeDataSources", appId);
    return this.service.update(caller, { appId, ref, precondition: toExpectedVersions(ifUpdatedAt ?? null) }, data);
  }

  @Mutation(() => Boolean, { description: "Deletes a data source with its entries and snapshots." })
  async deleteDataSource(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("id") ref: IdOrName,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "removeDataSources", appId);
    await this.service.remove(caller, { appId, ref, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  @Query(() => [RecentQueryType], {
    description:
      "Lists the kinds of queries on the data source that this server process answered recently, latest first. A kind contains the columns and operators of a query, no values.",
  })
  async dataSourceQueries(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<RecentQuery[]> {
    await this.accessChecks.requireAppAccess(context, "readDataSources", appId);
    return this.entries.listQueries({ appId, ref });
  }

  @Query(() => [DataSourceVersionType], { description: "Lists the snapshots of a data source, newest first." })
  async dataSourceVersions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<DataSourceSnapshot[]> {
    await this.accessChecks.requireAppAccess(context, "readDataSources", appId);
    return this.entries.listVersions({ appId, ref });
  }

  @Mutation(() => EntryImportResultType, {
    description: "Takes a snapshot of the current entries, then restores the entries of an earlier snapshot.",
  })
  async restoreDataSourceVersion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("versionId", () => Int, { description: "ID of the snapshot." }) versionId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<EntryImportResultType> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeDataSources", appId);
    return this.entries.restore(
      { caller, isTrusted: true },
      { appId, ref },
      versionId,
      toExpectedVersions(ifUpdatedAt),
    );
  }

  @Query(() => AccessTrialType, {
    description:
      "Tries access rules without storing them: returns what these rules would allow a user of the app to do.",
  })
  async tryAccess(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @ReferenceArgument("dataSourceId") ref: IdOrName,
    @Arg("trial", () => AccessTrialInput, { nullable: true, description: "User, access rules and filter to evaluate." })
    trial: unknown,
    @ReferenceKindArgument() _by?: ReferenceKind | null,
  ): Promise<AccessRuleTestResult> {
    await this.accessChecks.requireAppAccess(context, "readEntries", appId);
    return this.trials.testRules({ appId, ref }, trial, context.responseBudget?.reserveBytes);
  }
}
