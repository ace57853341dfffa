/** Filters of the list of runs in the URL, such as `#/1/runs?state=failed&action=12`, and their conversion to the service's input. */

import type { Copy, FindRunsQueryVariables, RunState, TriggerType } from "../documents.js";
import { idOf, oneOf, type SearchOf, textOf } from "../shell/search.js";

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

/** Search parameters of the page of runs. */
export const RUNS_SEARCH = {
  search: textOf,
  action: idOf,
  state: oneOf(RUN_STATES),
  trigger: oneOf(TRIGGER_TYPES),
  copy: oneOf(VERSION_KINDS),
  version: idOf,
  person: idOf,
  range: oneOf(Object.keys(RANGES) as Range[]),
};
export type RunsQuery = SearchOf<typeof RUNS_SEARCH>;

/** Returns the input for the service. The start of the range is computed once, so that it does not move. */
export function toRunsFilter(
  query: RunsQuery,
  now: number,
): Omit<FindRunsQueryVariables, "appId" | "before" | "limit"> {
  const search = query.search?.trim() ?? "";
  return {
    search: search === "" ? null : search,
    actionId: query.action ?? null,
    state: query.state ?? null,
    trigger: query.trigger ?? null,
    copy: query.copy ?? null,
    versionId: query.version ?? null,
    personId: query.person ?? null,
    from: query.range ? new Date(now - RANGES[query.range].ms).toISOString() : null,
  };
}

/** True if the chart counts the same runs as the list. The service counts by action and time only. */
export const isChartComplete = (query: RunsQuery): boolean =>
  Object.keys(query).every((key) => key === "action" || key === "range");
