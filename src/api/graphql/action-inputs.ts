/**
 * What GraphQL's callers may give of an action: shapes, and of those only what a type can say. Every field may be absent or null, so
 * that what it must hold is judged in rules/action-input.ts, for REST alike, with the specification's status.
 */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int } from "type-graphql";
import type { Concurrency, Debounce } from "../../data/action-types.js";
import type { ActionInput } from "../../rules/action-input.js";
import { ConcurrencyPolicyEnum, CopyEnum, EnvironmentEnum, TriggerTypeEnum } from "./leaf-types.js";

/** Holds the fields of a class to those that the rules judge. */
type Given<Input> = { [Field in keyof Input]?: unknown };

@InputType("TriggerWhereInput", { description: "Specification, Trigger object: which events start the action." })
export class TriggerWhereInput {
  @Field(() => String, {
    nullable: true,
    description: "An event type, for example dataSource.entry.create or analytics.pageView.",
  })
  type?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true, description: "Of `log`: this data source alone." })
  dataSourceId?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Of `analytics`: fields that the event's data must have." })
  data?: unknown;
}

@InputType("TriggerInput", { description: "Specification, Trigger object." })
class TriggerInput {
  @Field(() => TriggerTypeEnum, { nullable: true }) trigger?: unknown;
  @Field(() => TriggerWhereInput, { nullable: true, description: "Required for `log` and `analytics`." })
  where?: unknown;
}

@InputType("ConcurrencyInput", { description: "How many runs of the action there may be at once." })
class ConcurrencyInput implements Given<Concurrency> {
  @Field(() => ConcurrencyPolicyEnum, { nullable: true, description: "Required." }) policy?: unknown;
  @Field(() => Int, { nullable: true, description: "1 unless given." }) limit?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "Path of a property of the payload: runs of one value count together.",
  })
  key?: unknown;
}

@InputType("DebounceInput", {
  description: "Starts that follow each other closely become one run, with the last payload.",
})
class DebounceInput implements Given<Debounce> {
  @Field(() => Int, { nullable: true, description: "Required: milliseconds without another start." }) delayMs?: unknown;
  @Field(() => Int, { nullable: true, description: "The longest wait; ten times `delayMs` unless given." })
  maxWaitMs?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Also runs on demand, of one caller each; false unless given." })
  manual?: unknown;
}

@InputType("CreateActionInput", { description: "Specification, Create parameters." })
export class CreateActionInput implements Given<ActionInput> {
  @Field(() => String, { nullable: true, description: "Letters, numbers, dashes, underscores; unique in the app." })
  name?: unknown;
  @Field(() => String, { nullable: true, description: "JavaScript that defines `async function execute(context)`." })
  code?: unknown;
  @Field(() => String, { nullable: true, description: "At most 1000 characters." }) description?: unknown;
  @Field(() => Boolean, { nullable: true, description: "Must be true for any execution; false unless given." })
  active?: unknown;
  @Field(() => EnvironmentEnum, { nullable: true, description: "`server` unless given." }) environment?: unknown;
  @Field(() => [TriggerInput], { nullable: "itemsAndList" }) triggers?: unknown;
  @Field(() => [String], { nullable: "itemsAndList", description: "Package names or https URLs." })
  dependencies?: unknown;
  @Field(() => String, { nullable: true, description: "Cron expression of five fields." }) frequency?: unknown;
  @Field(() => String, { nullable: true, description: "Full IANA name; the server's default unless given." })
  timezone?: unknown;
  @Field(() => ConcurrencyInput, { nullable: true }) concurrency?: unknown;
  @Field(() => DebounceInput, { nullable: true }) debounce?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Milliseconds that a run may take; the operator's limit unless given.",
  })
  timeoutMs?: unknown;
}

@InputType("UpdateActionInput", { description: "Omitted properties stay as they are; null clears what may be empty." })
export class UpdateActionInput extends CreateActionInput {}

@InputType("ImportDocumentInput", { description: "What `exportActions` gives." })
export class ImportDocumentInput {
  @Field(() => String, { nullable: true, description: "svc-app-actions/1" }) format?: unknown;
  @Field(() => [CreateActionInput], { nullable: "itemsAndList" }) actions?: unknown;
}

@InputType("ReplayInput", { description: "Which copy or version runs; the copy that ran unless given." })
export class ReplayInput {
  @Field(() => CopyEnum, { nullable: true }) copy?: unknown;
  @Field(() => Int, { nullable: true, description: "Its code runs as the master does." }) versionId?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "The run's own unless given." }) payload?: unknown;
}
