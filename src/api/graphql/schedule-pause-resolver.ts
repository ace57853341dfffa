/**
 * GraphQL resolver that pauses and resumes the schedules of an app. Each method checks the caller's access and then
 * calls one operation.
 */
import { Ctx, Field, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { SchedulePause } from "../../operations/triggers/schedule-pause.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("SchedulePause", { description: "State of the pause of an app's schedules." })
class SchedulePauseType {
  @Field(() => DateTime, {
    nullable: true,
    description: "Time since which all schedules of the app are paused; null if they are not paused.",
  })
  pausedAt: string | null;
}

const toSchedulePause = (pausedAt: Date | null): SchedulePauseType => ({ pausedAt: pausedAt?.toISOString() ?? null });

@Resolver()
export class SchedulePauseResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: SchedulePause,
  ) {}

  @Query(() => SchedulePauseType, { description: "Returns whether the app's schedules are paused." })
  async schedulePause(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<SchedulePauseType> {
    await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    return toSchedulePause(await this.service.readPauseTime(appId));
  }

  @Mutation(() => SchedulePauseType, {
    description:
      "Pauses all schedules of the app: the service skips their ticks (due times). Queued runs still execute.",
  })
  async pauseSchedules(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<SchedulePauseType> {
    const caller = await this.accessChecks.requireAppAccess(context, "pauseSchedules", appId);
    return toSchedulePause(await this.service.setPaused(caller, appId, true));
  }

  @Mutation(() => SchedulePauseType, {
    description: "Resumes the app's schedules. The service does not make up for the ticks that it skipped.",
  })
  async resumeSchedules(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<SchedulePauseType> {
    const caller = await this.accessChecks.requireAppAccess(context, "pauseSchedules", appId);
    return toSchedulePause(await this.service.setPaused(caller, appId, false));
  }
}
