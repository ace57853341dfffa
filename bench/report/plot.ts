/** Draws the growth of a figure as SVG, readable on light and on dark. */

export interface Line {
  name: string;
  points: { x: number; y: number }[];
  /** The baseline, drawn dashed. */
  isFloor?: boolean;
}

export interface Plot {
  title: string;
  xName: string;
  unit: string;
  lines: Line[];
}

const [WIDTH, HEIGHT] = [640, 360];
/** Margin above for three lines of text. */
const AREA = { left: 64, right: 16, top: 108, bottom: 48 };
const STEPS = 4;
const [LEGEND, LEGEND_LINE] = [44, 20];

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #4b535d; } .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: #8b949e; stroke-opacity: .35; } polyline { stroke-width: 2.5; }
  .own0 { stroke: #1f6feb; fill: #1f6feb; } .own1 { stroke: #1a7f37; fill: #1a7f37; }
  .floor { stroke: #bc6c00; fill: #bc6c00; } polyline.floor, line.floor { stroke-dasharray: 6 5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b7bdc8; } .own0 { stroke: #58a6ff; fill: #58a6ff; } .own1 { stroke: #56d364; fill: #56d364; }
    .floor { stroke: #e3a04f; fill: #e3a04f; }
  }`;

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const number = (value: number) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

/** The next higher value of 1, 2, 5, 10, …: the end of an axis is a round number. */
function roundedUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

/** Sizes are on a logarithmic axis. */
function scales(lines: readonly Line[]): { x(value: number): number; y(value: number): number; top: number } {
  const all = lines.flatMap(({ points }) => points);
  const [from, to] = [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x }) => x))];
  const top = roundedUp(Math.max(...all.map(({ y }) => y)));
  const [width, height] = [WIDTH - AREA.left - AREA.right, HEIGHT - AREA.top - AREA.bottom];
  return {
    x: (value) => AREA.left + 24 + ((width - 48) * Math.log(value / from)) / Math.log(to / from),
    y: (value) => AREA.top + height * (1 - value / top),
    top,
  };
}

export function svgOf({ title, xName, unit, lines }: Plot): string {
  const { x, y, top } = scales(lines);
  const at = (value: number) => value.toFixed(1);
  const text = (left: number, down: number, words: string, more = "") =>
    `<text x="${at(left)}" y="${at(down)}"${more}>${escaped(words)}</text>`;
  const grid = Array.from({ length: STEPS + 1 }, (_, step) => {
    const value = (top * step) / STEPS;
    const line = `<line class="grid" x1="${AREA.left}" x2="${WIDTH - AREA.right}" y1="${at(y(value))}" y2="${at(y(value))}"/>`;
    return line + text(AREA.left - 8, y(value) + 4, number(value), ' text-anchor="end"');
  });
  const sizes = [...new Set(lines.flatMap(({ points }) => points.map((point) => point.x)))];
  const marks = sizes.map((size) => text(x(size), HEIGHT - AREA.bottom + 20, number(size), ' text-anchor="middle"'));
  const kinds = lines.map(({ isFloor }, index) => (isFloor ? "floor" : `own${index}`));
  const drawn = lines.map(({ points }, index) => {
    const way = points.map((point) => `${at(x(point.x))},${at(y(point.y))}`).join(" ");
    const dots = points.map(
      (point) => `<circle class="${kinds[index]}" cx="${at(x(point.x))}" cy="${at(y(point.y))}" r="4"/>`,
    );
    return `<polyline style="fill:none" class="${kinds[index]}" points="${way}"/>${dots.join("")}`;
  });
  const legend = lines.map(({ name }, index) => {
    const down = LEGEND + index * LEGEND_LINE;
    const line = `<line class="${kinds[index]}" stroke-width="2.5" x1="${AREA.left}" x2="${AREA.left + 24}" y1="${down}" y2="${down}"/>`;
    return line + text(AREA.left + 32, down + 4, name);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(title)}">
<style>${STYLE}
</style>
${text(AREA.left, 22, `${title}, ${unit}`, ' class="title"')}
${[...legend, ...grid, ...marks, ...drawn].join("\n")}
${text(WIDTH / 2, HEIGHT - 8, xName, ' text-anchor="middle"')}
</svg>
`;
}
