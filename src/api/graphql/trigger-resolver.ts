/**
 * Triggers over GraphQL: records a log event, tests a trigger's filter with past events, lists the next times of a
 * schedule.
 */
import { Arg, Ctx, Field, Int, Mutation, ObjectType, Query, Resolver } from "type-graphql";
import { ActionError } from "../../errors.js";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { LogEvent, LogEventStore } from "../../operations/records/log-events.js";
import type { BacktestResult, RunBacktest } from "../../operations/triggers/backtest.js";
import type { SchedulePreview, Scheduler } from "../../operations/triggers/schedule.js";
import type { ReadScheduleWeek, ScheduleWeek } from "../../operations/triggers/week.js";
import type { RequestContext } from "../context.js";
import { TriggerWhereInput } from "./action-inputs.js";
import { AppIdArgument } from "./arguments.js";
import { EventFilterBacktestType, LogEventInput, LogEventType } from "./event-types.js";
import { DateTime } from "./leaf-types.js";
import { ScheduleWeekType } from "./week-types.js";

const PREVIEW_TICKS_DEFAULT = 5;
const PREVIEW_TICKS_MAX = 100;

@ObjectType("Tick", { description: "Scheduled time of an action." })
class ScheduleTickType {
  @Field(() => DateTime, { description: "Time in UTC." }) utc: string;
  @Field(() => String, { description: "Time in the schedule's time zone, with its UTC offset." }) local: string;
}

@ObjectType("SchedulePreview", { description: "Next ticks of a schedule." })
class SchedulePreviewType {
  @Field(() => String, { description: "Frequency as an English sentence." }) description: string;
  @Field(() => String, { description: "IANA name of the time zone of the schedule." }) timezone: string;
  @Field(() => [ScheduleTickType], { description: "Next ticks, soonest first." }) ticks: ScheduleTickType[];
}

@Resolver()
export class TriggerResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly services: {
      events: LogEventStore;
      scheduler: Scheduler;
      readWeek: ReadScheduleWeek;
      runBacktest: RunBacktest;
    },
  ) {}

  @Mutation(() => LogEventType, { description: "Stores a log event and starts the actions whose triggers match it." })
  async addLogEvent(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("event", () => LogEventInput, { description: "Log event to store." }) event: unknown,
  ): Promise<LogEvent> {
    const caller = await this.accessChecks.requireAppAccess(context, "addLogEvent", appId);
    return this.services.events.add(caller, appId, event);
  }

  @Query(() => EventFilterBacktestType, {
    description:
      "Compares the filter of a log trigger with the app's last 1000 log events, and returns the events that match.",
  })
  async backtestTrigger(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("where", () => TriggerWhereInput, { description: "Filter of the trigger." }) where: unknown,
  ): Promise<BacktestResult> {
    await this.accessChecks.requireAppAccess(context, "backtestTrigger", appId);
    return this.services.runBacktest(appId, where);
  }

  @Query(() => SchedulePreviewType, {
    description: "Returns the next ticks (due times) of a schedule, and a description of the schedule in words.",
  })
  async nextRuns(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("frequency", () => String, { description: "Schedule as a cron expression of five fields; required." })
    frequency: string,
    @Arg("timezone", () => String, {
      nullable: true,
      description: "IANA name of the time zone; DEFAULT_TIMEZONE of the service by default.",
    })
    timezone?: string,
    @Arg("count", () => Int, { nullable: true, description: "Number of ticks to return, 1 to 100; 5 by default." })
    count = PREVIEW_TICKS_DEFAULT,
  ): Promise<SchedulePreview> {
    await this.accessChecks.requireAppAccess(context, "previewSchedule", appId);
    if (count < 1 || count > PREVIEW_TICKS_MAX) {
      throw new ActionError(
        "REQUEST_INVALID",
        `count must be a whole number from 1 to ${PREVIEW_TICKS_MAX} (got ${count})`,
      );
    }
    return this.services.scheduler.preview(frequency, timezone, count);
  }

  @Query(() => ScheduleWeekType, {
    description:
      "Returns the scheduled runs of the next seven days, and the skipped and failed ticks of the last seven days.",
  })
  async scheduleWeek(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<ScheduleWeek> {
    await this.accessChecks.requireAppAccess(context, "previewSchedule", appId);
    return this.services.readWeek(appId);
  }
}
