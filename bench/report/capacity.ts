/** Generates docs/operate/capacity.md from the stored results of the figure `capacity`. */
import type { StoredFigure } from "./results.js";

export const CAPACITY_PAGE = "docs/operate/capacity.md";

const IDLE_LINE = "idle, a second";
/** Cores of the smallest planned machine. It runs the whole service and PostgreSQL. */
const SINGLE_CORES = 2;
/** Sizes of database servers, in cores, for which the page states the capacity. */
const DATABASE_CORES = [8, 32, 64];
/** Share of the cores that the page plans with. The rest is reserved for peaks, vacuum, checkpoints and backups. */
const USABLE_SHARE = 0.6;
const SECONDS_PER_DAY = 86_400;

const formatNumber = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0, useGrouping: true });
/** Rounds to two significant digits, because the measurement is no more precise. */
const formatRounded = (value: number): string => formatNumber(Number(value.toPrecision(2)));
const formatTable = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

type Costs = Map<string, number>;

/** Returns the costs in each row of the table, by column. */
function readCosts({ rows }: StoredFigure): Map<string, Costs> {
  const lines = Map.groupBy(rows, ({ cell }) => cell!.line);
  return new Map([...lines].map(([line, of]) => [line, new Map(of.map(({ cell, value }) => [cell!.column, value]))]));
}

const computeRunsPerSecondOfDatabase = (costs: Costs, cores: number) =>
  (cores * USABLE_SHARE * 1_000) / costs.get("PostgreSQL")!;
const computeRunsPerSecondOnOneMachine = (costs: Costs, cores: number) =>
  (cores * USABLE_SHARE * 1_000) / (costs.get("Node")! + costs.get("Chromium")! + costs.get("PostgreSQL")!);

function formatCostTable(lines: Map<string, Costs>): string {
  const cells = [...lines].map(([line, costs]) => [`\`${line}\``, ...[...costs.values()].map(formatNumber)]);
  const head = ["code", "Node, ms", "Chromium, ms", "PostgreSQL, ms", "statements", "WAL, bytes", "rows written"];
  return formatTable(head, cells);
}

function formatPlanTable(lines: Map<string, Costs>): string {
  const cells = [...lines].map(([line, costs]) => {
    const maximumRuns = computeRunsPerSecondOfDatabase(costs, DATABASE_CORES.at(-1)!);
    const runnerCores = (costs.get("Node")! + costs.get("Chromium")!) / 10 / USABLE_SHARE;
    return [
      `\`${line}\``,
      formatRounded(computeRunsPerSecondOnOneMachine(costs, SINGLE_CORES)),
      ...DATABASE_CORES.map((cores) => formatRounded(computeRunsPerSecondOfDatabase(costs, cores))),
      formatRounded((maximumRuns * costs.get("WAL")!) / 1e6),
      formatRounded(runnerCores),
    ];
  });
  const runHeadings = DATABASE_CORES.map((cores) => `runs a second, database server of ${cores} cores`);
  return formatTable(
    [
      "code",
      `runs a second, one machine of ${SINGLE_CORES} cores`,
      ...runHeadings,
      `WAL at ${DATABASE_CORES.at(-1)} cores, MB a second`,
      "runner cores for 100 runs a second",
    ],
    cells,
  );
}

/** Last section of the page. */
const NEXT_STEPS = `## Next steps when one machine is full

1. **Put each role on [machines of its own](several-machines.md).** Add runners first: Chromium takes most of the processor time.
2. **Give PostgreSQL a machine of its own**, with as many cores as the [table](#machines-for-a-number-of-runs) says. Watch the number of
   [connections](several-machines.md#files-connections-and-failures), or use a [pooler](containers.md#a-pooler-before-the-database).
3. **Move old log rows to another disk.** These tables are [partitioned](logs.md#retention-and-partitions): \`run\`, \`execution_log\`,
   \`log_event\`, \`console_line\`, \`run_search\` and \`audit_entry\`. To put new partitions of a table into the tablespace \`history\`, run
   \`ALTER TABLE execution_log SET TABLESPACE history\`. To move an existing partition, write its name instead of the name of the table.
4. **Use a replica for your own queries**, such as reports and exports. The service itself reads only from the primary database, because each
   read must see the latest write. The replica is also your standby.
5. **Split the apps over several installations**, each with its own database and address. [Move an app with its data](../guides/move-an-app.md)
   to another installation. Installations do not share accounts. Use one
   [OpenID provider](people.md#sign-in-at-an-openid-provider) for all of them.
`;

