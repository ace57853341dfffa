/** Shapes of a week of schedules in the GraphQL schema. No behaviour. */
import { Field, Int, ObjectType } from "type-graphql";
import type { Missed, ScheduledAction, Week } from "../../operations/triggers/week.js";
import { DateTime, RunStateEnum } from "./leaf-types.js";

@ObjectType("ScheduledAction", {
  description: "A production copy that a schedule runs, with its ticks of the coming week.",
})
class ScheduledActionType implements ScheduledAction {
  @Field(() => Int, { description: "The production copy's id." }) actionId: number;
  @Field(() => Int) masterId: number;
  @Field(() => String) name: string;
  @Field(() => String) frequency: string;
  @Field(() => String) timezone: string;
  @Field(() => String, { description: "The frequency as a sentence." }) description: string;
  @Field(() => [DateTime], { description: "The first of the week." }) ticks: string[];
  @Field(() => Boolean, { description: "Whether the week has more than these." }) hasMore: boolean;
}

@ObjectType("MissedTicks", {
  description: "Ticks of one action on one day that were skipped for one reason, or failed.",
})
class MissedType implements Missed {
  @Field(() => Int) actionId: number;
  @Field(() => String, { nullable: true, description: "null of an action that is gone." }) name: string | null;
  @Field(() => RunStateEnum) state: "skipped" | "failed";
  @Field(() => String, { nullable: true, description: "Why they were skipped." }) reason: string | null;
  @Field(() => DateTime) from: string;
  @Field(() => DateTime) to: string;
  @Field(() => Int) count: number;
  @Field(() => Int, { description: "The last of the runs." }) runId: number;
}

@ObjectType("ScheduleWeek")
export class WeekType implements Week {
  @Field(() => DateTime) from: string;
  @Field(() => DateTime) to: string;
  @Field(() => [ScheduledActionType], { description: "By their next tick, 200 at most." }) scheduled: ScheduledAction[];
  @Field(() => Boolean, { description: "Whether more actions are scheduled than these." }) hasMore: boolean;
  @Field(() => [MissedType], { description: "Of the past week, most recent first." }) missed: Missed[];
}
