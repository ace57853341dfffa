/** GraphQL types of actions: versions, triggers, assets and pages. Contains only declarations. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, Int, ObjectType } from "type-graphql";
import type {
  ActionAccess,
  ActionSource,
  Asset,
  Concurrency,
  ConcurrencyPolicy,
  Debounce,
  Environment,
  LogWhere,
  Trigger,
  TriggerType,
} from "../../data/action-types.js";
import type { TriggerEndpoint } from "../../operations/http/endpoints.js";
import { EndpointType, HttpWhereFields } from "./http-trigger-types.js";
import { ActionAccessScalar, ConcurrencyPolicyEnum, DateTime, EnvironmentEnum, TriggerTypeEnum } from "./leaf-types.js";
import { DEPRECATED_IN_FAVOR_OF_PAGE, ListPageType, PageItemsField } from "./page-types.js";
import { ActionSourceType } from "./source-types.js";

@ObjectType("Asset", { description: "Script of a dependency." })
export class AssetType {
  @Field(() => String, { description: "Name of the dependency as the action states it." }) name: string;
  @Field(() => String, { description: "URL from which runs and pages load the file." }) url: string;
  @Field(() => String, { description: "Path of the file." }) path: string;
  @Field(() => String, { nullable: true, description: "Exact version of an npm package; null for other URLs." })
  version?: string;
  @Field(() => String, { nullable: true, description: "Licence that the package states; null if it states none." })
  licence?: string;
  @Field(() => String, {
    nullable: true,
    description:
      "Subresource integrity of the script, as sha256- and the hash in base64; null if the file is not stored.",
  })
  integrity?: string;
  @Field(() => Int, { nullable: true, description: "Size of the file in bytes; null if the file is not stored." })
  bytes?: number;
  @Field(() => String, {
    nullable: true,
    description: "Name of the global variable that an npm package defines; null for other URLs.",
  })
  global?: string;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True if the script uses eval or new Function, which works on the server only; null otherwise. Pages with client actions forbid both.",
  })
  usesEval?: boolean;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True if the URL returned different content at the last save; the stored script stays in use. Null otherwise.",
  })
  changed?: boolean;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "True if the file is not stored because its host did not respond; null otherwise. Runs load it from `url` until a save or publication stores it.",
  })
  unreached?: boolean;
}

@ObjectType("TriggerWhere", { description: "Filter that selects which events or requests start the action." })
class TriggerWhereType extends HttpWhereFields {
  @Field(() => String, {
    nullable: true,
    description:
      "Type of the event, for example dataSource.entry.create or analytics.pageView; null for `http` triggers.",
  })
  type?: string;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source whose events match, for `log` triggers; null matches all data sources.",
  })
  dataSourceId?: LogWhere["dataSourceId"];
  @Field(() => GraphQLJSON, {
    nullable: true,
    description:
      "Fields and values that the event's data must contain, for `analytics` triggers; null matches all data.",
  })
  data?: Record<string, unknown>;
}

@ObjectType("Trigger", { description: "One way to start an action." })
export class TriggerObjectType {
  @Field(() => TriggerTypeEnum, { description: "Kind of trigger." }) trigger: TriggerType;
  @Field(() => TriggerWhereType, {
    nullable: true,
    description:
      "Filter for events of `log` and `analytics` triggers, and for requests to `http` triggers; null for other kinds.",
  })
  where?: TriggerWhereType;
}

@ObjectType("Concurrency", { description: "Limit on how many runs of an action execute at the same time." })
export class ConcurrencyType implements Concurrency {
  @Field(() => ConcurrencyPolicyEnum, { description: "Handling of a run that exceeds the limit." })
  policy: ConcurrencyPolicy;
  @Field(() => Int, { description: "Maximum number of concurrent runs." }) limit: number;
  @Field(() => String, {
    nullable: true,
    description:
      "Path of a payload property; the limit applies separately to each of its values. Null applies the limit to all runs together.",
  })
  key: string | null;
}

@ObjectType("Debounce", {
  description:
    "Merges requests to start the action that shortly follow each other into one run, which gets the last payload.",
})
export class DebounceType implements Debounce {
  @Field(() => Int, { description: "Milliseconds without a further request after which the run starts." })
  delayMs: number;
  @Field(() => Int, { description: "Longest time in milliseconds by which requests can delay the run." })
  maxWaitMs: number;
  @Field(() => Boolean, { description: "True if runs on demand are debounced too, separately for each caller." })
  manual: boolean;
}

@ObjectType("ActionConfiguration", { description: "Properties of an action that its author sets." })
export class ActionConfigurationType {
  @Field(() => String, { description: "Name of the action, unique in the app." }) name: string;
  @Field(() => String, { nullable: true, description: "Description of the action; null if it has none." }) description:
    | string
    | null;
  @Field(() => String, { description: "JavaScript that defines `async function execute(context)`." }) code: string;
  @Field(() => Boolean, { description: "True if the action can run." }) active: boolean;
  @Field(() => EnvironmentEnum, { description: "Environment in which the action runs." }) environment: Environment;
  @Field(() => [TriggerObjectType], { description: "Triggers that start the action." }) triggers: Trigger[];
  @Field(() => [String], { description: "Packages that the code uses, as npm package names or https URLs." })
  dependencies: string[];
  @Field(() => String, {
    nullable: true,
    description: "Schedule as a cron expression of five fields; null if it has none.",
  })
  frequency: string | null;
  @Field(() => String, {
    nullable: true,
    description: "IANA name of the time zone of the schedule; null for DEFAULT_TIMEZONE of the service.",
  })
  timezone: string | null;
  @Field(() => ActionAccessScalar, {
    nullable: true,
    description: "Pages that can run the action on demand; null in versions that predate this property.",
  })
  access: ActionAccess;
  @Field(() => ConcurrencyType, { nullable: true, description: "Limit on concurrent runs; null if there is none." })
  concurrency?: Concurrency;
  @Field(() => DebounceType, { nullable: true, description: "Debounce settings; null if each trigger starts a run." })
  debounce?: Debounce;
  @Field(() => Int, {
    nullable: true,
    description: "Maximum duration of a run in milliseconds; null for the operator's limit.",
  })
  timeoutMs?: number;
  @Field(() => Int, {
    nullable: true,
    description: "Seconds over which scheduled runs are spread; null if they start at their tick.",
  })
  jitterSeconds?: number;
  @Field(() => [String], { description: "Origins that the code may send requests to." })
  integrationOrigins: string[];
  @Field(() => ActionSourceType, {
    nullable: true,
    description: "Files from which `code` is built; null if the author writes `code` directly.",
  })
  source?: ActionSource;
}

@ObjectType("Action", { description: "Draft or live version of an action." })
export class ActionType extends ActionConfigurationType {
  @Field(() => Int, { description: "ID of this draft or live version." }) id: number;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => String, { description: "Version of the action format; always v3." }) actionVersion: string;
  @Field(() => [AssetType], { description: "Scripts of the dependencies, one for each dependency." })
  assets: Asset[];
  @Field(() => DateTime, { nullable: true, description: "Time of the last run; null if it has never run." }) lastRunAt:
    | string
    | null;
  @Field(() => DateTime, { description: "Time of creation." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
  @Field(() => [EndpointType], {
    nullable: true,
    description: "Addresses of the HTTP triggers; null if there are none, and for callers who may not edit the action.",
  })
  endpoints?: TriggerEndpoint[];
}

@ObjectType("Pagination", { description: "Position of a page in a list." })
export class PaginationType {
  @Field(() => Int, { description: "Number of matching items on all pages." }) total: number;
  @Field(() => Boolean, { description: "True if items follow this page." }) hasMore: boolean;
}

@ObjectType("ActionList", { implements: ListPageType, description: "Page of actions." })
export class ActionListType {
  @PageItemsField(() => [ActionType], "Drafts of the actions on this page.") actions: ActionType[];
  @Field(() => PaginationType, { ...DEPRECATED_IN_FAVOR_OF_PAGE, description: "Position of this page in the list." })
  pagination: PaginationType;
}

@ObjectType("PublishedCopy", { description: "State of an action's live version." })
export class LiveVersionType {
  @Field(() => Int, { description: "ID of the action's draft." }) masterId: number;
  @Field(() => Int, { description: "ID of the live version." }) id: number;
  @Field(() => Boolean, { description: "True if the live version can run." }) active: boolean;
  @Field(() => DateTime, { nullable: true, description: "Time of its last run; null if it has never run." }) lastRunAt:
    | string
    | null;
  @Field(() => DateTime, { description: "Time of the last publication." }) updatedAt: string;
}
