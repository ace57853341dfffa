/** The chart of runs when one is first shown: the library that draws it is a file of its own. */
import { type ComponentProps, lazy, Suspense, useEffect, useState } from "react";
import type { Tail } from "../actions/use-actions.js";
import { CountRuns } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { RunStatistics } from "../shared/model.js";
import { RANGES, type Range } from "./runs-query.js";

const LazyChart = lazy(async () => ({ default: (await import("./runs-chart.js")).RunsChart }));

const LOADING = <p className="hint runs-chart loading">Loading the chart…</p>;

const Chart = (props: ComponentProps<typeof LazyChart>) => (
  <Suspense fallback={LOADING}>
    <LazyChart {...props} />
  </Suspense>
);

/** Interval in which the chart is drawn again at most once. */
const DRAW_AGAIN_MS = 10_000;
const SHOWN_UNLESS_CHOSEN: Range = "24h";

interface RunsOverTimeProps {
  api: Api;
  appId: number;
  actionId: number | null;
  range: Range | null;
  tail: Tail;
}

export function RunsOverTime({ api, appId, actionId, range, tail: { onEntry } }: RunsOverTimeProps) {
  const [statistics, setStatistics] = useState<RunStatistics | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const { label, ms, by } = RANGES[range ?? SHOWN_UNLESS_CHOSEN];
  useEffect(() => {
    let isOver = false;
    let due: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      const from = new Date(Date.now() - ms).toISOString();
      const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
      try {
        const answer = await api.ask(CountRuns, { appId, actionId, from, by, timezone });
        if (isOver) return;
        setStatistics(answer.statistics);
        setFault(null);
      } catch (error) {
        if (!isOver) setFault(asApiError(error).message);
      }
    };
    void read();
    const end = onEntry(() => {
      due ??= setTimeout(() => {
        due = undefined;
        void read();
      }, DRAW_AGAIN_MS);
    });
    return () => {
      isOver = true;
      clearTimeout(due);
      end();
    };
  }, [api, appId, actionId, ms, by, onEntry]);
  if (fault !== null) {
    return (
      <p className="fault" role="alert">
        {fault}
      </p>
    );
  }
  return statistics ? <Chart statistics={statistics} label={`${label}, by the ${by}`} /> : LOADING;
}
