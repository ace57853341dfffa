/**
 * Command `npm run bench [-- figure…] [-- --rounds 1] [-- --json]`: prints each figure with its baseline from the same benchmark. Most
 * values are medians of three rounds. `--into FILE` stores the figures in a file. `--next` measures the first figure that the file lacks.
 * `--report` generates BENCHMARKS.md from the file.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { FIGURE_LOADERS } from "./figures.js";
import type { FigureRow } from "./harness/figure.js";
import { writeReport } from "./report/page.js";
import { DEFAULT_RESULTS_FILE, readResults, storeResult } from "./report/results.js";

const formatNumber = (value: number): string => value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0);

function formatRow({ name, value, unit, floor }: FigureRow): string {
  const ownPart = `  ${name.padEnd(52)} ${formatNumber(value).padStart(9)} ${unit.padEnd(4)}`;
  if (!floor) return ownPart.trimEnd();
  const difference = unit === "ms" ? `, ${formatNumber(value - floor.value)} ms more` : "";
  return `${ownPart} ${`${(value / floor.value).toFixed(2)}x`.padStart(8)} of ${formatNumber(floor.value)} ${unit}, ${floor.name}${difference}`;
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "3" },
    into: { type: "string" },
    next: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
  },
});
const resultsFile = options.into ?? (options.next ? DEFAULT_RESULTS_FILE : null);
if (options.report) {
  writeReport(options.into ?? DEFAULT_RESULTS_FILE, Object.keys(FIGURE_LOADERS));
  process.exit(0);
}
const missingFigures = options.next
  ? Object.keys(FIGURE_LOADERS).filter((name) => !(name in readResults(resultsFile!)))
  : [];
if (options.next && missingFigures.length === 0) {
  process.stdout.write(`${resultsFile} has all figures; --report generates BENCHMARKS.md from it\n`);
  process.exit(0);
}
const requestedFigures = options.next ? missingFigures.slice(0, 1) : positionals;
const unknownFigures = requestedFigures.filter((name) => !(name in FIGURE_LOADERS));
if (unknownFigures.length > 0) {
  process.stderr.write(
    `unknown figure (got ${unknownFigures.join(", ")}); the figures are ${Object.keys(FIGURE_LOADERS).join(", ")}\n`,
  );
  process.exit(1);
}
const rounds = Number(options.rounds);
if (!(Number.isInteger(rounds) && rounds > 0)) {
  process.stderr.write(`--rounds must be a whole number above 0 (got ${options.rounds})\n`);
  process.exit(1);
}

/** Prints a text for people. It goes to standard error if standard output contains JSON. */
const printText = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`);
const machine = { node: process.versions.node, cores: availableParallelism(), rounds };
const measuredRows: object[] = [];
printText(`Node ${machine.node}, ${machine.cores} cores`);
for (const figure of requestedFigures.length > 0 ? requestedFigures : Object.keys(FIGURE_LOADERS)) {
  const { title, run } = await FIGURE_LOADERS[figure]!();
  printText(`\n${figure}: ${title}`);
  const loadAverage = loadavg()[0]!;
  const rows = await run(rounds);
  const day = new Date().toISOString().slice(0, 10);
  if (resultsFile) storeResult(resultsFile, figure, { title, day, ...machine, load: loadAverage, rows });
  for (const row of rows) {
    printText(formatRow(row));
    measuredRows.push({ figure, ...row, ...(row.floor && { ratio: row.value / row.floor.value }) });
  }
}
if (options.next) printText(`\n${missingFigures.length - 1} more`);
if (options.json) process.stdout.write(`${JSON.stringify({ ...machine, figures: measuredRows }, null, 2)}\n`);
