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
      ? `\n- **Other programs** kept the machine busy during the measurement (load ${number(load)} on ${cores} cores). Expect lower costs on a quiet machine.`
      : "";
  const stored = runsOf(language, small) * DAY_S;
  return `# Capacity

For operators who plan machines for a known number of runs. The tables contain measured costs of runs, and the number of runs that machines
of several sizes can execute. To measure on your own machine and generate this page again:

<!-- not run: measuring takes minutes of a quiet machine; test/bench/report.test.ts makes this page of the stored figures -->
\`\`\`sh
npm run bench capacity -- --into bench/results.json   # measures on your machine
npm run bench -- --report                             # writes this page
\`\`\`

## Costs of a run

Each line shows the costs of one call of \`runWithResult\`. \`bench/harness/kinds.ts\` has the code of each name. The last line, \`language, queued\`, is a
run that first waits in the queue, as runs of schedules and log events do.

${costTable(lines)}

- **Times** are processor time, summed over all cores.
- **WAL** is the log that PostgreSQL writes before it changes data. The column excludes checkpoints. After each checkpoint, PostgreSQL also
  writes every changed page once.
- **Background work** is included. An idle service with all roles takes ${number(idle.get("Node")!)} ms of Node, ${number(idle.get("PostgreSQL")!)} ms of PostgreSQL and
  ${number(idle.get("statements")!)} statements a second. So one run costs less if there are many.
- **Measured** ${day} with 8 callers, Node ${node}, ${cores} cores, ${rounds === 1 ? "one round" : `medians of ${rounds} rounds`}.${busy}

## Machines for a number of runs

The table assumes that runs use ${USED * 100} % of the processor time of a machine. It divides this time on a database server by the PostgreSQL time of one run
above, and on a runner by the times of Node and Chromium. The other ${100 - USED * 100} % are for peaks, vacuum, checkpoints and backups.

${planTable(lines)}

These figures are computed, not measured:

- The costs are those of the machine above. Measure on your own machine before you buy.
- Use a disk that writes at least twice the MB a second of the table, and flushes in less than 1 ms.
- With more cores, PostgreSQL loses more time to locks and cache misses. With 64 cores, expect less than the table says.
- A run that reads many entries of a data source costs more.
- ${small} cores of \`language\` runs write about ${about((stored * language.get("WAL")!) / 1e9)} GB of WAL a day. \`LOG_MAX_MB\` limits the stored history of each app, not the WAL.

## Next steps when one machine is full

1. **Put each role on its own machines.** Add runners first: Chromium takes most of the processor time. See [several machines](several-machines.md).
2. **Give PostgreSQL a machine of its own**, with as many cores as the table says. Watch \`max_connections\`, or use a
   [pooler](containers.md#a-pooler-before-the-database).
3. **Move old log rows to another disk.** These tables are partitioned by ID: \`run\`, \`execution_log\`, \`log_event\`, \`console_line\`, \`run_search\` and
   \`audit_entry\`. \`ALTER TABLE execution_log SET TABLESPACE history\` puts new partitions of a table into the tablespace \`history\`. With the
   name of a partition, the statement moves this partition.
4. **Use a replica for your own queries**, such as reports and exports. The service itself reads only from the primary database, because each
   read must see the latest write. The replica is also your standby.
5. **Split the apps over several installations**, each with its own database and address. Move the actions and definitions of an app with its
   [manifest](../reference/manifest.md), and its entries by export and import. Installations do not share accounts. Use one
   [OpenID provider](people.md#sign-in-at-an-openid-provider) for all of them.
`;
}
