/** Generates BENCHMARKS.md and its drawings from the stored results. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FigureRow } from "../harness/figure.js";
import { CAPACITY_PAGE, createCapacityPage } from "./capacity.js";
import { FIGURE_INTRODUCTIONS, MANUAL_MEASUREMENTS, PAGE_INTRODUCTION } from "./introductions.js";
import { drawSvg, type PlotLine } from "./plot.js";
import { readResults, type StoredFigure, type StoredFigures } from "./results.js";

const DRAWINGS_FOLDER = "docs/pictures/bench";
/** Minimum number of sizes for which a figure gets a drawing. */
const MIN_DRAWN_SIZES = 3;

const formatNumber = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 1_000 ? 1 : 0 });

const UNIT_WORDS: Record<string, string> = { "/s": "a second", ms: "ms" };
const formatAmount = (value: number, unit: string) => `${formatNumber(value)} ${UNIT_WORDS[unit] ?? unit}`.trim();

function formatTableRow({ name, value, unit, floor }: FigureRow): string {
  const beside = floor ? `${formatAmount(floor.value, unit)}, ${floor.name}` : "";
  const ratio = floor ? (value / floor.value).toFixed(2) : "";
  return `| ${name} | ${formatAmount(value, unit)} | ${beside} | ${ratio} |`;
}

/** Returns the lines of a figure's drawing, with the baseline last. Returns null if the figure has too few sizes. */
function createDrawingLines(rows: readonly FigureRow[]): { lines: PlotLine[]; of: string; unit: string } | null {
  const sized = rows.filter((row) => row.size);
  const byLine = Map.groupBy(sized, (row) => row.size!.line);
  const [first] = byLine.values();
  if (!first || first.length < MIN_DRAWN_SIZES) return null;
  const points = (of: readonly FigureRow[], y: (row: FigureRow) => number) =>
    of.map((row) => ({ x: row.size!.value, y: y(row) })).sort((a, b) => a.x - b.x);
  const lines = [...byLine].map(([name, of]) => ({ name, points: points(of, ({ value }) => value) }));
  const floors = first.every(({ floor }) => floor)
    ? [{ name: first[0]!.floor!.name, points: points(first, ({ floor }) => floor!.value), isFloor: true }]
    : [];
  return { lines: [...lines, ...floors], of: first[0]!.size!.of, unit: UNIT_WORDS[first[0]!.unit] ?? first[0]!.unit };
}

function createSection(
  figure: string,
  { title, day, node, cores, rounds, rows }: StoredFigure,
  hasDrawing: boolean,
): string {
  const conditions = `Measured ${day}, Node ${node}, ${cores} cores, ${rounds === 1 ? "one round" : `${rounds} rounds`}.`;
  const drawing = hasDrawing ? [`![${title}, and its baseline](${DRAWINGS_FOLDER}/${figure}.svg)`, ""] : [];
  const table = ["| figure | service | baseline | ratio |", "| --- | --- | --- | --- |", ...rows.map(formatTableRow)];
  const about = FIGURE_INTRODUCTIONS[figure] ? [FIGURE_INTRODUCTIONS[figure], ""] : [];
  return [`## ${figure}`, "", `${title}. ${conditions}`, "", ...about, ...drawing, ...table, ""].join("\n");
}

/** Returns the content of each file of the report, by its path in the repository. `order` lists the figures in the order of the report. */
export function createReport(results: StoredFigures, order: readonly string[]): Record<string, string> {
  const files: Record<string, string> = {};
  const sections = order
    .filter((figure) => results[figure])
    .map((figure) => {
      const measured = results[figure]!;
      if (figure === "capacity") {
        files[CAPACITY_PAGE] = createCapacityPage(measured);
        return `## ${figure}\n\n${FIGURE_INTRODUCTIONS[figure]}\n`;
      }
      const drawing = createDrawingLines(measured.rows);
      if (drawing) {
        const { lines, of, unit } = drawing;
        files[`${DRAWINGS_FOLDER}/${figure}.svg`] = drawSvg({ title: figure, xName: of, unit, lines });
      }
      return createSection(figure, measured, drawing !== null);
    });
  const missing = order.filter((figure) => !results[figure]);
  const missingSections =
    missing.length > 0 ? [`Not measured yet: ${missing.map((name) => `\`${name}\``).join(", ")}.\n`] : [];
  return {
    "BENCHMARKS.md": [PAGE_INTRODUCTION, ...sections, ...missingSections, MANUAL_MEASUREMENTS].join("\n"),
    ...files,
  };
}

export function writeReport(file: string, order: readonly string[], root = "."): void {
  readFileSync(file);
  rmSync(join(root, DRAWINGS_FOLDER), { recursive: true, force: true });
  mkdirSync(join(root, DRAWINGS_FOLDER), { recursive: true });
  const files = createReport(readResults(file), order);
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
  process.stdout.write(`${Object.keys(files).join("\n")}\n`);
}
