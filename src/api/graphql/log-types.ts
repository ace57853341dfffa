/** Shapes of the execution log in the GraphQL schema, and what a caller may ask of it. No behaviour. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { LogEntry, ScriptError } from "../../operations/logs/logs.js";
import { DateTime } from "./leaf-types.js";

/** The parts of an entry's `data` (specification, Execution log entry). */
interface EntryData {
  mode: string;
  runOn: "server" | "client";
  taskId: number;
  payload: unknown;
  duration: number;
  actionVersion: string;
  result?: unknown;
  error?: ScriptError;
  replayOf?: number;
}

/** One part of an entry's `data`; nothing else here knows how that is kept. */
export function partOf<Name extends keyof EntryData>({ data }: LogEntry, name: Name): EntryData[Name] {
  return (data as unknown as EntryData)[name];
}

@ObjectType("ScriptError", { description: "What execute threw." })
export class ScriptErrorType implements ScriptError {
  @Field(() => String) name: string;
  @Field(() => String) message: string;
  @Field(() => String) stack: string;
}

/** Its fields but the first four are parts of `data`: see log-resolver.ts. */
@ObjectType("LogEntry", {
  description: "Specification, Execution log entry. What `data` holds has a field of its own too.",
})
export class LogEntryType {
  @Field(() => Int) id: number;
  @Field(() => String, { description: "app.task.completed or app.task.failed" }) type: string;
  @Field(() => DateTime, { description: "When the execution finished." }) createdAt: string;
  @Field(() => GraphQLJSON, { description: "The whole of it, as the specification has it." }) data: unknown;
}

@ObjectType("LogList")
export class LogListType {
  @Field(() => Int, { description: "How many entries match in all." }) count: number;
  @Field(() => [LogEntryType]) logs: LogEntry[];
}

@InputType("ActionLogsDataInput")
class ActionLogsDataInput {
  @Field(() => Int, { nullable: true, description: "The copy's id." }) taskId?: unknown;
}

@InputType("ActionLogsWhereInput")
class ActionLogsWhereInput {
  @Field(() => String, { nullable: true, description: "app.task.completed or app.task.failed" }) type?: unknown;
  @Field(() => ActionLogsDataInput, { nullable: true }) data?: unknown;
}

@InputType("ActionLogsInput", { description: "Specification, getLogs." })
export class ActionLogsInput {
  @Field(() => Int, { nullable: true, description: "One action's copy; all of the app unless given." }) id?: unknown;
  @Field(() => ActionLogsWhereInput, { nullable: true }) where?: unknown;
  @Field(() => Int, { nullable: true, description: "50 unless given." }) limit?: unknown;
  @Field(() => Int, { nullable: true }) offset?: unknown;
}
