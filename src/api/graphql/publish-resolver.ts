/**
 * GraphQL resolver that publishes and unpublishes actions. Each method checks the caller's access and then calls one
 * operation.
 */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Action } from "../../operations/actions/action-rows.js";
import type { ActionPublisher } from "../../operations/actions/publishing.js";
import type { TriggerEndpoints } from "../../operations/http/endpoints.js";
import type { RequestContext } from "../context.js";
import { ActionType } from "./action-types.js";
import { AppIdArgument } from "./arguments.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";

@ObjectType("PublishedAction", { description: "Result of a publication." })
class PublishedActionType {
  @Field(() => ActionType, { description: "Live version of the action." }) action: Action;
}

@Resolver()
export class PublishResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: ActionPublisher,
    private readonly endpoints: TriggerEndpoints,
  ) {}

  @Mutation(() => PublishedActionType, {
    description: "Creates the live version of an action, or replaces it with the draft.",
  })
  async publishAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt: ChangePrecondition,
    @Arg("tested", () => Boolean, {
      defaultValue: false,
      description: "True to state that the tests of the draft have passed; an app can require that. False by default.",
    })
    tested: boolean,
  ): Promise<PublishedActionType> {
    const caller = await this.accessChecks.requireAppAccess(context, "publishAction", appId);
    const target = { appId, id, tested, precondition: toExpectedVersions(ifUpdatedAt) };
    return { action: await this.endpoints.addUrlsToOne(caller, await this.service.publish(caller, target)) };
  }

  @Mutation(() => Boolean, { description: "Deletes the live version of an action and keeps the draft." })
  async unpublishAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "unpublishAction", appId);
    await this.service.unpublish(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }
}
