/**
 * Filters of the list of runs. Defines their parameters in the URL, such as `#/1/runs?state=failed&action=12`, and converts them to the
 * service's input.
 */
import type { Copy, FindRunsQueryVariables, RunState, TriggerType } from "../documents.js";
import { parseId } from "../shell/studio-route.js";

/** Query parameters of the URL, one for each filter. A filter that is not set is missing. */
export interface RunsUrlQuery {
  search?: string;
  action?: string;
  state?: string;
  trigger?: string;
  copy?: string;
  version?: string;
  person?: string;
  /** Time range, as a key of TIME_RANGES. */
  range?: string;
}

export const RUN_STATES: readonly RunState[] = ["queued", "running", "completed", "failed", "skipped", "cancelled"];
/** Kinds of triggers. The original specification defines all except `http`, which this service adds. */
export const TRIGGER_TYPES: readonly TriggerType[] = ["manual", "schedule", "log", "analytics", "http"];
export const VERSION_KINDS: readonly Copy[] = ["master", "production"];

const HOUR_MS = 60 * 60 * 1000;

/** Time ranges that a person can choose, each up to now. `ms` is the length, and `by` the period (hour or day) of one bar in the chart. */
export const TIME_RANGES = {
  "1h": { label: "the last hour", ms: HOUR_MS, by: "hour" },
  "24h": { label: "the last 24 hours", ms: 24 * HOUR_MS, by: "hour" },
  "7d": { label: "the last 7 days", ms: 7 * 24 * HOUR_MS, by: "hour" },
  "30d": { label: "the last 30 days", ms: 30 * 24 * HOUR_MS, by: "day" },
  "90d": { label: "the last 90 days", ms: 90 * 24 * HOUR_MS, by: "day" },
} as const;
export type TimeRange = keyof typeof TIME_RANGES;

export const parseTimeRange = (query: RunsUrlQuery): TimeRange | null =>
  query.range !== undefined && Object.hasOwn(TIME_RANGES, query.range) ? (query.range as TimeRange) : null;

const parseOption = <T extends string>(text: string | undefined, all: readonly T[]): T | null =>
  all.find((word) => word === text) ?? null;

/**
 * Converts the filters to the service's input.
 * @param now end of the time range; pass the same time to each call, so that the range does not move
 */
export function toRunsFilter(
  query: RunsUrlQuery,
  now: number,
): Omit<FindRunsQueryVariables, "appId" | "before" | "limit"> {
  const range = parseTimeRange(query);
  const search = query.search?.trim() ?? "";
  return {
    search: search === "" ? null : search,
    actionId: parseId(query.action),
    state: parseOption(query.state, RUN_STATES),
    trigger: parseOption(query.trigger, TRIGGER_TYPES),
    copy: parseOption(query.copy, VERSION_KINDS),
    versionId: parseId(query.version),
    personId: parseId(query.person),
    from: range === null ? null : new Date(now - TIME_RANGES[range].ms).toISOString(),
  };
}
