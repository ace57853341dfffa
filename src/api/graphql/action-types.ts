/** Shapes of an action in the GraphQL schema: copies, triggers, assets, pages. No behaviour. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, Int, ObjectType } from "type-graphql";
import type {
  Asset,
  Concurrency,
  ConcurrencyPolicy,
  Debounce,
  Environment,
  LogWhere,
  Trigger,
  TriggerType,
} from "../../data/action-types.js";
import { ConcurrencyPolicyEnum, DateTime, EnvironmentEnum, TriggerTypeEnum } from "./leaf-types.js";

@ObjectType("Asset", { description: "What a dependency loads." })
export class AssetType {
  @Field(() => String) name: string;
  @Field(() => String) url: string;
  @Field(() => String) path: string;
  @Field(() => String, { nullable: true, description: "Of an npm package: the exact one." }) version?: string;
  @Field(() => String, { nullable: true, description: "As the package states it." }) licence?: string;
  @Field(() => String, { nullable: true, description: "Of the script: sha256- and the hash in base64." })
  integrity?: string;
  @Field(() => Int, { nullable: true }) bytes?: number;
  @Field(() => String, { nullable: true, description: "The global name of an npm package." }) global?: string;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "It makes code of text (eval, new Function), which works on the server alone: pages of client actions forbid it.",
  })
  usesEval?: boolean;
  @Field(() => Boolean, { nullable: true, description: "Its address served something else at the last save." })
  changed?: boolean;
  @Field(() => Boolean, {
    nullable: true,
    description:
      "Not kept yet, as its host did not answer: each run loads what its address serves then. The next save or publish tries again.",
  })
  unreached?: boolean;
}

@ObjectType("TriggerWhere", { description: "Specification, Trigger object: which events start the action." })
class TriggerWhereType {
  @Field(() => String, { description: "An event type, for example dataSource.entry.create or analytics.pageView." })
  type: string;
  @Field(() => GraphQLSafeInt, { nullable: true, description: "Of `log`: this data source alone." })
  dataSourceId?: LogWhere["dataSourceId"];
  @Field(() => GraphQLJSON, { nullable: true, description: "Of `analytics`: fields that the event's data must have." })
  data?: Record<string, unknown>;
}

@ObjectType("Trigger", { description: "Specification, Trigger object." })
export class TriggerObjectType {
  @Field(() => TriggerTypeEnum) trigger: TriggerType;
  @Field(() => TriggerWhereType, { nullable: true, description: "Of `log` and `analytics` alone." })
  where?: TriggerWhereType;
}

@ObjectType("Concurrency", { description: "How many runs of an action there may be at once." })
class ConcurrencyType implements Concurrency {
  @Field(() => ConcurrencyPolicyEnum) policy: ConcurrencyPolicy;
  @Field(() => Int) limit: number;
  @Field(() => String, {
    nullable: true,
    description: "Path of a property of the payload: runs of one value count together.",
  })
  key: string | null;
}

@ObjectType("Debounce", { description: "Starts that follow each other closely become one run, with the last payload." })
class DebounceType implements Debounce {
  @Field(() => Int, { description: "Milliseconds without another start." }) delayMs: number;
  @Field(() => Int, { description: "The longest wait in milliseconds." }) maxWaitMs: number;
  @Field(() => Boolean, { description: "Also runs on demand, of one caller each." }) manual: boolean;
}

@ObjectType("ActionConfiguration", { description: "What an author gives of an action." })
export class ActionConfigurationType {
  @Field(() => String) name: string;
  @Field(() => String, { nullable: true }) description: string | null;
  @Field(() => String) code: string;
  @Field(() => Boolean) active: boolean;
  @Field(() => EnvironmentEnum) environment: Environment;
  @Field(() => [TriggerObjectType]) triggers: Trigger[];
  @Field(() => [String]) dependencies: string[];
  @Field(() => String, { nullable: true, description: "Cron expression of five fields." }) frequency: string | null;
  @Field(() => String, { nullable: true, description: "IANA time zone." }) timezone: string | null;
  @Field(() => ConcurrencyType, { nullable: true }) concurrency?: Concurrency;
  @Field(() => DebounceType, { nullable: true }) debounce?: Debounce;
  @Field(() => Int, { nullable: true, description: "Milliseconds that a run may take; null: the operator's limit." })
  timeoutMs?: number;
}

@ObjectType("Action", { description: "One copy of an action (specification, Action object)." })
export class ActionType extends ActionConfigurationType {
  @Field(() => Int) id: number;
  @Field(() => Int) appId: number;
  @Field(() => String, { description: "always v3" }) actionVersion: string;
  @Field(() => [AssetType], { description: "One per dependency." }) assets: Asset[];
  @Field(() => DateTime, { nullable: true }) lastRunAt: string | null;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("Pagination", { description: "Specification, Pagination object." })
export class PaginationType {
  @Field(() => Int) total: number;
  @Field(() => Boolean) hasMore: boolean;
}

@ObjectType("ActionList")
export class ActionListType {
  @Field(() => [ActionType]) actions: ActionType[];
  @Field(() => PaginationType) pagination: PaginationType;
}

@ObjectType("PublishedCopy", { description: "The production copy of a master." })
export class PublishedCopyType {
  @Field(() => Int) masterId: number;
  @Field(() => Int) id: number;
  @Field(() => Boolean) active: boolean;
  @Field(() => DateTime, { nullable: true }) lastRunAt: string | null;
  @Field(() => DateTime, { description: "When it was published last." }) updatedAt: string;
}
