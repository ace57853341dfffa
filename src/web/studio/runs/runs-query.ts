/** Filters of the list of runs in the URL, such as `#/1/runs?state=failed&action=12`, and their conversion to the service's input. */
import type { Copy, FindRunsQueryVariables, RunState, TriggerType } from "../documents.js";
import { idOf } from "../shell/place.js";

/** Keys of the URL's query with their values. Empty values are left out. */
export interface RunsQuery {
  search?: string;
  action?: string;
  state?: string;
  trigger?: string;
  copy?: string;
  version?: string;
  person?: string;
  /** Name of a range in RANGES. */
  range?: string;
}

export const RUN_STATES: readonly RunState[] = ["queued", "running", "completed", "failed", "skipped", "cancelled"];
/** Trigger kinds of the original specification, and `http`, which this service adds. */
export const TRIGGER_TYPES: readonly TriggerType[] = ["manual", "schedule", "log", "analytics", "http"];
export const VERSION_KINDS: readonly Copy[] = ["master", "production"];

const HOUR_MS = 60 * 60 * 1000;

/** Selectable ranges: how far back they reach, and the period that the chart counts by. */
export const RANGES = {
  "1h": { label: "the last hour", ms: HOUR_MS, by: "hour" },
  "24h": { label: "the last 24 hours", ms: 24 * HOUR_MS, by: "hour" },
  "7d": { label: "the last 7 days", ms: 7 * 24 * HOUR_MS, by: "hour" },
  "30d": { label: "the last 30 days", ms: 30 * 24 * HOUR_MS, by: "day" },
  "90d": { label: "the last 90 days", ms: 90 * 24 * HOUR_MS, by: "day" },
} as const;
export type Range = keyof typeof RANGES;

export const timeRangeOf = (query: RunsQuery): Range | null =>
  query.range !== undefined && Object.hasOwn(RANGES, query.range) ? (query.range as Range) : null;

const parseOption = <T extends string>(text: string | undefined, all: readonly T[]): T | null =>
  all.find((word) => word === text) ?? null;

/** Returns the input for the service. The start of the range is computed once, so that it does not move. */
export function toRunsFilter(
  query: RunsQuery,
  now: number,
): Omit<FindRunsQueryVariables, "appId" | "before" | "limit"> {
  const range = timeRangeOf(query);
  const search = query.search?.trim() ?? "";
  return {
    search: search === "" ? null : search,
    actionId: idOf(query.action),
    state: parseOption(query.state, RUN_STATES),
    trigger: parseOption(query.trigger, TRIGGER_TYPES),
    copy: parseOption(query.copy, VERSION_KINDS),
    versionId: idOf(query.version),
    personId: idOf(query.person),
    from: range === null ? null : new Date(now - RANGES[range].ms).toISOString(),
  };
}

/** True if the chart counts the same runs as the list. The service counts by action and time only. */
export const isChartComplete = (query: RunsQuery): boolean =>
  Object.keys(query).every((key) => key === "action" || key === "range");
