/**
 * An app's queue of runs over GraphQL: returns its length, and cancels all queued runs. Each method checks the caller's access and then
 * calls one operation.
 */
import { Arg, Ctx, Field, Float, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { QueuedRuns, QueuedRunsCancellation, QueuedRunsSummary } from "../../operations/history/queued-runs.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("Backlog", { description: "Queued runs of an app." })
class BacklogType {
  @Field(() => Int, { description: "Number of queued runs." }) runs: number;
  @Field(() => Float, { description: "Total size of their payloads in bytes." }) bytes: number;
  @Field(() => DateTime, {
    nullable: true,
    description: "Time when the oldest run was queued; null if no run is queued.",
  })
  oldestAt: string | null;
}

@ObjectType("CancelledBacklog", { description: "Result of cancelling queued runs." })
class CancelledBacklogType {
  @Field(() => Int, { description: "Number of cancelled runs." }) cancelled: number;
  @Field(() => Boolean, {
    description: "True if the operation ran out of time and queued runs remain; repeat the request.",
  })
  more: boolean;
}

@Resolver()
export class QueueResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: QueuedRuns,
  ) {}

  @Query(() => BacklogType, {
    description:
      "Returns the number of the app's queued runs and the bytes of their payloads. If more than 10,000 runs of all apps are queued, the values can be some seconds old.",
  })
  async backlog(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<QueuedRunsSummary> {
    await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    return this.service.read(appId);
  }

  @Mutation(() => CancelledBacklogType, { description: "Cancels all queued runs of the app or of one action." })
  async cancelBacklog(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("actionId", () => Int, {
      nullable: true,
      description: "ID of the action's draft or live version; null for all actions.",
    })
    actionId?: number | null,
  ): Promise<QueuedRunsCancellation> {
    const caller = await this.accessChecks.requireAppAccess(context, "cancelBacklog", appId);
    return this.service.cancel(caller, appId, { actionId });
  }
}
