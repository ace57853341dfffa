/** GraphQL types of runs, and the filters of their queries: only declarations. */
import { ArgsType, Field, Float, Int, ObjectType } from "type-graphql";
import type { RunWaitReason } from "../../data/action-types.js";
import type { RunSummary } from "../../operations/history/run-queries.js";
import type { PeriodLength, StatisticsPeriod } from "../../operations/history/run-statistics.js";
import type { OutgoingRequestRecord } from "../../operations/requests/run-requests.js";
import { createLimitDescription, OFFSET_DESCRIPTION } from "./arguments.js";
import {
  createGraphqlEnum,
  DateTime,
  DraftOrLiveEnum,
  RunStateEnum,
  RunWaitEnum,
  TriggerTypeEnum,
} from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";

@ObjectType("RunPerson", { description: "Person who requested a run." })
class RunPersonType {
  @Field(() => String, { description: "First name." }) firstName: string;
  @Field(() => String, { description: "Last name." }) lastName: string;
}

@ObjectType("Run", { description: "Run of an action, or skipped ticks of its schedule." })
export class RunType {
  @Field(() => Int, { description: "ID of the run." }) id: number;
  @Field(() => Int, { description: "ID of the draft or live version that the run executes." }) actionId: number;
  @Field(() => String, { nullable: true, description: "Name of the action; null if the action is deleted." })
  actionName: string | null;
  @Field(() => Int, { nullable: true, description: "ID of the action's draft; null if the action is deleted." })
  masterId: number | null;
  @Field(() => DraftOrLiveEnum, { description: "Draft or live version that the run executes." }) copy: string;
  @Field(() => TriggerTypeEnum, { description: "Kind of trigger that started the run." }) trigger: string;
  @Field(() => RunStateEnum, { description: "State of the run." }) state: string;
  @Field(() => DateTime, { nullable: true, description: "Scheduled time of the run; null if no schedule started it." })
  tick: string | null;
  @Field(() => Int, {
    description:
      "Number of ticks that this entry stands for, from `tick` on. For a run that a log event should have started: number of skipped runs.",
  })
  tickCount: number;
  @Field(() => String, { nullable: true, description: "Reason why the run was skipped; null if it was not." }) reason:
    | string
    | null;
  @Field(() => RunWaitEnum, {
    nullable: true,
    description: "Limit that delays a queued run; null if it waits for a free slot only.",
  })
  waitsFor: RunWaitReason | null;
  @Field(() => String, {
    nullable: true,
    description:
      "Beginning of the error message of a failed run; null for other runs, or if the log entry of the run is long.",
  })
  failure: string | null;
  @Field(() => String, {
    nullable: true,
    description:
      "First 200 characters of the result as JSON; null if the run has no result, or if its log entry is long.",
  })
  resultPreview: string | null;
  @Field(() => DateTime, { description: "Time when the run was queued." }) queuedAt: string;
  @Field(() => DateTime, { nullable: true, description: "Time when the run started; null if it has not started." })
  startedAt: string | null;
  @Field(() => DateTime, { nullable: true, description: "Time when the run ended; null if it has not ended." })
  finishedAt: string | null;
  @Field(() => Int, { nullable: true, description: "ID of the execution log entry; null if there is none." }) logId:
    | number
    | null;
  @Field(() => Int, { nullable: true, description: "ID of the log event that started the run; null if no event did." })
  eventId: number | null;
  @Field(() => Int, { nullable: true, description: "ID of the run that started this run; null if no run did." })
  causeRunId: number | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the first run in the chain of causes; null if this run is the first.",
  })
  chainId: number | null;
  @Field(() => Int, { description: "Number of runs that precede this run in its chain of causes." }) depth: number;
  @Field(() => Int, { nullable: true, description: "ID of the run that this run repeats; null if it repeats none." })
  replayOf: number | null;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the version whose code ran; null if the current code of the draft or live version ran.",
  })
  versionId: number | null;
  @Field(() => Int, { nullable: true, description: "ID of the person who requested the run; null if no person did." })
  personId: number | null;
  @Field(() => RunPersonType, {
    nullable: true,
    description:
      "Person who requested the run, for editors of the app; null if there is none or the caller is not an editor.",
  })
  person: RunPersonType | null;
  @Field(() => [String], { description: "Hosts that the run connected to, each as host:port." }) hosts: string[];
  @Field(() => String, {
    nullable: true,
    description:
      "Sandbox of a run on the server: isolate, network-isolate or document; null if the code did not run on the server.",
  })
  sandbox: string | null;
}

@ObjectType("RunRequest", { description: "Request that a run sent to another service, without its content." })
export class OutgoingRequestType implements OutgoingRequestRecord {
  @Field(() => String, { description: "Host that received it, as host:port." }) host: string;
  @Field(() => String, { description: "HTTP method." }) method: string;
  @Field(() => Int, { nullable: true, description: "HTTP status of the response; null if there was none." })
  status: number | null;
  @Field(() => Float, { description: "Duration in milliseconds." }) durationMs: number;
  @Field(() => Int, { description: "Size of the request body in bytes." }) sentBytes: number;
  @Field(() => Int, { description: "Size of the decoded response body in bytes." }) receivedBytes: number;
  @Field(() => String, {
    nullable: true,
    description: "Error code such as TRANSPORT or TIMEOUT; null if the response was received.",
  })
  code: string | null;
}

@ObjectType("RunDetails", { description: "Run with its execution log entry and the runs that it started." })
export class RunDetailsType extends RunType {}

