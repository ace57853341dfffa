/**
 * GraphQL resolver of runs, their logs and results, skipped ticks (scheduled times without a run), and replays. Each
 * method checks the caller's access and then calls one operation.
 */
import { Arg, Args, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { RunReplayer } from "../../operations/history/replay.js";
import type { RunQueries, RunSummary } from "../../operations/history/run-queries.js";
import type { ReadRunStatistics, RunStatisticsResult } from "../../operations/history/run-statistics.js";
import type { ExecutionLogs, LogEntry } from "../../operations/records/execution-logs.js";
import type { OutgoingRequestRecord } from "../../operations/requests/run-requests.js";
import { parseRowCursor } from "../../rules/page.js";
import type { RequestContext } from "../context.js";
import { RunReplayInput } from "./action-inputs.js";
import { AppIdArgument } from "./arguments.js";
import {
  OutgoingRequestType,
  RunDetailsType,
  RunListType,
  RunStatisticsArguments,
  RunStatisticsType,
  RunsArguments,
  RunType,
  UnfinishedRunsType,
} from "./history-types.js";
import { LogEntryType } from "./log-types.js";
import { QueuedRunType } from "./run-resolver.js";

@Resolver(() => RunDetailsType)
export class RunHistoryResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly services: {
      runQueries: RunQueries;
      replayer: RunReplayer;
      readStatistics: ReadRunStatistics;
      logs: ExecutionLogs;
    },
  ) {}

  @Query(() => RunDetailsType, {
    description:
      "Returns a run in any state, or a skipped tick: a due time of a schedule at which the service started no run.",
  })
  async run(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("runId", () => Int, { description: "ID of the run." }) runId: number,
  ): Promise<RunSummary> {
    const caller = await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    return this.services.runQueries.get(caller, appId, runId);
  }

  @FieldResolver(() => LogEntryType, {
    nullable: true,
    description: "Execution log entry of the run; null until the run has ended.",
  })
  async log(@Root() run: RunSummary, @Ctx() context: RequestContext): Promise<LogEntry | null> {
    return this.services.logs.readEntryOfRun(run.id, context.responseBudget?.reserveBytes);
  }

  @FieldResolver(() => [OutgoingRequestType], {
    description:
      "Requests that the run sent to other services, in order of their ends, at most 100; empty until it has ended.",
  })
  async requests(@Root() run: RunSummary): Promise<OutgoingRequestRecord[]> {
    return this.services.runQueries.readRequests(run.id);
  }

  @FieldResolver(() => [RunType], { description: "Runs that this run started directly, oldest first, at most 100." })
  async caused(@Root() run: RunSummary, @Ctx() context: RequestContext): Promise<RunSummary[]> {
    return context.caller ? this.services.runQueries.listCausedRuns(context.caller, run) : [];
  }

  @Query(() => RunListType, {
    description:
      "Lists the runs of the app, newest first. One request checks at most 10,000 runs, so the response can have fewer runs than `limit` although more runs match. To get the next runs, send the `nextCursor` of the response as `cursor` (in REST `nextBefore` as `before`).",
  })
  async runs(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Args(() => RunsArguments) filter: RunsArguments,
  ): Promise<RunListType> {
    const caller = await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    const before = parseRowCursor(filter.cursor) ?? filter.before;
    return this.services.runQueries.list(caller, appId, { ...filter, before });
  }

  @Query(() => UnfinishedRunsType, { description: "Lists the queued and running runs of the app." })
  async unfinishedRuns(@Ctx() context: RequestContext, @AppIdArgument() appId: number): Promise<UnfinishedRunsType> {
    const caller = await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    return this.services.runQueries.listUnfinished(caller, appId);
  }

  @Query(() => RunStatisticsType, {
    description:
      "For each hour or day, counts the runs that match the filters, and returns the percentiles of their durations. One request checks the newest 100,000 runs of the time range. With `search`, it checks the newest 1,000 runs that the search finds.",
  })
  async runStatistics(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Args(() => RunStatisticsArguments) options: RunStatisticsArguments,
  ): Promise<RunStatisticsResult> {
    await this.accessChecks.requireAppAccess(context, "listRuns", appId);
    return this.services.readStatistics(appId, options);
  }

  @Mutation(() => QueuedRunType, {
    description: "Replays a past run: starts a new run of the same action, with the same payload or with another one.",
  })
  async replayRun(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("runId", () => Int, { description: "ID of the run to repeat." }) runId: number,
    @Arg("options", () => RunReplayInput, {
      nullable: true,
      description: "Code and payload of the new run; those of the original run by default.",
    })
    options: unknown,
  ): Promise<QueuedRunType> {
    const caller = await this.accessChecks.requireAppAccess(context, "replayRun", appId);
    return this.services.replayer.replay(caller, appId, runId, options);
  }
}
