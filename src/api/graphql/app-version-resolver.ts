/** An app's snapshots over GraphQL: taken, listed, looked at, restored. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { AppVersion, AppVersionDetails, AppVersions } from "../../operations/apps/app-versions.js";
import type { App, Apps } from "../../operations/apps/apps.js";
import type { RequestContext } from "../context.js";
import { AppSnapshotType, AppType } from "./app-types.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";
import { DateTime } from "./leaf-types.js";
import { VersionPaginationType, VersionUserType } from "./version-types.js";

@ObjectType("AppVersion", { description: "A snapshot of an app." })
class AppVersionType {
  @Field(() => Int) id: number;
  @Field(() => DateTime) createdAt: string;
  @Field(() => Int, { nullable: true }) userId: number | null;
  @Field(() => VersionUserType, { nullable: true }) user: AppVersion["user"];
  @Field(() => String, { description: "create, publish or pre-restore" }) action: string;
  @Field(() => String, { nullable: true, description: "The app's name at the time." }) name: string | null;
}

@ObjectType("AppVersionDetails")
class AppVersionDetailsType extends AppVersionType {
  @Field(() => AppSnapshotType, { description: "The app's own fields." }) data: Record<string, unknown>;
  @Field(() => GraphQLJSON, { description: "Public and private settings." }) settings: Record<string, unknown>;
}

@ObjectType("AppVersionList")
class AppVersionListType {
  @Field(() => [AppVersionType]) versions: AppVersion[];
  @Field(() => VersionPaginationType) pagination: VersionPaginationType;
}

@Resolver()
export class AppVersionResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: AppVersions,
    private readonly appService: Apps,
  ) {}

  @Query(() => AppVersionListType, { description: "Most recent first; limit 50 unless given, at most 100." })
  async appVersions(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("limit", () => Int, { nullable: true }) limit?: number | null,
    @Arg("offset", () => Int, { nullable: true }) offset?: number | null,
  ): Promise<AppVersionListType> {
    await this.gate.enter(context, "appVersions", appId);
    return this.service.list(appId, { limit, offset });
  }

  @Query(() => AppVersionDetailsType)
  async appVersion(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("versionId", () => Int) versionId: number,
  ): Promise<AppVersionDetails> {
    await this.gate.enter(context, "appVersions", appId);
    return this.service.get(appId, versionId);
  }

  @Mutation(() => AppVersionType)
  async createAppVersion(@Ctx() context: RequestContext, @Arg("appId", () => Int) appId: number): Promise<AppVersion> {
    const caller = await this.gate.enter(context, "appVersions", appId);
    return this.service.create(caller, appId);
  }

  @Mutation(() => AppType, {
    description: "Protected settings stay as they are; what was before is kept in a version.",
  })
  async restoreAppVersion(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("versionId", () => Int) versionId: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<App> {
    const caller = await this.gate.enter(context, "appVersions", appId);
    await this.service.restore(caller, { appId, precondition: preconditionOf(ifUpdatedAt) }, versionId);
    return this.appService.get(appId);
  }
}
