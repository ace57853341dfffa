/**
 * `npm run bench [-- figure…] [-- --rounds 1] [-- --json]`: prints each figure beside its bare floor, both measured in this run; figures
 * are medians of three rounds. Measures nothing itself.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { figureOf } from "./figures/kind.js";
import type { Figure, Row } from "./harness/figure.js";
import { KINDS } from "./harness/kinds.js";

/** By the name that the command line takes, in the order to print. */
const FIGURES: Record<string, () => Promise<Figure>> = {
  ...Object.fromEntries(KINDS.map((kind) => [kind.name, async () => figureOf(kind)])),
  "many-apps": () => import("./figures/many-apps.js"),
  cores: async () => (await import("./figures/growth.js")).cores,
  runners: async () => (await import("./figures/growth.js")).runners,
  "log-events": () => import("./figures/log-events.js"),
  "run-start": () => import("./figures/run-start.js"),
  "settings-get": () => import("./figures/settings-get.js"),
  "log-fanout": () => import("./figures/log-fanout.js"),
  "memory-hog": () => import("./figures/memory-hog.js"),
};

const number = (value: number): string => value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0);

function line({ name, value, unit, floor }: Row): string {
  const own = `  ${name.padEnd(52)} ${number(value).padStart(9)} ${unit.padEnd(4)}`;
  if (!floor) return own.trimEnd();
  const more = unit === "ms" ? `, ${number(value - floor.value)} ms more` : "";
  return `${own} ${`${(value / floor.value).toFixed(2)}x`.padStart(8)} of ${number(floor.value)} ${unit}, ${floor.name}${more}`;
}

const { values: options, positionals: asked } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, rounds: { type: "string", default: "3" } },
});
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

/** For people: on standard error where standard output has the JSON. */
const say = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`);
const machine = { node: process.versions.node, cores: availableParallelism(), rounds };
const measured: object[] = [];
say(`Node ${machine.node}, ${machine.cores} cores`);
for (const figure of asked.length > 0 ? asked : Object.keys(FIGURES)) {
  const { title, run } = await FIGURES[figure]!();
  say(`\n${figure}: ${title}`);
  for (const row of await run(rounds)) {
    say(line(row));
    measured.push({ figure, ...row, ...(row.floor && { ratio: row.value / row.floor.value }) });
  }
}
if (options.json) process.stdout.write(`${JSON.stringify({ ...machine, figures: measured }, null, 2)}\n`);
