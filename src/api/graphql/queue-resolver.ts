/** An app's queue over GraphQL: what waits, and all of it cancelled. Each method: the gate, then one call. */
import { Arg, Ctx, Field, Float, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Backlog, Backlogs, CancelledBacklog } from "../../operations/runs/backlog.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("Backlog", { description: "Runs of the app that wait." })
class BacklogType {
  @Field(() => Int) runs: number;
  @Field(() => Float, { description: "Of their payloads." }) bytes: number;
  @Field(() => DateTime, { nullable: true, description: "Since when the oldest waits; null where none does." })
  oldestAt: string | null;
}

@ObjectType("CancelledBacklog")
class CancelledBacklogType {
  @Field(() => Int) cancelled: number;
  @Field(() => Boolean, { description: "Whether some are left, because it took too long: ask again." }) more: boolean;
}

@Resolver()
export class QueueResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Backlogs,
  ) {}

  @Query(() => BacklogType, { description: "What waits of the app, as of a second ago." })
  async backlog(@Ctx() context: RequestContext, @AppId() appId: number): Promise<Backlog> {
    await this.gate.enter(context, "listRuns", appId);
    return this.service.of(appId);
  }

  @Mutation(() => CancelledBacklogType, {
    description: "Cancels all runs of the app that wait, of one action where either copy is named.",
  })
  async cancelBacklog(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("actionId", () => Int, { nullable: true }) actionId?: number | null,
  ): Promise<CancelledBacklog> {
    const caller = await this.gate.enter(context, "cancelBacklog", appId);
    return this.service.cancel(caller, appId, { actionId });
  }
}
