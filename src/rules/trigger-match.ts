/** Checks if an event matches the `where` of a trigger. Imports only types, because the browser executes this file too. */
import type { AnalyticsEventType, LogWhere } from "../data/action-types.js";

export interface FilterableLogEvent {
  type: string;
  dataSourceId?: number | null;
}

/** Filter of an analytics trigger. Browsers get it by GraphQL, where a missing field is null. */
export interface AnalyticsFilter {
  type: string | null;
  data?: unknown;
}

export interface FilterableAnalyticsEvent {
  type: string;
  data?: unknown;
}

export const ANALYTICS_EVENT_TYPES: readonly AnalyticsEventType[] = ["analytics.pageView", "analytics.event"];

/** Types of log events that the API specification defines (Events, Log events). Triggers can also name other types. */
export const LOG_EVENT_TYPES: readonly string[] = [
  "sms.2fa",
  "sms.communicate",
  "sms.dataSourceHook",
  "sms.validate",
  "email.communicate",
  "email.delivered",
  "email.delayed",
  "email.bounced",
  "email.complaint",
  "email.rejected",
  "email.dataSourceHook",
  "email.validate",
  "app.analytics.event",
  "app.analytics.pageView",
  "app.update",
  "app.view",
  "dataSource.entry.create",
  "dataSource.entry.update",
  "dataSource.entry.delete",
  "dataSource.event",
  "dataSource.import",
  "mediaFile.create",
  "session.locale.updated",
  "ai.completions",
  "ai.image",
  "ai.audio",
  "ai.embeddings",
];

/** True if the log event has the filter's type and, if set, its data source. Callers must pass only events of the action's app. */
export function matchesLogTrigger(where: LogWhere, entry: FilterableLogEvent): boolean {
  if (where.type !== entry.type) return false;
  return where.dataSourceId === undefined || where.dataSourceId === entry.dataSourceId;
}

/** True if the event has the filter's type and all fields of the filter's `data`. */
export function matchesAnalyticsTrigger(where: AnalyticsFilter, event: FilterableAnalyticsEvent): boolean {
  if (where.type !== event.type) return false;
  return (where.data ?? null) === null || containsFilter(event.data, where.data);
}

/**
 * True if the value has all fields of the filter. Objects may have more fields; arrays must have the same length; other values are equal.
 */
function containsFilter(value: unknown, filter: unknown): boolean {
  if (Array.isArray(filter)) {
    return (
      Array.isArray(value) &&
      value.length === filter.length &&
      filter.every((element, index) => containsFilter(value[index], element))
    );
  }
  if (!isObject(filter)) return value === filter;
  if (!isObject(value)) return false;
  return Object.keys(filter).every((key) => Object.hasOwn(value, key) && containsFilter(value[key], filter[key]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