export function createCapacityPage(measured: StoredFigure): string {
  const lines = readCosts(measured);
  const idleCosts = lines.get(IDLE_LINE)!;
  lines.delete(IDLE_LINE);
  const languageCosts = lines.get("language")!;
  const [small] = DATABASE_CORES as [number];
  const { day, node, cores, rounds, load } = measured;
  const busy =
    load !== undefined && load > cores
      ? `\n- **Load average** before the measurement: ${formatNumber(load)} on ${cores} cores. If other programs caused this load and continued, expect lower costs\n  on a quiet machine.`
      : "";
  const stored = computeRunsPerSecondOfDatabase(languageCosts, small) * SECONDS_PER_DAY;
  return `# Capacity

For operators who plan machines for a known number of runs a second. The first table has measured costs of runs. The second table says how
many runs a second machines of several sizes can execute. To measure on your own machine and generate this page again:

<!-- not run: measuring takes minutes of a quiet machine; test/bench/report.test.ts makes this page of the stored figures -->
\`\`\`sh
# measures on your machine
npm run bench capacity -- --into bench/results.json
# writes this page
npm run bench -- --report
\`\`\`

## Costs of a run

Each row shows the costs of one call of \`runWithResult\`, for another action: \`language\` adds two numbers in an
[isolate](../reference/actions.md#where-the-code-runs), \`document\` does the same in an empty document, \`svc-barcode\` draws a QR code,
\`five-fetches\` sends five requests by \`fetch\`, \`request\` sends one by \`Svc.App.V3.Actions.request()\`, and \`ten-finds\` reads a data source
ten times. \`bench/harness/kinds.ts\` has the code of all these actions. The last row, \`language, queued\`, is a run of \`language\` that first waits
in the queue, as runs of schedules and log events do.

${formatCostTable(lines)}

- **Times** are processor time, summed over all cores.
- **WAL** is the write-ahead log, which PostgreSQL writes before it changes data. The numbers exclude the whole pages that PostgreSQL writes
  to this log when a page first changes after a checkpoint.
- **Background work** of the service is part of the costs. In each second, an idle service with all roles needs ${formatNumber(idleCosts.get("Node")!)} ms of Node,
  ${formatNumber(idleCosts.get("PostgreSQL")!)} ms of PostgreSQL and ${formatNumber(idleCosts.get("statements")!)} SQL statements. The more runs a service executes in a second, the less of this work is in
  the cost of each run.
- **Measurement**: ${day}, with 8 concurrent callers, Node ${node} and ${cores} cores, ${rounds === 1 ? "in one round" : `as medians of ${rounds} rounds`}.${busy}

## Machines for a number of runs

The table says how many runs a second a machine can execute. It assumes that runs use ${USABLE_SHARE * 100} % of the processor time of the machine. The
other ${100 - USABLE_SHARE * 100} % are for peaks, vacuum, checkpoints and backups.

- **One machine** has all roles and the embedded PostgreSQL. Its number of runs is this processor time, divided by the time that a run
  costs in Node, Chromium and PostgreSQL together.
- **Database server**: its number of runs is this processor time, divided by the time that a run costs in PostgreSQL. The runners are on
  other machines.
- **Runner cores**: the cores that all runners together need for 100 runs a second, in Node and Chromium.

By default, calls can start only [30 runs of an app in 60 s](../guides/runs-at-once.md). To reach the numbers of the table, raise
\`RATE_LIMIT_RUN\`.

${formatPlanTable(lines)}

These numbers are computed from the [costs of a run](#costs-of-a-run), not measured:

- The costs were measured on one machine. Measure on one of your own machines before you buy more machines.
- The disk of a database server of 64 cores must be able to write at least twice as much as the WAL column says, and to flush data in less
  than 1 ms.
- With more cores, PostgreSQL loses more time to locks and cache misses. With 64 cores, expect fewer runs than the table says.
- A run that reads many entries of a data source costs more than the measured runs.
- At the number of \`language\` runs in the table, a database server of ${small} cores writes about ${formatRounded((stored * languageCosts.get("WAL")!) / 1e9)} GB of WAL in a day. \`LOG_MAX_MB\` limits
  the stored history of each app, not the WAL.

${NEXT_STEPS}`;
}
