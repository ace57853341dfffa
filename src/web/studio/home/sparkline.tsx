/** Small line chart with one value per hour. The text beside it states the total. */

interface SparklineProps {
  /** Oldest first. */
  values: readonly number[];
  tone: "accent" | "bad" | "soft";
}

const WIDTH = 240;
const HEIGHT = 40;
/** Padding at the edges for the width of the line. */
const EDGE = 2;

export function Sparkline({ values, tone }: SparklineProps) {
  const top = Math.max(1, ...values);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, index) => {
    const y = HEIGHT - EDGE - (value / top) * (HEIGHT - 2 * EDGE);
    return `${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg
      className={`sparkline ${tone}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
