/**
 * `npm run bench [-- figure…] [-- --rounds 1] [-- --json]`: prints each figure with its baseline, both measured in this run; figures are
 * medians of three rounds. `--into FILE` stores them in a file, `--next` measures the first figure that the file lacks, and `--report`
 * generates BENCHMARKS.md from it.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { FIGURES } from "./figures.js";
import type { Row } from "./harness/figure.js";
import { writeReport } from "./report/page.js";
import { keepResult, RESULTS, readResults } from "./report/results.js";

const number = (value: number): string => value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0);

function line({ name, value, unit, floor }: Row): string {
  const own = `  ${name.padEnd(52)} ${number(value).padStart(9)} ${unit.padEnd(4)}`;
  if (!floor) return own.trimEnd();
  const more = unit === "ms" ? `, ${number(value - floor.value)} ms more` : "";
  return `${own} ${`${(value / floor.value).toFixed(2)}x`.padStart(8)} of ${number(floor.value)} ${unit}, ${floor.name}${more}`;
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
const into = options.into ?? (options.next ? RESULTS : null);
if (options.report) {
  writeReport(options.into ?? RESULTS, Object.keys(FIGURES));
  process.exit(0);
}
const missing = options.next ? Object.keys(FIGURES).filter((name) => !(name in readResults(into!))) : [];
if (options.next && missing.length === 0) {
  process.stdout.write(`${into} has all figures; --report makes BENCHMARKS.md of it\n`);
  process.exit(0);
}
const asked = options.next ? missing.slice(0, 1) : positionals;
const unknown = asked.filter((name) => !(name in FIGURES));
if (unknown.length > 0) {
  process.stderr.write(`no figure ${unknown.join(", ")}; there are ${Object.keys(FIGURES).join(", ")}\n`);
  process.exit(1);
}
const rounds = Number(options.rounds);
if (!(Number.isInteger(rounds) && rounds > 0)) {
  process.stderr.write(`--rounds must be a whole number above 0; ${options.rounds} came\n`);
  process.exit(1);
}

/** Text for people: on standard error if standard output has the JSON. */
const say = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`);
const machine = { node: process.versions.node, cores: availableParallelism(), rounds };
const measured: object[] = [];
say(`Node ${machine.node}, ${machine.cores} cores`);
for (const figure of asked.length > 0 ? asked : Object.keys(FIGURES)) {
  const { title, run } = await FIGURES[figure]!();
  say(`\n${figure}: ${title}`);
  const load = loadavg()[0]!;
  const rows = await run(rounds);
  const day = new Date().toISOString().slice(0, 10);
  if (into) keepResult(into, figure, { title, day, ...machine, load, rows });
  for (const row of rows) {
    say(line(row));
    measured.push({ figure, ...row, ...(row.floor && { ratio: row.value / row.floor.value }) });
  }
}
if (options.next) say(`\n${missing.length - 1} more`);
if (options.json) process.stdout.write(`${JSON.stringify({ ...machine, figures: measured }, null, 2)}\n`);
