/** Actions over GraphQL: the authoring verbs. Each method: the gate, then one call. */
import { Arg, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { ActionChange, ActionFeed } from "../../operations/actions/action-feed.js";
import type { Action } from "../../operations/actions/action-rows.js";
import type { Actions, PublishedCopy } from "../../operations/actions/actions.js";
import { guarded } from "../../operations/records/live-source.js";
import type { RequestContext } from "../context.js";
import { CreateActionInput, UpdateActionInput } from "./action-inputs.js";
import { ActionListType, ActionType, PublishedCopyType } from "./action-types.js";
import { IdempotencyKey, keyOf } from "./idempotency.js";
import { IfUpdatedAt, preconditionOf, type StateGiven } from "./if-updated-at.js";
import { ActionChangeType } from "./version-types.js";

/** What the subscription needs of its context: decorators know no instance. */
export interface ActionFeedContext extends RequestContext {
  gate: Gate;
  actionFeed: ActionFeed;
}

@Resolver(() => ActionListType)
export class ActionResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Actions,
  ) {}

  @Query(() => ActionListType, { description: "The app's master actions, newest first." })
  async actions(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("limit", () => Int, { nullable: true }) limit?: number,
    @Arg("offset", () => Int, { nullable: true }) offset?: number,
    @Arg("search", () => String, { nullable: true, description: "Words that name or description must hold." })
    search?: string | null,
  ): Promise<ActionListType> {
    await this.gate.enter(context, "listActions", appId);
    return this.service.list(appId, { limit, offset, search }, context.answer?.reserve);
  }

  @FieldResolver(() => [PublishedCopyType], { description: "The production copies of the masters in this list." })
  async published(@Root() { actions }: ActionListType): Promise<PublishedCopy[]> {
    return this.service.published(actions.map(({ id }) => id));
  }

  @Query(() => ActionType)
  async action(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<Action> {
    await this.gate.enter(context, "getAction", appId);
    return this.service.get(appId, id);
  }

  @Mutation(() => ActionType, {
    description: "Repeats with one Idempotency-Key create once.",
  })
  async createAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => CreateActionInput, { nullable: true }) data: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<Action> {
    const caller = await this.gate.enter(context, "createAction", appId);
    return this.service.create(caller, appId, data, keyOf(context, key));
  }

  @Mutation(() => ActionType, { description: "Omitted properties stay as they are." })
  async updateAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("data", () => UpdateActionInput, { nullable: true }) data: unknown,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<Action> {
    const caller = await this.gate.enter(context, "updateAction", appId);
    return this.service.update(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) }, data);
  }

  @Mutation(() => Boolean, { description: "Removes the master, its production copy and its history." })
  async removeAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @IfUpdatedAt() ifUpdatedAt?: StateGiven,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "removeAction", appId);
    await this.service.remove(caller, { appId, id, precondition: preconditionOf(ifUpdatedAt) });
    return true;
  }

  @Subscription(() => ActionChangeType, {
    description:
      "How an action stands after each change of it or its publication, and by whom: first a reset, then as it happens.",
    subscribe: async ({ args, context }) => {
      const { appId } = args as { appId: number };
      const { gate, actionFeed, ...visitor } = context as ActionFeedContext;
      await gate.enter(visitor, "followActions", appId);
      return guarded(actionFeed.follow(appId), {
        appId,
        check: (caller) => gate.recheck(caller, "followActions", appId),
      });
    },
  })
  actionChanged(@Root() change: ActionChange, @Arg("appId", () => Int) _appId: number): ActionChange {
    return change;
  }
}
