/** GraphQL types of an app's schedules over one week. Contains only declarations. */
import { Field, Int, ObjectType } from "type-graphql";
import type {
  CrowdedTick,
  ScheduledAction,
  ScheduleWeek,
  SkippedOrFailedTicks,
} from "../../operations/triggers/week.js";
import { DateTime, RunStateEnum } from "./leaf-types.js";

@ObjectType("ScheduledAction", { description: "Live version with a schedule, and its ticks in the next seven days." })
class ScheduledActionType implements ScheduledAction {
  @Field(() => Int, { description: "ID of the live version." }) actionId: number;
  @Field(() => Int, { description: "ID of the action's draft." }) masterId: number;
  @Field(() => String, { description: "Name of the action." }) name: string;
  @Field(() => String, { description: "Schedule as a cron expression of five fields." }) frequency: string;
  @Field(() => String, { description: "IANA name of the time zone of the schedule." }) timezone: string;
  @Field(() => String, { description: "Frequency as an English sentence." }) description: string;
  @Field(() => [DateTime], { description: "First ticks of the week, soonest first." }) ticks: string[];
  @Field(() => Boolean, { description: "True if the week has more ticks than `ticks`." }) hasMore: boolean;
}

@ObjectType("MissedTicks", {
  description: "Ticks of one action on one day that were skipped for the same reason or failed.",
})
class SkippedOrFailedTicksType implements SkippedOrFailedTicks {
  @Field(() => Int, { description: "ID of the action's live version." }) actionId: number;
  @Field(() => String, { nullable: true, description: "Name of the action; null if the action is deleted." }) name:
    | string
    | null;
  @Field(() => RunStateEnum, { description: "Outcome of the ticks: skipped or failed." }) state: "skipped" | "failed";
  @Field(() => String, { nullable: true, description: "Reason why the ticks were skipped; null for failed runs." })
  reason: string | null;
  @Field(() => String, { description: "IANA name of the action's time zone." }) timezone: string;
  @Field(() => DateTime, { description: "Time of the first tick." }) from: string;
  @Field(() => DateTime, { description: "Time of the last tick." }) to: string;
  @Field(() => Int, { description: "Number of ticks." }) count: number;
  @Field(() => Int, { description: "ID of the last run." }) runId: number;
}

@ObjectType("CrowdedTick", {
  description: "Moment at which more scheduled runs of all apps start than one machine's runners can begin in time.",
})
class CrowdedTickType implements CrowdedTick {
  @Field(() => DateTime, { description: "Time of the tick." }) tick: string;
  @Field(() => Int, { description: "Number of scheduled actions of all apps that start then." }) count: number;
}

@ObjectType("ScheduleWeek", {
  description: "Schedules of an app: the next seven days, and the problems of the last seven days.",
})
export class ScheduleWeekType implements ScheduleWeek {
  @Field(() => DateTime, { description: "Start of the next seven days." }) from: string;
  @Field(() => DateTime, { description: "End of the next seven days." }) to: string;
  @Field(() => [ScheduledActionType], { description: "Scheduled actions by their next tick, at most 200." })
  scheduled: ScheduledAction[];
  @Field(() => Boolean, { description: "True if the app has more scheduled actions than `scheduled`." })
  hasMore: boolean;
  @Field(() => [CrowdedTickType], {
    description: "Next ticks of the app's actions at which some may be skipped, because too many start together.",
  })
  crowded: CrowdedTick[];
  @Field(() => [SkippedOrFailedTicksType], {
    description: "Skipped and failed ticks of the last seven days, newest first.",
  })
  missed: SkippedOrFailedTicks[];
}
