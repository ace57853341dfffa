/** Operations that the client library in browsers calls over GraphQL: changed actions, their scripts, reports of runs, analytics events. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Trigger } from "../../data/action-types.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Analytics } from "../../operations/client/analytics.js";
import type { ClientAction, ClientActions, CompiledClientAction } from "../../operations/client/client-actions.js";
import type { ClientActionFeed, ClientActionUpdate } from "../../operations/client/client-feed.js";
import type { ClientRuns } from "../../operations/client/client-runs.js";
import { guardSubscriptionSource } from "../../operations/records/subscription-source.js";
import type { RequestContext } from "../context.js";
import { AssetType, TriggerObjectType } from "./action-types.js";
import { AppIdArgument } from "./arguments.js";
import { AnalyticsEventInput, ClientRunInput } from "./event-types.js";
import { IdempotencyKeyArgument, selectIdempotencyKey } from "./idempotency.js";

@ObjectType("ClientAction", { description: "Action, without its code, that this client can run on analytics events." })
class ClientActionType {
  @Field(() => Int, { description: "ID of the draft or live version that runs." }) id: number;
  @Field(() => String, {
    description: "Subresource integrity of the action's script, as sha256- and the hash in base64.",
  })
  integrity: string;
  @Field(() => [TriggerObjectType], { description: "Analytics triggers of the action." }) triggers: Trigger[];
  @Field(() => [AssetType], { description: "Scripts of the action's dependencies." }) assets: AssetType[];
}

@ObjectType("ClientTriggers", { description: "Change of the actions that a client can run on analytics events." })
class ClientTriggersType {
  @Field(() => Boolean, { description: "True if the client must discard its state; `actions` then lists all actions." })
  reset: boolean;
  @Field(() => [ClientActionType], { description: "Added and changed actions." }) actions: ClientAction[];
  @Field(() => [Int], { description: "IDs of actions that this client can no longer run." }) removed: number[];
}

@ObjectType("CompiledAction", { description: "Action as a script that a browser loads." })
class CompiledActionType {
  @Field(() => Int, { description: "ID of the draft or live version." }) id: number;
  @Field(() => String, { description: "Name of the action." }) name: string;
  @Field(() => String, { description: "JavaScript of the compiled action." }) script: string;
  @Field(() => String, { description: "Subresource integrity of the script, as sha256- and the hash in base64." })
  integrity: string;
  @Field(() => [AssetType], { description: "Scripts of the action's dependencies." }) assets: AssetType[];
}

@ObjectType("RecordedEvents", { description: "Result of recording analytics events." })
class RecordedEventsType {
  @Field(() => Int, { description: "Number of recorded events." }) count: number;
}

@ObjectType("ReportedRun", { description: "Run in a browser that the service recorded." })
class ReportedRunType {
  @Field(() => Int, { description: "ID of the run." }) runId: number;
}

/**
 * Context of the subscription. It contains the access check and the event source, because the decorator of a
 * subscription cannot access the resolver instance.
 */
export interface ClientActionSubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  clientFeed: ClientActionFeed;
}

@Resolver()
export class ClientActionResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly clientActions: ClientActions,
    private readonly clientRuns: ClientRuns,
    private readonly analytics: Analytics,
  ) {}

  @Query(() => CompiledActionType, {
    description:
      "Returns an action as a script. Pages get only the actions that they can run, editors get every action of the app.",
  })
  async compiledAction(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft or live version." }) id: number,
  ): Promise<CompiledClientAction> {
    const caller = await this.accessChecks.requireAppAccess(context, "compileAction", appId);
    return this.clientActions.readCompiled(caller, appId, id);
  }

  @Mutation(() => ReportedRunType, {
    description:
      "Records that a run has started in a page. Report the end of the run with the same idempotency key. Without a report of its end, the run fails after its timeout.",
  })
  async startClientRun(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft or live version that runs." }) id: number,
    @Arg("payload", () => GraphQLJSON, { nullable: true, description: "Payload of the run, an object; {} by default." })
    payload: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<ReportedRunType> {
    const caller = await this.accessChecks.requireAppAccess(context, "reportClientRun", appId);
    const body = { payload: payload ?? undefined };
    return this.clientRuns.start(caller, {
      appId,
      actionId: id,
      body,
      idempotencyKey: selectIdempotencyKey(context, key),
    });
  }

  @Mutation(() => ReportedRunType, { description: "Records the result or the error of a run in a browser." })
  async reportClientRun(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the draft or live version that ran." }) id: number,
    @Arg("report", () => ClientRunInput, { nullable: true, description: "Payload, duration and outcome of the run." })
    body: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<ReportedRunType> {
    const caller = await this.accessChecks.requireAppAccess(context, "reportClientRun", appId);
    return this.clientRuns.report(caller, {
      appId,
      actionId: id,
      body,
      idempotencyKey: selectIdempotencyKey(context, key),
    });
  }

  @Mutation(() => RecordedEventsType, {
    description: "Records analytics events as log events whose type has the prefix `app.`.",
  })
  async recordAnalytics(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("events", () => [AnalyticsEventInput], { description: "Events to record." }) events: unknown,
  ): Promise<RecordedEventsType> {
    const caller = await this.accessChecks.requireAppAccess(context, "recordAnalytics", appId);
    return this.analytics.record(caller, appId, events);
  }

  @Subscription(() => ClientTriggersType, {
    description: "Emits all actions that this client can run on analytics events, then each change of these actions.",
    subscribe: async ({ args, context }) => {
      const { appId } = args as { appId: number };
      const { accessChecks, clientFeed, ...requestContext } = context as ClientActionSubscriptionContext;
      const { copy } = await accessChecks.requireAppAccess(requestContext, "clientTriggers", appId);
      return guardSubscriptionSource(clientFeed.follow(appId, copy), {
        appId,
        check: (caller) => accessChecks.recheck(caller, "clientTriggers", appId),
      });
    },
  })
  clientTriggers(@Root() change: ClientActionUpdate, @AppIdArgument() _appId: number): ClientActionUpdate {
    return change;
  }
}
