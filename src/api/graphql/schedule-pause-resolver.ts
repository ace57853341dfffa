/** An app's schedules paused and resumed, over GraphQL. Each method: the gate, then one call. */
import { Ctx, Field, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { SchedulePause } from "../../operations/triggers/schedule-pause.js";
import type { RequestContext } from "../context.js";
import { AppId } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("SchedulePause")
class SchedulePauseType {
  @Field(() => DateTime, {
    nullable: true,
    description: "Since when the app's schedules stand still; null: they do not.",
  })
  pausedAt: string | null;
}

const answer = (pausedAt: Date | null): SchedulePauseType => ({ pausedAt: pausedAt?.toISOString() ?? null });

@Resolver()
export class SchedulePauseResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: SchedulePause,
  ) {}

  @Query(() => SchedulePauseType)
  async schedulePause(@Ctx() context: RequestContext, @AppId() appId: number): Promise<SchedulePauseType> {
    await this.gate.enter(context, "listRuns", appId);
    return answer(await this.service.since(appId));
  }

  @Mutation(() => SchedulePauseType, {
    description: "Has all schedules of the app stand still: their ticks are skipped. What is queued by then runs.",
  })
  async pauseSchedules(@Ctx() context: RequestContext, @AppId() appId: number): Promise<SchedulePauseType> {
    const caller = await this.gate.enter(context, "pauseSchedules", appId);
    return answer(await this.service.set(caller, appId, true));
  }

  @Mutation(() => SchedulePauseType, { description: "Has them go on; nothing is caught up." })
  async resumeSchedules(@Ctx() context: RequestContext, @AppId() appId: number): Promise<SchedulePauseType> {
    const caller = await this.gate.enter(context, "pauseSchedules", appId);
    return answer(await this.service.set(caller, appId, false));
  }
}
