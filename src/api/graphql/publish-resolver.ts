/** Publication over GraphQL. Each method: the gate, then one call. */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Action } from "../../operations/actions/action-rows.js";
import type { Publishing } from "../../operations/actions/publishing.js";
import type { RequestContext } from "../context.js";
import { ActionType } from "./action-types.js";
import { AppId } from "./arguments.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";

@ObjectType("PublishedAction")
class PublishedActionType {
  @Field(() => ActionType, { description: "The production copy." }) action: Action;
}

@Resolver()
export class PublishResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Publishing,
  ) {}

  @Mutation(() => PublishedActionType, { description: "Makes the production copy, or overwrites it with the master." })
  async publishAction(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<PublishedActionType> {
    const caller = await this.gate.enter(context, "publishAction", appId);
    const target = { appId, id, precondition: preconditionOf(ifUpdatedAt) };
    return { action: await this.service.publish(caller, target) };
  }

  @Mutation(() => Boolean, { description: "Takes the production copy away; the master stays." })
  async unpublishAction(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "unpublishAction", appId);
    await this.service.unpublish(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) });
    return true;
  }
}
