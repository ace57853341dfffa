/**
 * Chart of runs over time: the upper part shows the numbers of runs and failures, the lower part their durations. A table below contains
 * the same values.
 */
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { formatCount, formatDuration, formatExactTime } from "../shared/format.js";
import type { RunStatistics } from "../shared/model.js";
import { useIsNarrowWindow } from "../shared/use-media-query.js";

const HOUR_SECONDS = 3_600;
const CHART_HEIGHT_PIXELS = 120;
const PHONE_CHART_HEIGHT_PIXELS = 100;

const darkModeQuery = matchMedia("(prefers-color-scheme: dark)");
/**
 * Colors of the chart for light and dark mode, the same as in tokens.css. Style sheets cannot set them, because uPlot draws on a canvas.
 */
const CHART_COLORS = {
  light: { good: "#1b7340", bad: "#b3261e", soft: "#5a636f", line: "#e3e6ea", accent: "#0b6b62", warn: "#855000" },
  dark: { good: "#6fd694", bad: "#ff8a80", soft: "#9ba5b3", line: "#262c34", accent: "#4fd1c0", warn: "#ffc163" },
};

type StatisticsRow = RunStatistics["periods"][number];
type ChartColumn = (number | null)[];

/**
 * Returns the data columns for uPlot: first the times, then the statistics. Each column has one value for each hour or day of the time
 * range. For an hour or day without runs, the value is 0 or null.
 */
function createChartColumns({
  by,
  from,
  to,
  periods,
}: RunStatistics): [number[], ChartColumn, ChartColumn, ChartColumn, ChartColumn, ChartColumn] {
  const periodsByTime = new Map(periods.map((period) => [Date.parse(period.start) / 1000, period]));
  const step = by === "hour" ? HOUR_SECONDS : 24 * HOUR_SECONDS;
  const firstTime = [...periodsByTime.keys()][0] ?? Math.floor(Date.parse(from) / 1000 / step) * step;
  const times = new Set<number>(periodsByTime.keys());
  // The service returns only the hours or days with runs. The loops add the others in equal steps. After a clock change,
  // an added time may be an hour away from a returned time, so `isNearPeriod` excludes the added time.
  for (let time = firstTime; time >= Date.parse(from) / 1000 - step; time -= step) times.add(time);
  for (let time = firstTime; time <= Date.parse(to) / 1000; time += step) times.add(time);
  const isNearPeriod = (time: number) =>
    [...periodsByTime.keys()].some((periodTime) => periodTime !== time && Math.abs(periodTime - time) < step / 2);
  const shownTimes = [...times].filter((time) => periodsByTime.has(time) || !isNearPeriod(time)).sort((a, b) => a - b);
  const createColumn = (
    getValue: (row: StatisticsRow) => number | null,
    valueWithoutRuns: number | null,
  ): ChartColumn =>
    shownTimes.map((time) => (periodsByTime.has(time) ? getValue(periodsByTime.get(time)!) : valueWithoutRuns));
  return [
    shownTimes,
    createColumn(({ runs }) => runs, 0),
    createColumn(({ failed }) => failed, 0),
    createColumn(({ skipped }) => skipped || null, null),
    createColumn(({ p50 }) => p50, null),
    createColumn(({ p95 }) => p95, null),
  ];
}

const drawBars = uPlot.paths.bars!({ size: [0.8, 24], align: 1 });

const hourFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayFormat = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

function formatAxisTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  return (date.getHours() + date.getMinutes() === 0 ? dayFormat : hourFormat).format(date);
}

function createAxes(formatValue: (ms: number) => string): uPlot.Axis[] {
  const { soft, line } = CHART_COLORS[darkModeQuery.matches ? "dark" : "light"];
  const axisDefaults = {
    stroke: soft,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: "11px sans-serif",
  };
  return [
    { ...axisDefaults, size: 32, space: 64, values: (_, ticks) => ticks.map(formatAxisTime) },
    { ...axisDefaults, size: 60, space: 28, values: (_, ticks) => ticks.map(formatValue) },
  ];
}

