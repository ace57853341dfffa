/** Execution logs over GraphQL: the list, a subscription to new entries, and each part of an entry as a field. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, FieldResolver, Float, Int, Query, Resolver, Root, Subscription } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import { checkLogEntryType, type ExecutionLogs, type LogEntry } from "../../operations/records/execution-logs.js";
import type { LogTail } from "../../operations/records/log-tail.js";
import { guardSubscriptionSource } from "../../operations/records/subscription-source.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument } from "./arguments.js";
import { RunOnEnum } from "./leaf-types.js";
import { ActionLogsInput, LogEntryType, LogListType, readLogEntryField, ScriptErrorType } from "./log-types.js";

interface LogTailArguments {
  appId: number;
  actionId?: number;
  type?: string;
  after?: number | null;
}

/**
 * Context of the subscription. It contains the access check and the source of new log entries, because the decorator of
 * a subscription cannot access the resolver instance.
 */
export interface LogSubscriptionContext extends RequestContext {
  accessChecks: AccessChecks;
  tail: LogTail;
}

@Resolver(() => LogEntryType)
export class LogResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: ExecutionLogs,
  ) {}

  @Query(() => LogListType, {
    description: "Lists the entries of the app's execution log, newest first. When a run ends, the log gets an entry.",
  })
  async actionLogs(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => ActionLogsInput, {
      nullable: true,
      description: "Filter and page; the newest entries of all actions by default.",
    })
    options: unknown,
  ): Promise<LogListType> {
    await this.accessChecks.requireAppAccess(context, "readLogs", appId);
    return this.service.list(appId, options, context.responseBudget?.reserveBytes);
  }

  @Subscription(() => LogEntryType, {
    description: "Emits each new execution log entry of the app, in the order of the IDs.",
    subscribe: async ({ args, context }) => {
      const { appId, actionId, type, after } = args as LogTailArguments;
      const { accessChecks, tail, ...requestContext } = context as LogSubscriptionContext;
      await accessChecks.requireAppAccess(requestContext, "readLogs", appId);
      checkLogEntryType(type, "type");
      return guardSubscriptionSource(tail.follow({ appId, actionId, type, after }), {
        appId,
        check: (caller) => accessChecks.recheck(caller, "readLogs", appId),
      });
    },
  })
  actionLogAdded(
    @Root() entry: LogEntry,
    @AppIdArgument() _appId: number,
    @Arg("actionId", () => Int, {
      nullable: true,
      description: "ID of the draft or live version whose entries to emit; all by default.",
    })
    _actionId?: number,
    @Arg("type", () => String, {
      nullable: true,
      description: "Type of the entries: app.task.completed or app.task.failed; both by default.",
    })
    _type?: string,
    @Arg("after", () => Int, {
      nullable: true,
      description:
        "ID of the last received entry, after which the subscription resumes with at most the newest 1,000 entries; from now on by default.",
    })
    _after?: number | null,
  ): LogEntry {
    return entry;
  }

  @FieldResolver(() => String, { description: "Kind of start: scheduled or on-demand." })
  mode(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "mode");
  }

  @FieldResolver(() => RunOnEnum, { description: "Environment in which the code ran." })
  runOn(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "runOn");
  }

  @FieldResolver(() => Int, { description: "ID of the draft or live version that ran." })
  taskId(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "taskId");
  }

  @FieldResolver(() => GraphQLJSON, { description: "Payload of the run; {} for scheduled runs." })
  payload(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "payload");
  }

  @FieldResolver(() => Float, { description: "Duration of the run in milliseconds." })
  duration(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "duration");
  }

  @FieldResolver(() => String, { description: "Version of the action format; always v3." })
  actionVersion(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "actionVersion");
  }

  @FieldResolver(() => GraphQLJSON, {
    nullable: true,
    description:
      "{data, success: true} of a completed run, {error, success: false, errorObject} of a failed one; null for completed scheduled runs.",
  })
  result(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "result");
  }

  @FieldResolver(() => ScriptErrorType, {
    nullable: true,
    description: "Error that execute threw; null for completed runs.",
  })
  error(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "error");
  }

  @FieldResolver(() => Int, {
    nullable: true,
    description: "ID of the run that this run repeats; null if it repeats none.",
  })
  replayOf(@Root() entry: LogEntry): unknown {
    return readLogEntryField(entry, "replayOf");
  }
}
