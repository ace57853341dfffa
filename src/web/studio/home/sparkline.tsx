/** Small line chart with one value per hour. The caller shows its main number, such as the total, as text above the chart. */

interface SparklineProps {
  /** Values of the chart, oldest first. */
  values: readonly number[];
  colorName: "accent" | "bad" | "soft";
}

const CHART_WIDTH = 240;
const CHART_HEIGHT = 40;
/** Padding at the edges of the chart, so that the width of the line is not cut off. */
const EDGE_PADDING = 2;

export function Sparkline({ values, colorName }: SparklineProps) {
  const top = Math.max(1, ...values);
  const step = CHART_WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, index) => {
    const y = CHART_HEIGHT - EDGE_PADDING - (value / top) * (CHART_HEIGHT - 2 * EDGE_PADDING);
    return `${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg
      className={`sparkline ${colorName}`}
      viewBox={`0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <polygon points={`0,${CHART_HEIGHT} ${points.join(" ")} ${CHART_WIDTH},${CHART_HEIGHT}`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
