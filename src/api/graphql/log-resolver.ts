/** Execution logs over GraphQL: the list, and the live tail. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, Field, Int, ObjectType, Query, Resolver, Root, Subscription } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { LogTail } from "../../operations/logs/log-tail.js";
import { checkLogType, type LogEntry, type Logs } from "../../operations/logs/logs.js";
import type { RequestContext } from "../context.js";

@ObjectType("LogEntry", { description: "Specification, Execution log entry." })
class LogEntryType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "app.task.completed or app.task.failed" }) type: string;
  @Field(() => String) createdAt: string;
  @Field(() => GraphQLJSON) data: unknown;
}

@ObjectType("LogList")
class LogListType {
  @Field(() => Int, { description: "How many entries match in all." }) count: number;
  @Field(() => [LogEntryType]) logs: LogEntry[];
}

interface TailArguments {
  appId: number;
  actionId?: number;
  type?: string;
}

/** What the tail needs of a subscription's context: decorators know no instance. */
export interface TailContext extends RequestContext {
  gate: Gate;
  tail: LogTail;
}

@Resolver()
export class LogResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Logs,
  ) {}

  @Query(() => LogListType, {
    description: "`options`: {id, where: {type, data: {taskId}}, limit, offset}; most recent first.",
  })
  async actionLogs(
    @Ctx() context: RequestContext,
    @Arg("appId", () => Int) appId: number,
    @Arg("options", () => GraphQLJSON, { nullable: true }) options: unknown,
  ): Promise<LogListType> {
    await this.gate.enter(context, "readLogs", appId);
    return this.service.list(appId, options);
  }

  @Subscription(() => LogEntryType, {
    description: "Each execution log entry of the app as it is written.",
    subscribe: async ({ args, context }) => {
      const { appId, actionId, type } = args as TailArguments;
      const { gate, tail, ...visitor } = context as TailContext;
      await gate.enter(visitor, "readLogs", appId);
      checkLogType(type, "type");
      return tail.follow({ appId, actionId, type });
    },
  })
  actionLogAdded(
    @Root() entry: LogEntry,
    @Arg("appId", () => Int) _appId: number,
    @Arg("actionId", () => Int, { nullable: true }) _actionId?: number,
    @Arg("type", () => String, { nullable: true }) _type?: string,
  ): LogEntry {
    return entry;
  }
}
