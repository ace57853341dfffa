/** Shapes of the execution log in the GraphQL schema, and what a caller may ask of it. No behaviour. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { LogEntry, ScriptError } from "../../operations/records/execution-logs.js";
import { memberTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
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

/** Each entry's text is read once, however many of its parts are asked for. */
const parts = new WeakMap<JsonText, Map<string, string>>();

/** Parts that may be megabytes of anything; they stay text. */
const AS_TEXT: readonly string[] = ["payload", "result"] satisfies (keyof EntryData)[];

/** One part of an entry's `data`; nothing else here knows how that is kept. */
export function partOf({ data }: LogEntry, name: keyof EntryData): unknown {
  const found = parts.get(data) ?? memberTexts(data.text);
  parts.set(data, found);
  const text = found.get(name);
  if (text === undefined) return undefined;
  return AS_TEXT.includes(name) ? new JsonText(text) : JSON.parse(text);
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
  @Field(() => Boolean, {
    nullable: true,
    description: "false where there are more than 10,000, and `count` says about how many; else null.",
  })
  countIsExact?: boolean;
  @Field(() => [LogEntryType]) logs: LogEntry[];
  @Field(() => String, { nullable: true, description: "What `cursor` takes for the next page; null on the last one." })
  nextCursor?: string;
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
  @Field(() => String, {
    nullable: true,
    description: "The `nextCursor` of a page: what follows it, at the same cost however far down.",
  })
  cursor?: unknown;
}
