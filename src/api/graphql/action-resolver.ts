/** GraphQL resolver for authors of actions. Each method checks the caller's access and then calls one operation. */
import { Arg, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { ActionChange, ActionChangeFeed } from "../../operations/actions/action-feed.js";
import type { Action } from "../../operations/actions/action-rows.js";
import type { Actions, LiveVersionSummary } from "../../operations/actions/actions.js";
import type { RotateHttpTriggerSecret } from "../../operations/actions/secret-rotation.js";
import type { TriggerEndpoints } from "../../operations/http/endpoints.js";
import { guardSubscriptionSource } from "../../operations/records/subscription-source.js";
import { mayPerformOnApp } from "../../rules/access.js";
import type { RequestContext } from "../context.js";
import { CreateActionInput, UpdateActionInput } from "./action-inputs.js";
import { ActionListType, ActionType, LiveVersionType } from "./action-types.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { IdempotencyKeyArgument, selectIdempotencyKey } from "./idempotency.js";
import { type ChangePrecondition, IfUpdatedAtArgument, toExpectedVersions } from "./if-updated-at.js";
import { ActionChangeType } from "./version-types.js";

/**
 * Context of the subscription. It contains the access check and the event source, because the decorator of a
 * subscription cannot access the resolver instance.
 */
export interface ActionSubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  actionFeed: ActionChangeFeed;
}

/**
 * Fields of an action that callers without permission to read code do not get: REST omits them, and in GraphQL they fail with FORBIDDEN.
 */
const FIELDS_WITH_CODE = ["code", "source"];

function hideCode(action: Action): Action {
  const get = (): never => {
    throw new ActionError("FORBIDDEN", "permission denied: your role can list actions, but cannot read their code");
  };
  return Object.defineProperties(
    { ...action },
    Object.fromEntries(FIELDS_WITH_CODE.map((field) => [field, { get, enumerable: false }])),
  );
}

@Resolver(() => ActionListType)
export class ActionResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Actions,
    private readonly endpoints: TriggerEndpoints,
    private readonly rotateSecret: RotateHttpTriggerSecret,
  ) {}

  @Query(() => ActionListType, { description: "Lists the drafts of the app's actions, newest first." })
  async actions(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Limit() limit?: number,
    @Offset() offset?: number,
    @Arg("search", () => String, {
      nullable: true,
      description: "Words that the name or the description must contain.",
    })
    search?: string | null,
  ): Promise<ActionListType> {
    const caller = await this.accessChecks.requireAppAccess(context, "listActions", appId);
    const { actions, pagination } = await this.service.list(
      appId,
      { limit, offset, search },
      context.responseBudget?.reserveBytes,
    );
    if (!mayPerformOnApp(caller, "getAction", appId)) return { actions: actions.map(hideCode), pagination };
    return { actions: await this.endpoints.addUrls(caller, actions), pagination };
  }

  @FieldResolver(() => [LiveVersionType], { description: "Live versions of the actions in this list." })
  async published(@Root() { actions }: ActionListType): Promise<LiveVersionSummary[]> {
    return this.service.listPublished(actions.map(({ id }) => id));
  }

  @Query(() => ActionType, { description: "Returns the draft of an action." })
  async action(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
  ): Promise<Action> {
    const caller = await this.accessChecks.requireAppAccess(context, "getAction", appId);
    return this.endpoints.addUrlsToOne(caller, await this.service.get(appId, id));
  }

  @Mutation(() => ActionType, {
    description: "Creates an action. Several requests with the same idempotency key create only one action.",
  })
  async createAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("data", () => CreateActionInput, { nullable: true, description: "Configuration of the new action." })
    data: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<Action> {
    const caller = await this.accessChecks.requireAppAccess(context, "createAction", appId);
    return this.endpoints.addUrlsToOne(
      caller,
      await this.service.create(caller, appId, data, selectIdempotencyKey(context, key)),
    );
  }

  @Mutation(() => ActionType, { description: "Updates the draft of an action; omitted properties keep their values." })
  async updateAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
    @Arg("data", () => UpdateActionInput, { nullable: true, description: "Properties to change." }) data: unknown,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Action> {
    const caller = await this.accessChecks.requireAppAccess(context, "updateAction", appId);
    const target = { appId, id, precondition: toExpectedVersions(ifUpdatedAt) };
    return this.endpoints.addUrlsToOne(caller, await this.service.update(caller, target, data));
  }

  @Mutation(() => ActionType, {
    description:
      "Replaces the secret in the URLs of an action's HTTP triggers. URLs with the old secret stop working immediately. Returns the draft.",
  })
  async rotateTriggerSecret(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<Action> {
    const caller = await this.accessChecks.requireAppAccess(context, "updateAction", appId);
    await this.rotateSecret(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return this.endpoints.addUrlsToOne(caller, await this.service.get(appId, id));
  }

  @Mutation(() => Boolean, { description: "Deletes an action with its draft, live version and history." })
  async removeAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft." }) id: number,
    @IfUpdatedAtArgument() ifUpdatedAt?: ChangePrecondition,
  ): Promise<boolean> {
    const caller = await this.accessChecks.requireAppAccess(context, "removeAction", appId);
    await this.service.remove(caller, { appId, id, precondition: toExpectedVersions(ifUpdatedAt) });
    return true;
  }

  @Subscription(() => ActionChangeType, {
    description: "Emits a message with `reset` first, then the state of each action that is changed or published.",
    subscribe: async ({ args, context }) => {
      const { appId } = args as { appId: number };
      const { accessChecks, actionFeed, ...requestContext } = context as ActionSubscriptionContext;
      await accessChecks.requireAppAccess(requestContext, "followActions", appId);
      return guardSubscriptionSource(actionFeed.follow(appId), {
        appId,
        check: (caller) => accessChecks.recheck(caller, "followActions", appId),
      });
    },
  })
  actionChanged(@Root() change: ActionChange, @AppIdArgument() _appId: number): ActionChange {
    return change;
  }
}
