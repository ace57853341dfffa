/** GraphQL types of the execution log, and the filters of its queries. Contains only declarations. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import type { LogEntry, ScriptError } from "../../operations/records/execution-logs.js";
import { readJsonFieldTexts } from "../../rules/json-scan.js";
import { JsonText } from "../../rules/json-text.js";
import { createLimitDescription, OFFSET_DESCRIPTION } from "./arguments.js";
import { DateTime } from "./leaf-types.js";
import { ListPageType, PageItemsField } from "./page-types.js";

/** Members of a log entry's `data` (specification, Execution log entry). */
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

/** Parsed parts of each entry's `data`, so that a query with several of these fields parses the text once. */
const parsedEntryParts = new WeakMap<JsonText, Map<string, string>>();

/** Parts of `data` that GraphQL returns as JSON text without parsing them, because they may be megabytes long. */
const UNPARSED_PARTS: readonly string[] = ["payload", "result"] satisfies (keyof EntryData)[];

/** Returns one part of a log entry's `data`; undefined if the entry does not have this part. */
export function readLogEntryField({ data }: LogEntry, name: keyof EntryData): unknown {
  const members = parsedEntryParts.get(data) ?? readJsonFieldTexts(data.text);
  parsedEntryParts.set(data, members);
  const text = members.get(name);
  if (text === undefined) return undefined;
  return UNPARSED_PARTS.includes(name) ? new JsonText(text) : JSON.parse(text);
}

@ObjectType("ScriptError", { description: "Error that execute threw." })
export class ScriptErrorType implements ScriptError {
  @Field(() => String, { description: "Name of the error, for example TypeError." }) name: string;
  @Field(() => String, { description: "Message of the error." }) message: string;
  @Field(() => String, { description: "Stack trace of the error." }) stack: string;
}

@ObjectType("LogEntry", { description: "Execution log entry of a run. Each part of `data` is also a field." })
export class LogEntryType {
  @Field(() => Int, { description: "ID of the entry." }) id: number;
  @Field(() => String, { description: "Outcome of the run: app.task.completed or app.task.failed." }) type: string;
  @Field(() => DateTime, { description: "Time when the execution ended." }) createdAt: string;
  @Field(() => GraphQLJSON, { description: "All parts of the entry as one object." }) data: unknown;
}

@ObjectType("LogList", { implements: ListPageType, description: "Page of execution log entries." })
export class LogListType {
  @Field(() => Int, { deprecationReason: "Use `total`.", description: "Number of matching entries on all pages." })
  count: number;
  @Field(() => Boolean, {
    deprecationReason: "Use `totalIsExact`.",
    nullable: true,
    description: "False if more than 10,000 entries match and `count` is an estimate; null otherwise.",
  })
  countIsExact?: boolean;
  @PageItemsField(() => [LogEntryType], "Entries on this page.") logs: LogEntry[];
  nextCursor?: string;
}

@InputType("ActionLogsDataInput", { description: "Filter for the data of execution log entries." })
class ActionLogsDataInput {
  @Field(() => Int, { nullable: true, description: "ID of the draft or live version that ran; all by default." })
  taskId?: unknown;
}

@InputType("ActionLogsWhereInput", { description: "Filter for execution log entries." })
class ActionLogsWhereInput {
  @Field(() => String, {
    nullable: true,
    description: "Outcome of the run: app.task.completed or app.task.failed; both by default.",
  })
  type?: unknown;
  @Field(() => ActionLogsDataInput, { nullable: true, description: "Filter for the data of the entries." })
  data?: unknown;
}

@InputType("ActionLogsInput", { description: "Filter and page of execution log entries." })
export class ActionLogsInput {
  @Field(() => Int, {
    nullable: true,
    description: "ID of the draft or live version whose entries to return; all by default.",
  })
  id?: unknown;
  @Field(() => ActionLogsWhereInput, { nullable: true, description: "Filter for the entries; all entries by default." })
  where?: unknown;
  @Field(() => Int, { nullable: true, description: createLimitDescription() }) limit?: unknown;
  @Field(() => Int, { nullable: true, description: OFFSET_DESCRIPTION }) offset?: unknown;
  @Field(() => String, {
    nullable: true,
    description:
      "The `nextCursor` of the previous response, to continue the list. Each page takes the same time to read.",
  })
  cursor?: unknown;
}
