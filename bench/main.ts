/** `npm run bench [name…]`: prints each figure beside its bare floor, both measured in this run. Measures nothing itself. */
import { availableParallelism } from "node:os";
import type { Figure, Row } from "./figure.js";

/** One file each; the name is what the command line takes. */
const FIGURES: Record<string, () => Promise<Figure>> = {
  "run-latency": () => import("./run-latency.js"),
  "run-throughput": () => import("./run-throughput.js"),
  "memory-hog": () => import("./memory-hog.js"),
  "log-events": () => import("./log-events.js"),
  enqueue: () => import("./enqueue.js"),
  "settings-get": () => import("./settings-get.js"),
  "log-fanout": () => import("./log-fanout.js"),
};

const number = (value: number): string => value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0);

function line({ name, value, unit, floor }: Row): string {
  const own = `  ${name.padEnd(52)} ${number(value).padStart(9)} ${unit.padEnd(4)}`;
  if (!floor) return own.trimEnd();
  return `${own} ${`${(value / floor.value).toFixed(2)}x`.padStart(8)} of ${number(floor.value)} ${unit}, ${floor.name}`;
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in FIGURES));
if (unknown.length > 0) {
  process.stderr.write(`no figure ${unknown.join(", ")}; there are ${Object.keys(FIGURES).join(", ")}\n`);
  process.exit(1);
}
process.stdout.write(`Node ${process.versions.node}, ${availableParallelism()} cores\n`);
for (const name of asked.length > 0 ? asked : Object.keys(FIGURES)) {
  const { title, run } = await FIGURES[name]!();
  process.stdout.write(`\n${name}: ${title}\n`);
  for (const row of await run()) process.stdout.write(`${line(row)}\n`);
}
