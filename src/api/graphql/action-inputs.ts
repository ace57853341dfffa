/**
 * GraphQL inputs of actions. Every field is optional, nullable and of type `unknown`, because rules/action-input.ts checks the values for
 * both REST and GraphQL.
 */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, InputType, Int } from "type-graphql";
import type { ActionSource, Concurrency, Debounce } from "../../data/action-types.js";
import { ActionError } from "../../errors.js";
import type { ActionInput } from "../../rules/action-input.js";
import { refuseField } from "../../rules/fields.js";
import { HttpWhereInputFields } from "./http-trigger-types.js";
import {
  ActionAccessScalar,
  ConcurrencyPolicyEnum,
  DraftOrLiveEnum,
  EnvironmentEnum,
  SourceLanguageEnum,
  TriggerTypeEnum,
} from "./leaf-types.js";

/** Type that an input class implements: the fields of `Input`, the type that src/rules checks, with values of any type. */
type UnknownFields<Input> = { [Field in keyof Input]?: unknown };

@InputType("TriggerWhereInput", { description: "Filter that selects which events or requests start the action." })
export class TriggerWhereInput extends HttpWhereInputFields {
  @Field(() => String, {
    nullable: true,
    description:
      "Type of the event, for example dataSource.entry.create or analytics.pageView; required for `log` and `analytics` triggers.",
  })
  type?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description:
      "ID of the data source whose events match; for `log` triggers only. Absent or null matches all data sources.",
  })
  dataSourceId?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Object of fields and values that the event's data must contain; for `analytics` triggers only.",
  })
  data?: unknown;
}

@InputType("TriggerInput", { description: "One way to start an action." })
class TriggerInput {
  @Field(() => TriggerTypeEnum, { nullable: true, description: "Kind of trigger; required." }) trigger?: unknown;
  @Field(() => TriggerWhereInput, {
    nullable: true,
    description: "Filter for events or requests; required for `log`, `analytics` and `http`, ignored for other kinds.",
  })
  where?: unknown;
}

@InputType("ConcurrencyInput", { description: "Limit on how many runs of the action execute at the same time." })
export class ConcurrencyInput implements UnknownFields<Concurrency> {
  @Field(() => ConcurrencyPolicyEnum, {
    nullable: true,
    description: "Handling of a run that exceeds the limit; required.",
  })
  policy?: unknown;
  @Field(() => Int, { nullable: true, description: "Maximum number of concurrent runs; 1 by default." })
  limit?: unknown;
  @Field(() => String, {
    nullable: true,
    description:
      "Path of a payload property; the limit applies separately to each of its values. Absent or null applies the limit to all runs together.",
  })
  key?: unknown;
}

@InputType("DebounceInput", {
  description:
    "Merges requests to start the action that shortly follow each other into one run, which gets the last payload.",
})
export class DebounceInput implements UnknownFields<Debounce> {
  @Field(() => Int, {
    nullable: true,
    description: "Milliseconds without a further request after which the run starts; required.",
  })
  delayMs?: unknown;
  @Field(() => Int, {
    nullable: true,
    description:
      "Longest time in milliseconds by which requests can delay the run; ten times `delayMs` by default, but at most 24 hours.",
  })
  maxWaitMs?: unknown;
  @Field(() => Boolean, {
    nullable: true,
    description: "True to also debounce runs on demand, separately for each caller; false by default.",
  })
  manual?: unknown;
}

@InputType("SourceFileInput", { description: "File of an action's source." })
class SourceFileInput {
  @Field(() => String, { description: "Relative path, such as action.ts or lib/dates.ts." }) path: string;
  @Field(() => String, { description: "Text of the file." }) text: string;
}

@InputType("ActionSourceInput", { description: "Files of an action, from which the service builds its code." })
export class ActionSourceInput implements UnknownFields<Pick<ActionSource, "language" | "files">> {
  @Field(() => SourceLanguageEnum, { nullable: true, description: "Language of the entry file; required." })
  language?: unknown;
  @Field(() => GraphQLJSON, {
    nullable: true,
    description: "Texts by relative path, such as action.ts and lib/dates.ts; at most 200 files and 900 KB; required.",
  })
  files?: unknown;

