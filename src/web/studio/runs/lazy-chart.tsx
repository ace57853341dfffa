/** Loads the chart of runs when a page first shows it, because the chart's library is in a separate file. */
import { keepPreviousData } from "@tanstack/react-query";
import type { LogSubscription } from "../actions/use-actions.js";
import { ReadRunStatistics } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import { useReloadAfterEvents } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";
import { createLazyPart } from "../shell/lazy-part.js";
import { TIME_RANGES, type TimeRange } from "./runs-query.js";
import type { RunsFilter } from "./use-runs.js";

const LOADING_TEXT = <p className="hint runs-chart loading">Loading the chart…</p>;
const Chart = createLazyPart(async () => (await import("./runs-chart.js")).RunsChart, LOADING_TEXT);

/** Delay from the end of a run to the next update of the chart, so that several ended runs cause only one update. */
const REDRAW_DELAY_MS = 10_000;
const DEFAULT_RANGE: TimeRange = "24h";

interface RunsOverTimeProps {
  api: ApiClient;
  appId: number;
  /**
   * Filters of the list of runs. The chart does not use their start time (`from`). At each read, it computes a start time from
   * `timeRange`, so that the chart always ends at the current time.
   */
  filter: RunsFilter;
  timeRange: TimeRange | null;
  logSubscription: LogSubscription;
  /** Error message that the list of runs already shows, so that the chart does not repeat it; null if there is none. */
  listFault: string | null;
}

export function LazyRunsChart({
  api,
  appId,
  filter,
  timeRange,
  logSubscription: { onEntry },
  listFault,
}: RunsOverTimeProps) {
  const { label, ms, by } = TIME_RANGES[timeRange ?? DEFAULT_RANGE];
  const { from: _, ...otherFilters } = filter;
  const { value, fault, reload } = useResource({
    queryKey: [ReadRunStatistics, appId, otherFilters, ms, by],
    async queryFn() {
      const from = new Date(Date.now() - ms).toISOString();
      const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
      return (await api.request(ReadRunStatistics, { ...otherFilters, appId, from, by, timezone })).statistics;
    },
    placeholderData: keepPreviousData,
  });
  useReloadAfterEvents(onEntry, reload, REDRAW_DELAY_MS);
  if (fault !== null) {
    return fault === listFault ? null : (
      <p className="fault" role="alert">
        {fault}
      </p>
    );
  }
  return value ? <Chart statistics={value} label={`${label}, by the ${by}`} /> : LOADING_TEXT;
}
