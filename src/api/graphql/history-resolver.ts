/** The ledger over GraphQL: runs and skipped ticks, and a past run again. Each method: the gate, then one call. */
import { Arg, Ctx, Field, FieldResolver, Int, Mutation, ObjectType, Query, Resolver, Root } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { LogEntry, Logs } from "../../operations/records/execution-logs.js";
import type { RunHistory, RunSummary } from "../../operations/runs/run-history.js";
import type { RequestContext } from "../context.js";
import { ReplayInput } from "./action-inputs.js";
import { PaginationType } from "./action-types.js";
import { CopyEnum, DateTime, RunStateEnum, TriggerTypeEnum } from "./leaf-types.js";
import { LogEntryType } from "./log-types.js";
import { QueuedRunType } from "./run-resolver.js";

@ObjectType("Run", { description: "A run, or a tick that became none." })
class RunType {
  @Field(() => Int) id: number;
  @Field(() => Int) actionId: number;
  @Field(() => CopyEnum) copy: string;
  @Field(() => TriggerTypeEnum) trigger: string;
  @Field(() => RunStateEnum) state: string;
  @Field(() => DateTime, { nullable: true, description: "The scheduled moment." }) tick: string | null;
  @Field(() => Int, { description: "How many ticks, from `tick` on, this entry stands for." }) tickCount: number;
  @Field(() => String, { nullable: true, description: "Why it was skipped." }) reason: string | null;
  @Field(() => DateTime) queuedAt: string;
  @Field(() => DateTime, { nullable: true }) startedAt: string | null;
  @Field(() => DateTime, { nullable: true }) finishedAt: string | null;
  @Field(() => Int, { nullable: true, description: "Its execution log entry." }) logId: number | null;
  @Field(() => Int, { nullable: true, description: "The log event that started it." }) eventId: number | null;
  @Field(() => Int, { nullable: true, description: "The run that caused it." }) causeRunId: number | null;
  @Field(() => Int, { nullable: true, description: "The first run of its chain of causes." }) chainId: number | null;
  @Field(() => Int, { description: "How many causes precede it." }) depth: number;
  @Field(() => Int, { nullable: true, description: "The run whose payload it repeats." }) replayOf: number | null;
}

@ObjectType("RunDetails", { description: "One run with the execution log entry in which it ended." })
class RunDetailsType extends RunType {}

@ObjectType("RunList")
class RunListType {
  @Field(() => [RunType]) runs: RunSummary[];
  @Field(() => PaginationType) pagination: PaginationType;
}

@Resolver(() => RunDetailsType)
export class HistoryResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: RunHistory,
    private readonly logs: Logs,
  ) {}

  @Query(() => RunDetailsType, { description: "One run or skipped tick, in whatever state it is." })
  async run(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("runId", () => Int) runId: number,
  ): Promise<RunSummary> {
    await this.gate.enter(context, "listRuns", appId);
    return this.service.get(appId, runId);
  }

  @FieldResolver(() => LogEntryType, { nullable: true, description: "null until it has ended." })
  async log(@Root() run: RunSummary, @Ctx() context: RequestContext): Promise<LogEntry | null> {
    return this.logs.ofRun(run.id, context.answer?.reserve);
  }

  @Query(() => RunListType, { description: "Most recent first; either copy's id stands for both." })
  async runs(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("actionId", () => Int, { nullable: true }) actionId?: number,
    @Arg("state", () => RunStateEnum, { nullable: true }) state?: string,
    @Arg("limit", () => Int, { nullable: true }) limit?: number,
    @Arg("offset", () => Int, { nullable: true }) offset?: number,
  ): Promise<RunListType> {
    await this.gate.enter(context, "listRuns", appId);
    return this.service.list(appId, { actionId, state, limit, offset });
  }

  @Mutation(() => QueuedRunType, {
    description: "Runs a past run's payload again.",
  })
  async replayRun(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("runId", () => Int) runId: number,
    @Arg("options", () => ReplayInput, { nullable: true }) options: unknown,
  ): Promise<QueuedRunType> {
    const caller = await this.gate.enter(context, "replayRun", appId);
    return this.service.replay(caller, appId, runId, options);
  }
}