function drawCharts(statistics: RunStatistics, counts: HTMLElement, durations: HTMLElement): uPlot[] {
  const { good, bad, warn, accent, soft } = CHART_COLORS[darkModeQuery.matches ? "dark" : "light"];
  const [shownTimes, runs, failed, skipped, p50, p95] = createChartColumns(statistics);
  const step = statistics.by === "hour" ? HOUR_SECONDS : 24 * HOUR_SECONDS;
  const height = innerWidth < 700 ? PHONE_CHART_HEIGHT_PIXELS : CHART_HEIGHT_PIXELS;
  const chartDefaults = {
    width: Math.max(200, counts.clientWidth),
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, sync: { key: "runs" } },
    scales: {
      // uPlot draws a bar to the right of its time, so the axis needs space after the last bar.
      x: { time: true, range: (_: uPlot, low: number, high: number): [number, number] => [low, high + step] },
      y: { range: (_: uPlot, _low: number, high: number): [number, number] => [0, Math.max(1, high * 1.1)] },
    },
  };
  const createBarSeries = (stroke: string, fill: string): uPlot.Series => ({
    stroke,
    fill,
    width: 0,
    paths: drawBars,
    points: { show: false },
  });
  const point = { show: true, size: 4 };
  return [
    new uPlot(
      {
        ...chartDefaults,
        axes: createAxes((count) => (Number.isInteger(count) ? String(count) : "")),
        series: [
          {},
          createBarSeries(good, good),
          createBarSeries(bad, bad),
          { stroke: warn, width: 0, points: { show: true, size: 7, fill: warn } },
        ],
      },
      [shownTimes, runs, failed, skipped],
      counts,
    ),
    new uPlot(
      {
        ...chartDefaults,
        axes: createAxes(formatDuration),
        series: [{}, { stroke: soft, width: 1.5, points: point }, { stroke: accent, width: 1.5, points: point }],
      },
      [shownTimes, p50, p95],
      durations,
    ),
  ];
}

const formatDurationCell = (ms: number | null) => (ms === null ? "" : formatDuration(ms));

function StatisticsTable({ statistics: { by, periods } }: { statistics: RunStatistics }) {
  const timeFormat = new Intl.DateTimeFormat(undefined, {
    dateStyle: "medium",
    ...(by === "hour" && { timeStyle: "short", hourCycle: "h23" }),
  });
  return (
    <details className="runs-figures">
      <summary>The figures</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard */}
      <section className="figures-box" tabIndex={0} aria-label="Runs by hour or day">
        <table>
          <thead>
            <tr>
              {[by, "runs", "failed", "cancelled", "skipped", "p50", "p95"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {periods.toReversed().map(({ start, runs, failed, cancelled, skipped, p50, p95 }) => (
              <tr key={start}>
                <th scope="row">{timeFormat.format(new Date(start))}</th>
                {[runs, failed, cancelled, skipped, formatDurationCell(p50), formatDurationCell(p95)].map(
                  (value, columnIndex) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: the columns of the table never change their order
                    <td key={columnIndex}>{value}</td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}

function describeStatistics({ periods }: RunStatistics): string {
  const sumCounts = (getCount: (row: StatisticsRow) => number) => periods.reduce((sum, row) => sum + getCount(row), 0);
  const [runs, failed, skipped] = [
    sumCounts((row) => row.runs),
    sumCounts((row) => row.failed),
    sumCounts((row) => row.skipped),
  ];
  const skippedText = skipped === 0 ? "" : `, ${formatCount(skipped, "scheduled run", "scheduled runs")} skipped`;
  return `${runs} ${runs === 1 ? "run" : "runs"}, ${failed} failed${skippedText}`;
}

export function RunsChart({ statistics, label }: { statistics: RunStatistics; label: string }) {
  const isNarrow = useIsNarrowWindow();
  const counts = useRef<HTMLDivElement>(null);
  const durations = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [countsElement, durationsElement] = [counts.current, durations.current];
    if (!countsElement || !durationsElement) return;
    let plots = drawCharts(statistics, countsElement, durationsElement);
    const redraw = () => {
      for (const plot of plots) plot.destroy();
      plots = drawCharts(statistics, countsElement, durationsElement);
    };
    const resizeObserver = new ResizeObserver(() => {
      for (const plot of plots) plot.setSize({ width: Math.max(200, countsElement.clientWidth), height: plot.height });
    });
    resizeObserver.observe(countsElement);
    darkModeQuery.addEventListener("change", redraw);
    return () => {
      resizeObserver.disconnect();
      darkModeQuery.removeEventListener("change", redraw);
      for (const plot of plots) plot.destroy();
    };
  }, [statistics]);
  const { countedFrom } = statistics;
  return (
    <figure className="runs-chart" aria-label={`${label}: ${describeStatistics(statistics)}`}>
      <figcaption className="row">
        <span>{describeStatistics(statistics)}</span>
        <span className="hint">{label}</span>
        <span className="hint legend">
          <span className="key runs">runs</span> <span className="key failed">failed</span>{" "}
          <span className="key skipped">skipped</span> <span className="key p50">p50</span>{" "}
          <span className="key p95">p95</span>
        </span>
        {countedFrom !== null && (
          <span className="hint">partial: runs before {formatExactTime(countedFrom)} are not counted</span>
        )}
      </figcaption>
      {/* On a phone, the charts are collapsed at first. Otherwise the list of runs would be below the visible area. */}
      <details className="charts-box" open={!isNarrow}>
        <summary>Charts</summary>
        <div className="charts" aria-hidden="true">
          <div ref={counts} />
          <div ref={durations} />
        </div>
        <StatisticsTable statistics={statistics} />
      </details>
    </figure>
  );
}
