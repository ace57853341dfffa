/**
 * GraphQL resolver of stages (apps with the same definitions, such as a test app) and promotions, which copy
 * definitions to another stage. Each method checks the caller's access and then calls one operation.
 */

import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { App } from "../../operations/apps/apps.js";
import type { ManifestPlan, Manifests } from "../../operations/manifest/manifests.js";
import type { PromotionResult, StagePromotion, StagePromotions } from "../../operations/stages/promotions.js";
import type { Stage, Stages } from "../../operations/stages/stages.js";
import type { RequestContext } from "../context.js";
import { AppType } from "./app-types.js";
import { AppIdArgument } from "./arguments.js";
import { DateTime } from "./leaf-types.js";
import { ManifestPlanType } from "./manifest-resolver.js";

@ObjectType("Stage", { description: "App of a group of stages." })
class StageType implements Stage {
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => String, {
    nullable: true,
    description: "Name of the stage; null for the app whose stages these are.",
  })
  name: string | null;
  @Field(() => String, { description: "Name of the app." }) appName: string;
  @Field(() => DateTime, { nullable: true, description: "Time at which the app is deleted; null if it stays." })
  expiresAt: string | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
}

@ObjectType("Promotion", {
  description: "Definitions that were brought to an app from another stage, or by a rollback.",
})
class PromotionType implements StagePromotion {
  @Field(() => Int, { description: "ID of the promotion." }) id: number;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => Int, { nullable: true, description: "ID of the app that it came from; null for a rollback." })
  fromAppId: number | null;
  @Field(() => Int, { nullable: true, description: "ID of the promotion that a rollback names; null for a promotion." })
  rolledBackTo: number | null;
  @Field(() => Int, { nullable: true, description: "ID of the person; null for API tokens." }) userId: number | null;
  @Field(() => ManifestPlanType, { description: "Differences that were applied." }) plan: ManifestPlan;
  @Field(() => DateTime, { description: "Time of the promotion." }) createdAt: string;
}

@ObjectType("PromotionResult", { description: "Result of a promotion, or of its plan." })
class PromotionResultType implements PromotionResult {
  @Field(() => ManifestPlanType, { description: "Differences that were found or applied." }) plan: ManifestPlan;
  @Field(() => String, {
    nullable: true,
    description: "Tag of the definitions of both apps, for `ifMatch`; null for a rollback.",
  })
  tag: string | null;
  @Field(() => PromotionType, { nullable: true, description: "The promotion; null if it was only planned." })
  promotion: StagePromotion | null;
}

@Resolver()
export class StageResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Stages,
    private readonly stagePromotions: StagePromotions,
    private readonly manifests: Pick<Manifests, "reserveMemory">,
  ) {}

  @Query(() => [StageType], {
    description: "Lists all stages of the group to which the app belongs, the original app first.",
  })
  async stages(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<Stage[]> {
    await this.accessChecks.requireAppAccess(context, "readStages", appId);
    return this.service.list(appId);
  }

  @Query(() => [PromotionType], { description: "Lists the last 50 promotions to the app, newest first." })
  async promotions(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<StagePromotion[]> {
    await this.accessChecks.requireAppAccess(context, "readStages", appId);
    return this.stagePromotions.list(appId);
  }

  @Mutation(() => AppType, {
    description: "Creates an app with the definitions, public settings and editors of this app, and without its data.",
  })
  async createStage(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("name", () => String, { nullable: true, description: "Name of the stage; required." }) name: unknown,
    @Arg("expiresInHours", () => Int, {
      nullable: true,
      description: "Hours until the app is deleted, 1 to 744; null for a stage that stays.",
    })
    expiresInHours: unknown,
  ): Promise<App> {
    return this.createStageOf(context, appId, { name, expiresInHours });
  }

  async createStageOf(context: RequestContext, appId: number, body: unknown): Promise<App> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeStages", appId);
    await this.manifests.reserveMemory([appId], context.responseBudget?.reserveBytes);
    return this.service.create(caller, appId, body);
  }

  @Mutation(() => Boolean, {
    description:
      "Deletes a preview (a stage that expires) with its data. The caller must have at least the role editor on the app and on the preview.",
  })
  async removeStage(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("stageAppId", () => Int, { description: "ID of the preview's app." }) stageAppId: number,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "writeStages", appId);
    this.accessChecks.recheck(caller, "writeStages", stageAppId);
    await this.service.remove(caller, appId, stageAppId);
    return true;
  }

  @Mutation(() => PromotionResultType, {
    description:
      "Promotes another stage to the app: copies all definitions of the stage, or none if one copy fails. Publishes nothing.",
  })
  async promote(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("fromAppId", () => Int, { nullable: true, description: "ID of the other stage's app; required." })
    fromAppId: unknown,
    @Arg("plan", () => Boolean, {
      defaultValue: false,
      description: "True to report the differences without applying them; false by default.",
    })
    plan: boolean,
    @Arg("ifMatch", () => [String], {
      nullable: true,
      description: "Tags of the definitions that the promotion may start from; absent for any.",
    })
    ifMatch: readonly string[] | null | undefined,
  ): Promise<PromotionResult> {
    const caller = await this.accessChecks.requireAppAccess(context, "promote", appId);
    const checkPermission = (operation: Parameters<AccessChecks["recheck"]>[1], id: number) =>
      this.accessChecks.recheck(caller, operation, id);
    const appIds = [appId, fromAppId].filter((id) => Number.isSafeInteger(id)) as number[];
    await this.manifests.reserveMemory(appIds, context.responseBudget?.reserveBytes);
    return this.stagePromotions.promote(caller, appId, fromAppId, {
      isPlan: plan,
      checkPermission,
      precondition: ifMatch ?? undefined,
    });
  }

  @Mutation(() => PromotionResultType, {
    description:
      "Rolls the app back. If the given promotion is the app's last one, restores the definitions from before this promotion. If it is an earlier one, restores the definitions that the app had directly after it.",
  })
  async rollbackPromotion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the promotion." }) id: number,
  ): Promise<PromotionResult> {
    const caller = await this.accessChecks.requireAppAccess(context, "promote", appId);
    await this.manifests.reserveMemory([appId], context.responseBudget?.reserveBytes);
    return this.stagePromotions.rollback(caller, appId, id, (operation, stageAppId) =>
      this.accessChecks.recheck(caller, operation, stageAppId),
    );
  }
}
