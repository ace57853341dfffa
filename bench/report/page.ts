/** Generates BENCHMARKS.md and its drawings from the stored figures. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Row } from "../harness/figure.js";
import { CAPACITY_PAGE, capacityPage } from "./capacity.js";
import { type Line, svgOf } from "./plot.js";
import { type Measured, type Results, readResults } from "./results.js";
import { ABOUT, BY_HAND, INTRODUCTION } from "./words.js";

const DRAWINGS = "docs/pictures/bench";
/** Minimum sizes for a drawing. */
const SIZES_MIN = 3;

const number = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 1_000 ? 1 : 0 });

const UNIT: Record<string, string> = { "/s": "a second", ms: "ms" };
const amount = (value: number, unit: string) => `${number(value)} ${UNIT[unit] ?? unit}`.trim();

function tableRow({ name, value, unit, floor }: Row): string {
  const beside = floor ? `${amount(floor.value, unit)}, ${floor.name}` : "";
  const ratio = floor ? (value / floor.value).toFixed(2) : "";
  return `| ${name} | ${amount(value, unit)} | ${beside} | ${ratio} |`;
}

/** The lines of a figure's drawing, its baseline last; null if it has too few sizes. */
function linesOf(rows: readonly Row[]): { lines: Line[]; of: string; unit: string } | null {
  const sized = rows.filter((row) => row.size);
  const byLine = Map.groupBy(sized, (row) => row.size!.line);
  const [first] = byLine.values();
  if (!first || first.length < SIZES_MIN) return null;
  const points = (of: readonly Row[], y: (row: Row) => number) =>
    of.map((row) => ({ x: row.size!.value, y: y(row) })).sort((a, b) => a.x - b.x);
  const lines = [...byLine].map(([name, of]) => ({ name, points: points(of, ({ value }) => value) }));
  const floors = first.every(({ floor }) => floor)
    ? [{ name: first[0]!.floor!.name, points: points(first, ({ floor }) => floor!.value), isFloor: true }]
    : [];
  return { lines: [...lines, ...floors], of: first[0]!.size!.of, unit: UNIT[first[0]!.unit] ?? first[0]!.unit };
}

function sectionOf(figure: string, { title, day, node, cores, rounds, rows }: Measured, hasDrawing: boolean): string {
  const conditions = `Measured ${day}, Node ${node}, ${cores} cores, ${rounds === 1 ? "one round" : `${rounds} rounds`}.`;
  const drawing = hasDrawing ? [`![${title}, and its floor](${DRAWINGS}/${figure}.svg)`, ""] : [];
  const table = ["| figure | here | floor | ratio |", "| --- | --- | --- | --- |", ...rows.map(tableRow)];
  const about = ABOUT[figure] ? [ABOUT[figure], ""] : [];
  return [`## ${figure}`, "", `${title}. ${conditions}`, "", ...about, ...drawing, ...table, ""].join("\n");
}

/** Every file of the report by its path from the root; `order` has the figures' names. */
export function reportOf(results: Results, order: readonly string[]): Record<string, string> {
  const files: Record<string, string> = {};
  const sections = order
    .filter((figure) => results[figure])
    .map((figure) => {
      const measured = results[figure]!;
      if (figure === "capacity") {
        files[CAPACITY_PAGE] = capacityPage(measured);
        return `## ${figure}\n\n${ABOUT[figure]}\n`;
      }
      const found = linesOf(measured.rows);
      if (found) {
        const { lines, of, unit } = found;
        files[`${DRAWINGS}/${figure}.svg`] = svgOf({ title: figure, xName: of, unit, lines });
      }
      return sectionOf(figure, measured, found !== null);
    });
  const missing = order.filter((figure) => !results[figure]);
  const rest = missing.length > 0 ? [`Not measured yet: ${missing.map((name) => `\`${name}\``).join(", ")}.\n`] : [];
  return { "BENCHMARKS.md": [INTRODUCTION, ...sections, ...rest, BY_HAND].join("\n"), ...files };
}

export function writeReport(file: string, order: readonly string[], root = "."): void {
  readFileSync(file);
  rmSync(join(root, DRAWINGS), { recursive: true, force: true });
  mkdirSync(join(root, DRAWINGS), { recursive: true });
  const files = reportOf(readResults(file), order);
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
  process.stdout.write(`${Object.keys(files).join("\n")}\n`);
}
