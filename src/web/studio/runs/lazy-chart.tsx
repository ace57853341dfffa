/** Loads the chart of runs when a page first shows it, because the chart's library is in a separate file. */
import { keepPreviousData } from "@tanstack/react-query";
import { type ComponentProps, lazy, Suspense } from "react";
import type { LogSubscription } from "../actions/use-actions.js";
import { CountRuns } from "../documents.js";
import type { Api } from "../shared/api.js";
import { useReloadAfter } from "../shared/use-reload-after.js";
import { useResource } from "../shared/use-resource.js";
import { RANGES, type Range } from "./runs-query.js";
import type { RunsFilter } from "./use-runs.js";

const LazyChart = lazy(async () => ({ default: (await import("./runs-chart.js")).RunsChart }));

const LOADING_TEXT = <p className="hint runs-chart loading">Loading the chart…</p>;

const Chart = (props: ComponentProps<typeof LazyChart>) => (
  <Suspense fallback={LOADING_TEXT}>
    <LazyChart {...props} />
  </Suspense>
);

/** Minimum time in which several ended runs cause only one update of the chart. */
const REDRAW_DELAY_MS = 10_000;
const DEFAULT_RANGE: Range = "24h";

interface RunsOverTimeProps {
  api: Api;
  appId: number;
  /** Filters of the list. The chart has its own start of the range, because it counts up to the present time. */
  filter: RunsFilter;
  range: Range | null;
  tail: LogSubscription;
  /** Error message that the list shows. The chart does not repeat it. */
  listFault: string | null;
}

export function RunsOverTime({ api, appId, filter, range, tail: { onEntry }, listFault }: RunsOverTimeProps) {
  const { label, ms, by } = RANGES[range ?? DEFAULT_RANGE];
  const { from: _, ...otherFilters } = filter;
  const { value, fault, reload } = useResource({
    queryKey: [CountRuns, appId, otherFilters, ms, by],
    async queryFn() {
      const from = new Date(Date.now() - ms).toISOString();
      const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
      return (await api.request(CountRuns, { ...otherFilters, appId, from, by, timezone })).statistics;
    },
    placeholderData: keepPreviousData,
  });
  useReloadAfter(onEntry, reload, REDRAW_DELAY_MS);
  if (fault !== null) {
    return fault === listFault ? null : (
      <p className="fault" role="alert">
        {fault}
      </p>
    );
  }
  return value ? <Chart statistics={value} label={`${label}, by the ${by}`} /> : LOADING_TEXT;
}