  /**
   * Converts `fileList` to `files`, because src/rules accepts only `files`.
   * @throws REQUEST_INVALID if the input contains both fields
   */
  @Field(() => [SourceFileInput], {
    nullable: true,
    description: "Files as a list of paths and texts. Use either `fileList` or `files`.",
  })
  set fileList(list: SourceFileInput[] | null) {
    if (list === null) return;
    if (this.files !== undefined && this.files !== null)
      throw new ActionError("REQUEST_INVALID", '"source" must have either "files" or "fileList" (got both)');
    const files: Record<string, string> = Object.create(null);
    for (const [index, { path, text }] of list.entries()) {
      if (path in files)
        refuseField(`source.fileList[${index}].path`, "a path that no other file of the list has", path);
      files[path] = text;
    }
    this.files = { ...files };
  }
}

@InputType("CreateActionInput", { description: "Configuration of a new action." })
export class CreateActionInput implements UnknownFields<ActionInput> {
  @Field(() => String, {
    nullable: true,
    description:
      "Name of 1 to 255 letters, digits, dashes and underscores, unique in the app; required to create an action.",
  })
  name?: unknown;
  @Field(() => String, {
    nullable: true,
    description:
      "JavaScript that defines `async function execute(context)`; required to create an action without `source`.",
  })
  code?: unknown;
  @Field(() => String, { nullable: true, description: "Description of at most 1000 characters; null for none." })
  description?: unknown;
  @Field(() => Boolean, { nullable: true, description: "True if the action can run; false by default." })
  active?: unknown;
  @Field(() => EnvironmentEnum, {
    nullable: true,
    description: "Environment in which the action runs; `server` by default.",
  })
  environment?: unknown;
  @Field(() => [TriggerInput], { nullable: "itemsAndList", description: "Triggers that start the action." })
  triggers?: unknown;
  @Field(() => [String], {
    nullable: "itemsAndList",
    description: "Packages that the code uses, as npm package names or https URLs.",
  })
  dependencies?: unknown;
  @Field(() => String, { nullable: true, description: "Schedule as a cron expression of five fields; null for none." })
  frequency?: unknown;
  @Field(() => String, {
    nullable: true,
    description: "IANA name of the time zone of the schedule; DEFAULT_TIMEZONE of the service by default.",
  })
  timezone?: unknown;
  @Field(() => ActionAccessScalar, {
    nullable: true,
    description:
      "Pages that can run the action on demand: `everyone` for all pages, which is the default; `signedIn` for pages with a signed-in app user; {user: {Column: test}} for pages whose app user meets the tests; `editors` for pages of the viewer. Other credentials are not affected.",
  })
  access?: unknown;
  @Field(() => ConcurrencyInput, { nullable: true, description: "Limit on concurrent runs; null for no limit." })
  concurrency?: unknown;
  @Field(() => DebounceInput, {
    nullable: true,
    description: "Debounce settings; null to start a run for each trigger.",
  })
  debounce?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "Maximum duration of a run in milliseconds; null for the operator's limit.",
  })
  timeoutMs?: unknown;
  @Field(() => Int, {
    nullable: true,
    description:
      "Seconds, 0 to 300, over which scheduled runs are spread: the action's runs start at a fixed offset after their tick. Null or 0 for none; for `schedule` triggers only.",
  })
  jitterSeconds?: unknown;
  @Field(() => [String], {
    nullable: "itemsAndList",
    description:
      "Origins that the code may send requests to, such as https://api.example.com; at most 20, on server actions only.",
  })
  integrationOrigins?: unknown;
  @Field(() => ActionSourceInput, {
    nullable: true,
    description: "Files from which `code` is built, so that `code` is ignored; null to write `code` directly.",
  })
  source?: unknown;
}

@InputType("UpdateActionInput", {
  description: "Changes to an action. Omitted properties keep their values; null clears optional ones.",
})
export class UpdateActionInput extends CreateActionInput {}

@InputType("ImportDocumentInput", { description: "Document that `exportActions` returned." })
export class ActionImportDocumentInput {
  @Field(() => String, { nullable: true, description: "Format of the document; must be svc-app-actions/1." })
  format?: unknown;
  @Field(() => [CreateActionInput], {
    nullable: "itemsAndList",
    description: "Actions to create or update, matched by name.",
  })
  actions?: unknown;
}

@InputType("ReplayInput", { description: "Code and payload with which a past run is repeated." })
export class RunReplayInput {
  @Field(() => DraftOrLiveEnum, {
    nullable: true,
    description:
      "Runs the current draft (`master`) or the current live version (`production`); by default the same of these as the original run.",
  })
  copy?: unknown;
  @Field(() => Int, {
    nullable: true,
    description: "ID of an older version to run instead. It runs like a draft and is not published.",
  })
  versionId?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Payload of the new run; the original payload by default." })
  payload?: unknown;
}
