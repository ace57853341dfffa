/** GraphQL types of an app's log events, and of the events that browsers report. Contains only declarations. */
import { GraphQLJSON, GraphQLSafeInt } from "graphql-scalars";
import { Field, Float, InputType, Int, ObjectType } from "type-graphql";
import type { ParsedLogEvent as LogEventFields } from "../../rules/log-event-input.js";
import { DateTime } from "./leaf-types.js";

@ObjectType("LogEvent", { description: "Stored log event of an app." })
export class LogEventType {
  @Field(() => Int, { description: "ID of the event." }) id: number;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the person who caused the event; null if no person did.",
  })
  userId: number | null;
  @Field(() => Int, { description: "ID of the app." }) appId: number;
  @Field(() => Int, { description: "ID of the organization that owns the app." }) organizationId: number;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source that the event is about; null if there is none.",
  })
  dataSourceId: number | null;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source entry that the event is about; null if there is none.",
  })
  dataSourceEntryId: number | null;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the notification that the event is about; null if there is none.",
  })
  appNotificationId: number | null;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the session in which the event occurred; null if there is none.",
  })
  sessionId: number | null;
  @Field(() => String, { description: "Random ID that the service gave to the event when it stored the event." })
  requestId: string;
  @Field(() => String, { description: "Type of the event, for example dataSource.entry.create." }) type: string;
  @Field(() => GraphQLJSON, { description: "Details of the event, an object." }) data: unknown;
  @Field(() => String, { description: "`data` as JSON text." }) dataString: string;
  @Field(() => DateTime, { description: "Time when the service stored the event." }) createdAt: string;
  @Field(() => DateTime, { description: "Time of the last change." }) updatedAt: string;
}

@InputType("LogEventInput", { description: "Log event to store; the service sets its time." })
export class LogEventInput implements Partial<Record<keyof LogEventFields, unknown>> {
  @Field(() => String, {
    nullable: true,
    description: "Type of the event, for example dataSource.entry.create; required, and must not start with app.task.",
  })
  type?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Details of the event, an object; {} by default." })
  data?: unknown;
  @Field(() => GraphQLSafeInt, { nullable: true, description: "ID of the person who caused the event; null for none." })
  userId?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source that the event is about; null for none.",
  })
  dataSourceId?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source entry that the event is about; null for none.",
  })
  dataSourceEntryId?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the session in which the event occurred; null for none.",
  })
  sessionId?: unknown;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the notification that the event is about; null for none.",
  })
  appNotificationId?: unknown;
}

@ObjectType("MatchedEvent", { description: "Past log event that a filter matches." })
class MatchedEventType {
  @Field(() => Int, { description: "ID of the event." }) id: number;
  @Field(() => String, { description: "Type of the event, for example dataSource.entry.create." }) type: string;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source that the event is about; null if there is none.",
  })
  dataSourceId: number | null;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the data source entry that the event is about; null if there is none.",
  })
  dataSourceEntryId: number | null;
  @Field(() => GraphQLSafeInt, {
    nullable: true,
    description: "ID of the person who caused the event; null if no person did.",
  })
  userId: number | null;
  @Field(() => DateTime, { description: "Time when the service stored the event." }) createdAt: string;
}

@ObjectType("Backtest", { description: "Result of a test of a filter against past log events." })
export class EventFilterBacktestType {
  @Field(() => Int, { description: "Number of examined events, at most the last 1000." }) examined: number;
  @Field(() => Int, { description: "Number of events that the filter matches." }) matched: number;
  @Field(() => [MatchedEventType], { description: "Matching events, newest first." }) events: MatchedEventType[];
}

@InputType("AnalyticsEventInput", { description: "Analytics event from a page." })
export class AnalyticsEventInput {
  @Field(() => GraphQLSafeInt, { nullable: true, description: "Time of the event in Unix milliseconds." })
  createdAt?: unknown;
  @Field(() => String, { nullable: true, description: "Type of the event: analytics.pageView or analytics.event." })
  type?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Details of the event, an object." }) data?: unknown;
}

@InputType("ScriptErrorInput", { description: "Error that an action threw in a browser." })
class ScriptErrorInput {
  @Field(() => String, { nullable: true, description: "Name of the error, for example TypeError." }) name?: unknown;
  @Field(() => String, { nullable: true, description: "Message of the error." }) message?: unknown;
  @Field(() => String, { nullable: true, description: "Stack trace of the error." }) stack?: unknown;
}

@InputType("ClientRunInput", {
  description: "Report of a run in a browser. The run failed if `error` is present and completed otherwise.",
})
export class ClientRunInput {
  @Field(() => GraphQLJSON, { nullable: true, description: "Payload of the run, an object; {} by default." })
  payload?: unknown;
  @Field(() => Float, { nullable: true, description: "Duration of the run in milliseconds." }) duration?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Value that execute returned." }) result?: unknown;
  @Field(() => ScriptErrorInput, {
    nullable: true,
    description: "Error that execute threw; absent or null if the run completed.",
  })
  error?: unknown;
}
