/** What starts actions by itself, over GraphQL: log events, the try-out of a filter, the preview of a schedule. */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { Gate } from "../../operations/access/gate.js";
import type { LogEvent, LogEvents } from "../../operations/records/log-events.js";
import type { Backtest, BacktestResult } from "../../operations/triggers/backtest.js";
import type { Preview, Schedule } from "../../operations/triggers/schedule.js";
import type { ScheduleWeek, Week } from "../../operations/triggers/week.js";
import type { RequestContext } from "../context.js";
import { TriggerWhereInput } from "./action-inputs.js";
import { AppId } from "./arguments.js";
import { BacktestType, LogEventInput, LogEventType } from "./event-types.js";
import { DateTime } from "./leaf-types.js";
import { WeekType } from "./week-types.js";

const PREVIEW_DEFAULT = 5;
const PREVIEW_MAX = 100;

@ObjectType("Tick")
class TickType {
  @Field(() => DateTime) utc: string;
  @Field(() => String, { description: "On the zone's wall clock, with its offset." }) local: string;
}

@ObjectType("SchedulePreview")
class SchedulePreviewType {
  @Field(() => String, { description: "The frequency as a plain sentence." }) description: string;
  @Field(() => String, { description: "The zone asked for, or the server's default." }) timezone: string;
  @Field(() => [TickType]) ticks: TickType[];
}

@Resolver()
export class TriggerResolver {
  constructor(
    private readonly gate: Gate,
    private readonly services: { events: LogEvents; schedule: Schedule; week: ScheduleWeek; backtest: Backtest },
  ) {}

  @Mutation(() => LogEventType, { description: "Stores the event and starts the actions whose trigger matches it." })
  async addLogEvent(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("event", () => LogEventInput) event: unknown,
  ): Promise<LogEvent> {
    const caller = await this.gate.enter(context, "addLogEvent", appId);
    return this.services.events.add(caller, appId, event);
  }

  @Query(() => BacktestType, {
    description: "Which of the last 1000 events a log trigger's `where` would have matched.",
  })
  async backtestTrigger(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("where", () => TriggerWhereInput) where: unknown,
  ): Promise<BacktestResult> {
    await this.gate.enter(context, "backtestTrigger", appId);
    return this.services.backtest(appId, where);
  }

  @Query(() => SchedulePreviewType, { description: "The next ticks of a frequency, and what it says in words." })
  async nextRuns(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("frequency", () => String) frequency: string,
    @Arg("timezone", () => String, { nullable: true }) timezone?: string,
    @Arg("count", () => Int, { nullable: true }) count = PREVIEW_DEFAULT,
  ): Promise<Preview> {
    await this.gate.enter(context, "previewSchedule", appId);
    if (count < 1 || count > PREVIEW_MAX) {
      throw new ActionError("REQUEST_INVALID", `count must be from 1 to ${PREVIEW_MAX}; ${count} came`);
    }
    return this.services.schedule.preview(frequency, timezone, count);
  }

  @Query(() => WeekType, {
    description: "What will run in the coming week, and what was skipped or failed in the past one.",
  })
  async scheduleWeek(@Ctx() context: RequestContext, @AppId() appId: number): Promise<Week> {
    await this.gate.enter(context, "previewSchedule", appId);
    return this.services.week(appId);
  }
}