@ObjectType("RunPagination", { description: "Position of a page in a list of runs." })
class RunPaginationType {
  @Field(() => Int, { description: "Number of matching runs, counted up to 10,000." }) total: number;
  @Field(() => Boolean, { description: "True if no more runs match than `total`." }) totalIsExact: boolean;
  @Field(() => Boolean, { description: "True if runs follow this page." }) hasMore: boolean;
  @Field(() => Int, { nullable: true, description: "Value of `before` for the next page; null on the last page." })
  nextBefore: number | null;
}

@ObjectType("RunList", { implements: ListPageType, description: "Page of runs." })
export class RunListType {
  @PageItemsField(() => [RunType], "Runs on this page.") runs: RunSummary[];
  @Field(() => RunPaginationType, { ...DEPRECATED_IN_FAVOR_OF_PAGE, description: "Position of this page in the list." })
  pagination: RunPaginationType;
}

@ObjectType("UnfinishedRuns", { description: "Queued and running runs of an app." })
export class UnfinishedRunsType {
  @Field(() => Int, { description: "Number of queued runs, counted up to 10,000." }) queued: number;
  @Field(() => Int, { description: "Number of running runs, counted up to 10,000." }) running: number;
  @Field(() => [RunType], { description: "Running runs, then queued runs; newest first, at most 100." })
  runs: RunSummary[];
}

const PeriodLengthEnum = createGraphqlEnum<PeriodLength>("PeriodLength", "Length of the periods of run statistics.", {
  hour: "One hour.",
  day: "One day.",
});

@ObjectType("RunPeriod", { description: "Statistics of one hour or day with at least one run or skipped tick." })
class RunPeriodType implements StatisticsPeriod {
  @Field(() => DateTime, { description: "Start of the hour or day." }) start: string;
  @Field(() => Int, { description: "Number of runs, without skipped ticks." }) runs: number;
  @Field(() => Int, { description: "Number of failed runs." }) failed: number;
  @Field(() => Int, { description: "Number of cancelled runs." }) cancelled: number;
  @Field(() => Int, { description: "Number of skipped ticks." }) skipped: number;
  @Field(() => Float, {
    nullable: true,
    description: "Median duration of completed and failed runs in milliseconds; null if there are none.",
  })
  p50: number | null;
  @Field(() => Float, {
    nullable: true,
    description:
      "95th percentile of the duration of completed and failed runs in milliseconds; null if there are none.",
  })
  p95: number | null;
}

@ObjectType("RunStatistics", { description: "Statistics of runs by hour or day." })
export class RunStatisticsType {
  @Field(() => PeriodLengthEnum, { description: "Length of each period." }) by: string;
  @Field(() => DateTime, { description: "Start of the range." }) from: string;
  @Field(() => DateTime, { description: "End of the range, exclusive." }) to: string;
  @Field(() => DateTime, {
    nullable: true,
    description: "Time before which the runs of the range were not counted; null if all matching runs were counted.",
  })
  countedFrom: string | null;
  @Field(() => [RunPeriodType], { description: "Periods with runs or skipped ticks, oldest first." })
  periods: StatisticsPeriod[];
}

/** Filters of lists and statistics of runs, of type `unknown`, because only operations/history/run-filter.ts validates their values. */
@ArgsType()
export class RunFilterArguments {
  @Field(() => Int, {
    nullable: true,
    description:
      "ID of the action's draft or of its live version: with either ID, the list contains all runs of the action. All actions by default.",
  })
  actionId?: unknown;
  @Field(() => RunStateEnum, { nullable: true, description: "State of the runs; all states by default." })
  state?: unknown;
  @Field(() => TriggerTypeEnum, {
    nullable: true,
    description: "Kind of trigger that started the runs; all kinds by default.",
  })
  trigger?: unknown;
  @Field(() => DraftOrLiveEnum, {
    nullable: true,
    description: "Draft or live version that the runs executed; both by default.",
  })
  copy?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "ID of the action's version whose code the runs executed; all versions by default.",
  })
  versionId?: unknown;
  @Field(() => Int, { nullable: true, description: "ID of the person who requested the runs; all people by default." })
  personId?: unknown;
  @Field(() => String, {
    nullable: true,
    description:
      "Words, or the beginnings of words. The service finds runs that contain all of them in the payload, the result, the error, the console output or the names of the hosts that the run contacted.",
  })
  search?: unknown;
}

@ArgsType()
export class RunsArguments extends RunFilterArguments {
  @Field(() => DateTime, {
    nullable: true,
    description: "Lists only runs that were queued at this time or later; unlimited by default.",
  })
  from?: unknown;
  @Field(() => DateTime, {
    nullable: true,
    description: "Lists only runs that were queued before this time; unlimited by default.",
  })
  to?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "The `nextCursor` of the previous response, to continue the list.",
  })
  cursor?: unknown;
  @Field(() => Int, {
    nullable: true,
    description:
      "ID of a run: lists only older runs. To continue the list, send the `nextBefore` of the previous response.",
    deprecationReason: "Use `cursor`.",
  })
  before?: unknown;
  @Field(() => Int, { nullable: true, description: createLimitDescription() }) limit?: number;
  @Field(() => Int, { nullable: true, description: OFFSET_DESCRIPTION }) offset?: number;
}

@ArgsType()
export class RunStatisticsArguments extends RunFilterArguments {
  @Field(() => DateTime, {
    nullable: true,
    description:
      "Start of the time range, inclusive. By default, 2 days before `to` for periods of an hour, and 30 days before `to` for periods of a day.",
  })
  from?: unknown;
  @Field(() => DateTime, { nullable: true, description: "End of the time range, exclusive; now by default." })
  to?: unknown;
  @Field(() => PeriodLengthEnum, {
    nullable: true,
    description:
      "Length of each period: hour (the default) or day. The range can have 14 days with periods of an hour, and 100 days with periods of a day.",
  })
  by?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "IANA name of the time zone in which days start; UTC by default.",
  })
  timezone?: unknown;
}
