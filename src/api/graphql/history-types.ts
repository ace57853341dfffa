/** Shapes of the ledger in the GraphQL schema, and what a reader may ask of it. No behaviour. */
import { ArgsType, Field, Float, Int, ObjectType } from "type-graphql";
import type { RunWait } from "../../data/action-types.js";
import type { RunSummary } from "../../operations/runs/run-history.js";
import type { Period, PeriodLength } from "../../operations/runs/run-statistics.js";
import { CopyEnum, DateTime, enumOf, RunStateEnum, RunWaitEnum, TriggerTypeEnum } from "./leaf-types.js";

@ObjectType("RunPerson", { description: "Who asked for a run." })
class RunPersonType {
  @Field(() => String) firstName: string;
  @Field(() => String) lastName: string;
}

@ObjectType("Run", { description: "A run, or a tick that became none." })
export class RunType {
  @Field(() => Int) id: number;
  @Field(() => Int) actionId: number;
  @Field(() => String, { nullable: true, description: "null of an action that is gone." }) actionName: string | null;
  @Field(() => Int, { nullable: true, description: "The draft of that action." }) masterId: number | null;
  @Field(() => CopyEnum) copy: string;
  @Field(() => TriggerTypeEnum) trigger: string;
  @Field(() => RunStateEnum) state: string;
  @Field(() => DateTime, { nullable: true, description: "The scheduled moment." }) tick: string | null;
  @Field(() => Int, { description: "How many ticks, from `tick` on, this entry stands for." }) tickCount: number;
  @Field(() => String, { nullable: true, description: "Why it was skipped." }) reason: string | null;
  @Field(() => RunWaitEnum, { nullable: true, description: "What a queued one waits for, beside a place." })
  waitsFor: RunWait | null;
  @Field(() => String, { nullable: true, description: "What it failed with: the beginning of the error's own words." })
  failure: string | null;
  @Field(() => DateTime) queuedAt: string;
  @Field(() => DateTime, { nullable: true }) startedAt: string | null;
  @Field(() => DateTime, { nullable: true }) finishedAt: string | null;
  @Field(() => Int, { nullable: true, description: "Its execution log entry." }) logId: number | null;
  @Field(() => Int, { nullable: true, description: "The log event that started it." }) eventId: number | null;
  @Field(() => Int, { nullable: true, description: "The run that caused it." }) causeRunId: number | null;
  @Field(() => Int, { nullable: true, description: "The first run of its chain of causes." }) chainId: number | null;
  @Field(() => Int, { description: "How many causes precede it." }) depth: number;
  @Field(() => Int, { nullable: true, description: "The run that it repeats." }) replayOf: number | null;
  @Field(() => Int, { nullable: true, description: "The version that it ran instead of its copy's code." })
  versionId: number | null;
  @Field(() => Int, { nullable: true }) personId: number | null;
  @Field(() => RunPersonType, { nullable: true, description: "For those who author the app." })
  person: RunPersonType | null;
  @Field(() => [String], { description: "host:port of each host that it contacted." }) hosts: string[];
  @Field(() => String, {
    nullable: true,
    description:
      "Where its code was evaluated on the server: isolate, network-isolate or document; null if it was not.",
  })
  sandbox: string | null;
}

@ObjectType("RunDetails", { description: "One run with the execution log entry in which it ended." })
export class RunDetailsType extends RunType {}

@ObjectType("RunPagination", { description: "What follows a page of runs." })
class RunPaginationType {
  @Field(() => Int, { description: "How many match, counted up to 10,000." }) total: number;
  @Field(() => Boolean, { description: "Whether no more match than that." }) totalIsExact: boolean;
  @Field(() => Boolean) hasMore: boolean;
  @Field(() => Int, { nullable: true, description: "`before` of the page that follows; null: nothing follows." })
  nextBefore: number | null;
}

@ObjectType("RunList")
export class RunListType {
  @Field(() => [RunType]) runs: RunSummary[];
  @Field(() => RunPaginationType) pagination: RunPaginationType;
}

@ObjectType("UnfinishedRuns", { description: "What waits and what runs, each counted up to 10,000." })
export class UnfinishedRunsType {
  @Field(() => Int) queued: number;
  @Field(() => Int) running: number;
  @Field(() => [RunType], { description: "Those that run, then those that wait; newest first, 100 at most." })
  runs: RunSummary[];
}

const PeriodLengthEnum = enumOf<PeriodLength>("PeriodLength", "Length of the periods of run statistics.", {
  hour: "One hour.",
  day: "One day.",
});

@ObjectType("RunPeriod", { description: "One hour or day in which something ran or was skipped." })
class RunPeriodType implements Period {
  @Field(() => DateTime) start: string;
  @Field(() => Int) runs: number;
  @Field(() => Int) failed: number;
  @Field(() => Int) cancelled: number;
  @Field(() => Int, { description: "Ticks that became no run." }) skipped: number;
  @Field(() => Float, { nullable: true, description: "Milliseconds, of those that completed or failed." })
  p50: number | null;
  @Field(() => Float, { nullable: true }) p95: number | null;
}

@ObjectType("RunStatistics")
export class RunStatisticsType {
  @Field(() => PeriodLengthEnum) by: string;
  @Field(() => DateTime) from: string;
  @Field(() => DateTime) to: string;
  @Field(() => DateTime, {
    nullable: true,
    description: "Where counting began, of a range with more than 100,000 runs; null: all of it was counted.",
  })
  countedFrom: string | null;
  @Field(() => [RunPeriodType]) periods: Period[];
}

/** `unknown`: the rules judge what a type cannot, with the specification's statuses. */
@ArgsType()
export class RunsArguments {
  @Field(() => Int, { nullable: true, description: "Either copy's id stands for both." }) actionId?: unknown;
  @Field(() => RunStateEnum, { nullable: true }) state?: unknown;
  @Field(() => TriggerTypeEnum, { nullable: true }) trigger?: unknown;
  @Field(() => CopyEnum, { nullable: true }) copy?: unknown;
  @Field(() => Int, { nullable: true, description: "The version that was run." }) versionId?: unknown;
  @Field(() => Int, { nullable: true, description: "Who asked for it." }) personId?: unknown;
  @Field(() => DateTime, { nullable: true }) from?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Up to, and without, this moment." }) to?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Words, each of which begins a word in the payload, the result, the error, the console or a host.",
  })
  search?: unknown;
  @Field(() => Int, { nullable: true, description: "The runs before this one: `nextBefore` of the page before." })
  before?: unknown;
  @Field(() => Int, { nullable: true }) limit?: number;
  @Field(() => Int, { nullable: true }) offset?: number;
}

@ArgsType()
export class StatisticsArguments {
  @Field(() => Int, { nullable: true, description: "Either copy's id stands for both." }) actionId?: unknown;
  @Field(() => DateTime, { nullable: true, description: "2 days or 30 before `to` unless given." }) from?: unknown;
  @Field(() => DateTime, { nullable: true, description: "Now unless given." }) to?: unknown;
  @Field(() => PeriodLengthEnum, { nullable: true, description: "hour unless given: 14 days at most, by day 100." })
  by?: unknown;
  @Field(() => String, { nullable: true, description: "On whose clock days begin; UTC unless given." })
  timezone?: unknown;
}
