/** Snapshots of an app over GraphQL: create, list, read, restore. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX } from "../../limits.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { AppVersion, AppVersionDetails, AppVersions } from "../../operations/apps/app-versions.js";
import type { App, Apps } from "../../operations/apps/apps.js";
import type { RequestContext } from "../context.js";
import { AppSnapshotType, AppType } from "./app-types.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { DateTime } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";
import { ActionVersionPaginationType, VersionUserType } from "./version-types.js";

@ObjectType("AppVersion", { description: "Snapshot of an app." })
class AppVersionType {
  @Field(() => Int, { description: "ID of the snapshot." }) id: number;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => Int, { nullable: true, description: "ID of the person who caused the snapshot; null if no person did." })
  userId: number | null;
  @Field(() => VersionUserType, {
    nullable: true,
    description: "Person who caused the snapshot; null if no person did.",
  })
  user: AppVersion["user"];
  @Field(() => String, { description: "Operation that took the snapshot: create, publish or pre-restore." })
  action: string;
  @Field(() => String, {
    nullable: true,
    description: "Name of the app at the time; null if the snapshot does not contain it.",
  })
  name: string | null;
}

@ObjectType("AppVersionDetails", { description: "Snapshot of an app with its content." })
class AppVersionDetailsType extends AppVersionType {
  @Field(() => AppSnapshotType, { description: "Fields of the app." }) data: Record<string, unknown>;
  @Field(() => GraphQLJSON, { description: "Object of public and private settings." }) settings: Record<
    string,
    unknown
  >;
}

@ObjectType("AppVersionList", { implements: ListPageType, description: "Page of app snapshots." })
class AppVersionListType {
  @PageItemsField(() => [AppVersionType], "Snapshots on this page.") versions: AppVersion[];
  @Field(() => ActionVersionPaginationType, {
    ...DEPRECATED_IN_FAVOR_OF_PAGE,
    description: "Position of this page in the list.",
  })
  pagination: ActionVersionPaginationType;
}

@Resolver()
export class AppVersionResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: AppVersions,
    private readonly appService: Apps,
  ) {}

  @Query(() => AppVersionListType, { description: "Lists the app's snapshots, newest first." })
  async appVersions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Limit(VERSIONS_PER_PAGE_DEFAULT, VERSIONS_PER_PAGE_MAX) limit?: number | null,
    @Offset() offset?: number | null,
  ): Promise<AppVersionListType> {
    await this.accessChecks.requireAppAccess(context, "appVersions", appId);
    return this.service.list(appId, { limit, offset });
  }

  @Query(() => AppVersionDetailsType, { description: "Returns a snapshot of the app with its content." })
  async appVersion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("versionId", () => Int, { description: "ID of the snapshot." }) versionId: number,
  ): Promise<AppVersionDetails> {
    await this.accessChecks.requireAppAccess(context, "appVersions", appId);
    return this.service.get(appId, versionId);
  }

  @Mutation(() => AppVersionType, { description: "Takes a snapshot of the app." })
  async createAppVersion(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<AppVersion> {
    const caller = await this.accessChecks.requireAppAccess(context, "appVersions", appId);
    return this.service.create(caller, appId);
  }

  @Mutation(() => AppType, {
    description:
      "Takes a snapshot of the app, then restores an earlier snapshot. Protected settings keep their values.",
  })
  async restoreAppVersion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("versionId", () => Int, { description: "ID of the snapshot." }) versionId: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "appVersions", appId);
    await this.service.restore(caller, { appId, precondition: toExpectedVersions(ifUpdatedAt) }, versionId);
    return this.appService.get(appId);
  }
}
