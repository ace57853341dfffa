/** Actions over GraphQL: the authoring verbs. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, FieldResolver, Int, Mutation, ObjectType, Query, Resolver, Root } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Action } from "../../operations/actions/action-rows.js";
import type { Actions, PublishedCopy } from "../../operations/actions/actions.js";
import type { RequestContext } from "../context.js";

@ObjectType("Action", { description: "One copy of an action (specification, Action object). Times are ISO 8601." })
export class ActionType {
  @Field(() => Int) id: number;
  @Field(() => Int) appId: number;
  @Field(() => String) name: string;
  @Field(() => String, { nullable: true }) description: string | null;
  @Field(() => String) code: string;
  @Field(() => Boolean) active: boolean;
  @Field(() => String, { description: "server, client or any" }) environment: string;
  @Field(() => String, { description: "always v3" }) actionVersion: string;
  @Field(() => GraphQLJSON, { description: "[{trigger, where}]" }) triggers: unknown;
  @Field(() => [String]) dependencies: string[];
  @Field(() => GraphQLJSON, { description: "[{name, url, path}], one per dependency" }) assets: unknown;
  @Field(() => String, { nullable: true, description: "cron expression of five fields" }) frequency: string | null;
  @Field(() => String, { nullable: true, description: "IANA time zone" }) timezone: string | null;
  @Field(() => String, { nullable: true }) lastRunAt: string | null;
  @Field(() => String) createdAt: string;
  @Field(() => String) updatedAt: string;
}

@ObjectType("ActionPagination")
class ActionPaginationType {
  @Field(() => Int) total: number;
  @Field(() => Boolean) hasMore: boolean;
}

@ObjectType("ActionList")
class ActionListType {
  @Field(() => [ActionType]) actions: Action[];
  @Field(() => ActionPaginationType) pagination: { total: number; hasMore: boolean };
}

@ObjectType("PublishedCopy", { description: "The production copy of a master. Times are ISO 8601." })
class PublishedCopyType {
  @Field(() => Int) masterId: number;
  @Field(() => Int) id: number;
  @Field(() => Boolean) active: boolean;
  @Field(() => String, { nullable: true }) lastRunAt: string | null;
  @Field(() => String, { description: "when it was published last" }) updatedAt: string;
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
  ): Promise<ActionListType> {
    await this.gate.enter(context, "listActions", appId);
    return this.service.list(appId, { limit, offset });
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
    description: "`data` as in the specification's Create parameters. Repeats with one Idempotency-Key create once.",
  })
  async createAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("data", () => GraphQLJSON, { nullable: true }) data: unknown,
  ): Promise<Action> {
    const caller = await this.gate.enter(context, "createAction", appId);
    return this.service.create(caller, appId, data, context.idempotencyKey);
  }

  @Mutation(() => ActionType, { description: "Omitted properties stay as they are." })
  async updateAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("data", () => GraphQLJSON, { nullable: true }) data: unknown,
  ): Promise<Action> {
    const caller = await this.gate.enter(context, "updateAction", appId);
    return this.service.update(caller, appId, id, data);
  }

  @Mutation(() => Boolean, { description: "Removes the master, its production copy and its history." })
  async removeAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<boolean> {
    const caller = await this.gate.enter(context, "removeAction", appId);
    await this.service.remove(caller, appId, id);
    return true;
  }
}
