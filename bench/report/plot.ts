/** Draws the lines of a figure as SVG that is readable on a light and on a dark background. */

export interface PlotLine {
  name: string;
  points: { x: number; y: number }[];
  /** True for the baseline, whose line is dashed. */
  isFloor?: boolean;
}

export interface PlotOptions {
  title: string;
  xName: string;
  unit: string;
  lines: PlotLine[];
}

const [WIDTH, HEIGHT] = [640, 360];
/** Margins of the drawing. The top margin holds three lines of text. */
const PLOT_MARGINS = { left: 64, right: 16, top: 108, bottom: 48 };
const GRID_STEPS = 4;
const [LEGEND_TOP, LEGEND_LINE] = [44, 20];

const SVG_STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #4b535d; } .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: #8b949e; stroke-opacity: .35; } polyline { stroke-width: 2.5; }
  .own0 { stroke: #1f6feb; fill: #1f6feb; } .own1 { stroke: #1a7f37; fill: #1a7f37; }
  .floor { stroke: #bc6c00; fill: #bc6c00; } polyline.floor, line.floor { stroke-dasharray: 6 5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b7bdc8; } .own0 { stroke: #58a6ff; fill: #58a6ff; } .own1 { stroke: #56d364; fill: #56d364; }
    .floor { stroke: #e3a04f; fill: #e3a04f; }
  }`;

const escapeXml = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const formatNumber = (value: number) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

/** Rounds up to the next number of the series 1, 2, 5, 10, 20, …, which becomes the end of an axis. */
function roundUpToAxisEnd(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

/** Returns functions that convert values into coordinates. The axis of sizes is logarithmic. */
function createScales(lines: readonly PlotLine[]): { x(value: number): number; y(value: number): number; top: number } {
  const all = lines.flatMap(({ points }) => points);
  const [from, to] = [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x }) => x))];
  const top = roundUpToAxisEnd(Math.max(...all.map(({ y }) => y)));
  const [width, height] = [
    WIDTH - PLOT_MARGINS.left - PLOT_MARGINS.right,
    HEIGHT - PLOT_MARGINS.top - PLOT_MARGINS.bottom,
  ];
  return {
    x: (value) => PLOT_MARGINS.left + 24 + ((width - 48) * Math.log(value / from)) / Math.log(to / from),
    y: (value) => PLOT_MARGINS.top + height * (1 - value / top),
    top,
  };
}

export function drawSvg({ title, xName, unit, lines }: PlotOptions): string {
  const { x, y, top } = createScales(lines);
  const formatCoordinate = (value: number) => value.toFixed(1);
  const drawText = (left: number, top: number, words: string, more = "") =>
    `<text x="${formatCoordinate(left)}" y="${formatCoordinate(top)}"${more}>${escapeXml(words)}</text>`;
  const grid = Array.from({ length: GRID_STEPS + 1 }, (_, step) => {
    const value = (top * step) / GRID_STEPS;
    const line = `<line class="grid" x1="${PLOT_MARGINS.left}" x2="${WIDTH - PLOT_MARGINS.right}" y1="${formatCoordinate(y(value))}" y2="${formatCoordinate(y(value))}"/>`;
    return line + drawText(PLOT_MARGINS.left - 8, y(value) + 4, formatNumber(value), ' text-anchor="end"');
  });
  const sizes = [...new Set(lines.flatMap(({ points }) => points.map((point) => point.x)))];
  const sizeLabels = sizes.map((size) =>
    drawText(x(size), HEIGHT - PLOT_MARGINS.bottom + 20, formatNumber(size), ' text-anchor="middle"'),
  );
  const lineClasses = lines.map(({ isFloor }, index) => (isFloor ? "floor" : `own${index}`));
  const lineElements = lines.map(({ points }, index) => {
    const pathPoints = points
      .map((point) => `${formatCoordinate(x(point.x))},${formatCoordinate(y(point.y))}`)
      .join(" ");
    const dots = points.map(
      (point) =>
        `<circle class="${lineClasses[index]}" cx="${formatCoordinate(x(point.x))}" cy="${formatCoordinate(y(point.y))}" r="4"/>`,
    );
    return `<polyline style="fill:none" class="${lineClasses[index]}" points="${pathPoints}"/>${dots.join("")}`;
  });
  const legend = lines.map(({ name }, index) => {
    const top = LEGEND_TOP + index * LEGEND_LINE;
    const line = `<line class="${lineClasses[index]}" stroke-width="2.5" x1="${PLOT_MARGINS.left}" x2="${PLOT_MARGINS.left + 24}" y1="${top}" y2="${top}"/>`;
    return line + drawText(PLOT_MARGINS.left + 32, top + 4, name);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeXml(title)}">
<style>${SVG_STYLE}
</style>
${drawText(PLOT_MARGINS.left, 22, `${title}, ${unit}`, ' class="title"')}
${[...legend, ...grid, ...sizeLabels, ...lineElements].join("\n")}
${drawText(WIDTH / 2, HEIGHT - 8, xName, ' text-anchor="middle"')}
</svg>
`;
}
