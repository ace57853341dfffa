/** What a client in a browser asks of the service over GraphQL: its actions as they change, their scripts, reports of its runs, analytics. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Trigger } from "../../data/action-types.js";
import type { Gate } from "../../operations/access/gate.js";
import type { Analytics } from "../../operations/client/analytics.js";
import type { ClientAction, ClientActions, CompiledScript } from "../../operations/client/client-actions.js";
import type { ClientChange, ClientFeed } from "../../operations/client/client-feed.js";
import type { ClientRuns } from "../../operations/client/client-runs.js";
import { guarded } from "../../operations/records/live-source.js";
import type { RequestContext } from "../context.js";
import { AssetType, TriggerObjectType } from "./action-types.js";
import { AnalyticsEventInput, ClientRunInput } from "./event-types.js";
import { IdempotencyKey, keyOf } from "./idempotency.js";

@ObjectType("ClientAction", { description: "An action that this client may run on analytics events, less its code." })
class ClientActionType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "Subresource integrity of its script, sha256-…" }) integrity: string;
  @Field(() => [TriggerObjectType], { description: "The analytics triggers alone." }) triggers: Trigger[];
  @Field(() => [AssetType]) assets: AssetType[];
}

@ObjectType("ClientTriggers", { description: "`reset`: forget what you know. Else: what changed." })
class ClientTriggersType {
  @Field(() => Boolean) reset: boolean;
  @Field(() => [ClientActionType]) actions: ClientAction[];
  @Field(() => [Int], { description: "Ids that this client may no longer run." }) removed: number[];
}

@ObjectType("CompiledAction", { description: "An action as the script that a browser loads." })
class CompiledActionType {
  @Field(() => Int) id: number;
  @Field(() => String) name: string;
  @Field(() => String) script: string;
  @Field(() => String, { description: "Subresource integrity of the script, sha256-…" }) integrity: string;
  @Field(() => [AssetType]) assets: AssetType[];
}

@ObjectType("RecordedEvents")
class RecordedEventsType {
  @Field(() => Int) count: number;
}

@ObjectType("ReportedRun")
class ReportedRunType {
  @Field(() => Int) runId: number;
}

/** What the subscription needs of its context: decorators know no instance. */
export interface ClientFeedContext extends RequestContext {
  gate: Gate;
  clientFeed: ClientFeed;
}

@Resolver()
export class ClientResolver {
  constructor(
    private readonly gate: Gate,
    private readonly clientActions: ClientActions,
    private readonly clientRuns: ClientRuns,
    private readonly analytics: Analytics,
  ) {}

  @Query(() => CompiledActionType, { description: "A client gets what it may run itself; an editor any of the app's." })
  async compiledAction(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<CompiledScript> {
    const caller = await this.gate.enter(context, "compileAction", appId);
    return this.clientActions.compiled(caller, appId, id);
  }

  @Mutation(() => ReportedRunType, {
    description:
      "Records that a run starts in a browser. Its report repeats the idempotency key; without one the run fails when its time is over.",
  })
  async startClientRun(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("payload", () => GraphQLJSON, { nullable: true }) payload: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<ReportedRunType> {
    const caller = await this.gate.enter(context, "reportClientRun", appId);
    const body = { payload: payload ?? undefined };
    return this.clientRuns.start(caller, { appId, actionId: id, body, idempotencyKey: keyOf(context, key) });
  }

  @Mutation(() => ReportedRunType, {
    description: "A run that a browser performed, with its result or its error.",
  })
  async reportClientRun(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("report", () => ClientRunInput, { nullable: true }) body: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<ReportedRunType> {
    const caller = await this.gate.enter(context, "reportClientRun", appId);
    return this.clientRuns.report(caller, { appId, actionId: id, body, idempotencyKey: keyOf(context, key) });
  }

  @Mutation(() => RecordedEventsType, {
    description: "Recorded as app.analytics.* log events.",
  })
  async recordAnalytics(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("events", () => [AnalyticsEventInput]) events: unknown,
  ): Promise<RecordedEventsType> {
    const caller = await this.gate.enter(context, "recordAnalytics", appId);
    return this.analytics.record(caller, appId, events);
  }

  @Subscription(() => ClientTriggersType, {
    description: "The actions that this client may run on analytics events: first all, then each change as it happens.",
    subscribe: async ({ args, context }) => {
      const { appId } = args as { appId: number };
      const { gate, clientFeed, ...visitor } = context as ClientFeedContext;
      const { copy } = await gate.enter(visitor, "clientTriggers", appId);
      return guarded(clientFeed.follow(appId, copy), {
        appId,
        check: (caller) => gate.recheck(caller, "clientTriggers", appId),
      });
    },
  })
  clientTriggers(@Root() change: ClientChange, @Arg("appId", () => Int) _appId: number): ClientChange {
    return change;
  }
}
