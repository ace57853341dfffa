/** Shapes of events in the GraphQL schema: what happened in an app, and what a browser reports. No behaviour. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, Float, InputType, Int, ObjectType } from "type-graphql";
import type { LogEventInput as LogEventFields } from "../../rules/log-event-input.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("LogEvent", { description: "Specification, Log entry." })
export class LogEventType {
  @Field(() => Int) id: number;
  @Field(() => GraphQLSafeInt, { nullable: true }) userId: number | null;
  @Field(() => Int) appId: number;
  @Field(() => Int) organizationId: number;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceId: number | null;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceEntryId: number | null;
  @Field(() => GraphQLSafeInt, { nullable: true }) appNotificationId: number | null;
  @Field(() => GraphQLSafeInt, { nullable: true }) sessionId: number | null;
  @Field(() => String) requestId: string;
  @Field(() => String) type: string;
  @Field(() => GraphQLJSON) data: unknown;
  @Field(() => String, { description: "`data` as JSON text." }) dataString: string;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@InputType("LogEventInput", { description: "The sender says what happened; the service says when." })
export class LogEventInput implements Partial<Record<keyof LogEventFields, unknown>> {
  @Field(() => String, { nullable: true, description: "For example dataSource.entry.create." }) type?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "An object." }) data?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) userId?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceId?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceEntryId?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) sessionId?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true }) appNotificationId?: unknown;
}

@ObjectType("MatchedEvent")
class MatchedEventType {
  @Field(() => Int) id: number;
  @Field(() => String) type: string;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceId: number | null;
  @Field(() => GraphQLSafeInt, { nullable: true }) dataSourceEntryId: number | null;
  @Field(() => GraphQLSafeInt, { nullable: true }) userId: number | null;
  @Field(() => DateTime) createdAt: string;
}

@ObjectType("Backtest")
export class BacktestType {
  @Field(() => Int, { description: "How many events were looked at: the last 1000 at the most." }) examined: number;
  @Field(() => Int) matched: number;
  @Field(() => [MatchedEventType], { description: "Most recent first." }) events: MatchedEventType[];
}

@InputType("AnalyticsEventInput", { description: "Specification, Analytics event payload." })
export class AnalyticsEventInput {
  @Field(() => GraphQLSafeInt, { nullable: true, description: "Unix time in milliseconds." }) createdAt?: unknown;
  @Field(() => String, { nullable: true, description: "analytics.pageView or analytics.event" }) type?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "An object." }) data?: unknown;
}

@InputType("ScriptErrorInput")
class ScriptErrorInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => String, { nullable: true }) message?: unknown;
  @Field(() => String, { nullable: true }) stack?: unknown;
}

@InputType("ClientRunInput", {
  description: "What a browser says of a run: with `error` it failed, without it completed.",
})
export class ClientRunInput {
  @Field(() => GraphQLJSON, { nullable: true, description: "An object; {} unless given." }) payload?: unknown;
  @Field(() => Float, { nullable: true, description: "Milliseconds." }) duration?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "What execute returned." }) result?: unknown;
  @Field(() => ScriptErrorInput, { nullable: true }) error?: unknown;
}
