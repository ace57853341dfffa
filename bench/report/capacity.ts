/** Generates docs/operate/capacity.md from the stored costs of runs. */
import type { Measured } from "./results.js";

export const CAPACITY_PAGE = "docs/operate/capacity.md";

const IDLE = "idle, a second";
/** Sizes of database servers on the page, in cores. */
const CORES = [8, 32, 64];
/** The rest is reserved for peaks, vacuum, checkpoints and backups. */
const USED = 0.6;
const DAY_S = 86_400;

const number = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0, useGrouping: true });
/** Two significant digits, because the measurement is no more precise. */
const about = (value: number): string => number(Number(value.toPrecision(2)));
const tableOf = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

type Costs = Map<string, number>;

/** Costs by column, for each row of the measurement. */
function costsOf({ rows }: Measured): Map<string, Costs> {
  const lines = Map.groupBy(rows, ({ cell }) => cell!.line);
  return new Map([...lines].map(([line, of]) => [line, new Map(of.map(({ cell, value }) => [cell!.column, value]))]));
}

const runsOf = (costs: Costs, cores: number) => (cores * USED * 1_000) / costs.get("PostgreSQL")!;

function costTable(lines: Map<string, Costs>): string {
  const cells = [...lines].map(([line, costs]) => [`\`${line}\``, ...[...costs.values()].map(number)]);
  const head = ["code", "Node, ms", "Chromium, ms", "PostgreSQL, ms", "statements", "WAL, bytes", "rows written"];
  return tableOf(head, cells);
}

function planTable(lines: Map<string, Costs>): string {
  const cells = [...lines].map(([line, costs]) => {
    const most = runsOf(costs, CORES.at(-1)!);
    const runnerCores = (costs.get("Node")! + costs.get("Chromium")!) / 10 / USED;
    return [
      `\`${line}\``,
      ...CORES.map((cores) => about(runsOf(costs, cores))),
      about((most * costs.get("WAL")!) / 1e6),
      about(runnerCores),
    ];
  });
  const heads = CORES.map((cores) => `runs a second, ${cores} cores`);
  return tableOf(
    ["code", ...heads, `WAL at ${CORES.at(-1)} cores, MB a second`, "runner cores for 100 runs a second"],
    cells,
  );
}

/** The page for the figure `capacity`. */
export function capacityPage(measured: Measured): string {
  const lines = costsOf(measured);
  const idle = lines.get(IDLE)!;
  lines.delete(IDLE);
  const language = lines.get("language")!;
  const [small] = CORES as [number];
  const { day, node, cores, rounds, load } = measured;
  const busy =
    load !== undefined && load > cores
      ? `\n\nOther programs kept the machine busy meanwhile (load ${number(load)} on ${cores} cores): expect lower costs on a quiet one.`
      : "";
  const stored = runsOf(language, small) * DAY_S;
  return `# Capacity

For operators who plan machines for a known number of runs. \`npm run bench -- --report\` generates this page from measured figures.

<!-- not run: measuring takes minutes of a quiet machine; test/bench/report.test.ts makes this page of the stored figures -->
\`\`\`sh
npm run bench capacity -- --into bench/results.json   # measures on your machine
npm run bench -- --report                             # writes this page
\`\`\`

## Costs of a run

Each line is one call of \`runWithResult\` with the code of that name in \`bench/harness/kinds.ts\`; the last one is a run from the queue, as schedules
and log events start them. Processor time is the sum over all cores. WAL is measured without a
checkpoint; each one repeats changed pages once. Measured ${day} with 8 callers, Node ${node}, ${cores} cores,
${rounds === 1 ? "one round" : `medians of ${rounds} rounds`}.

${costTable(lines)}

The costs include the background work of the service. An idle one with all roles takes ${number(idle.get("Node")!)} ms of Node, ${number(idle.get("PostgreSQL")!)} ms of
PostgreSQL and ${number(idle.get("statements")!)} statements a second, so runs cost less the more there are.${busy}

## Machines for a number of runs

The table divides ${USED * 100} % of a database server's cores by the costs of PostgreSQL above, and ${USED * 100} % of a runner's cores by those of Node and
Chromium. The rest is for peaks, vacuum, checkpoints and backups.

${planTable(lines)}

These are computed figures, not measured ones. Their limits:

- Costs are those of the machine above. Measure on yours before you buy.
- PostgreSQL writes one WAL. Use a disk that sustains twice the MB a second of the table, with a flush in less than 1 ms.
- Locks and cache misses grow with cores. Expect less than the table from 64 cores.
- A run's own reads of data sources cost in proportion to the entries that they read.
- ${small} cores of \`language\` runs write about ${about((stored * language.get("WAL")!) / 1e9)} GB of WAL a day. \`LOG_MAX_MB\` limits the stored history of each app, not the WAL.

## Next steps when one machine is full

1. **Put each role on its own machines.** Add runners first: Chromium takes most of the processor time. See [several machines](several-machines.md).
2. **Give PostgreSQL a machine of its own**, with as many cores as the table says. Watch \`max_connections\` or use a
   [pooler](containers.md).
3. **Move history to another disk.** The tables \`run\`, \`execution_log\`, \`log_event\`, \`console_line\`, \`run_search\` and \`audit_entry\` are partitioned
   by ID. \`ALTER TABLE execution_log SET TABLESPACE history\` puts new partitions into the tablespace \`history\`; the same statement moves one
   existing partition.
4. **Read from a replica.** The service uses one primary database for its own reads, because each read must see the latest write. Point
   reports, exports and your own queries at a streaming replica. It is also your standby.
5. **Split apps over databases.** Apps share no data, so each installation can hold some of them: another \`DATABASE_URL\`, another
   address. Move an app's actions and definitions with its [manifest](../reference/manifest.md), and its entries by export and import. Accounts are not shared: use one
   [OpenID provider](people.md#sign-in-at-an-openid-provider) for all installations.
`;
}
