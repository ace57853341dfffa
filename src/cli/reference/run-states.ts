/** Builds the section "States" of docs/internals/run-lifecycle.md from the table of state transitions. */
import { RUN_TRANSITIONS } from "../../data/run.js";

const transitionRows = Object.values(RUN_TRANSITIONS).map(({ from, to, when }) => ({
  from,
  to,
  exits: Object.entries<string>(when).map(([error, condition]) => ({ error, condition })),
}));

const transitionsByState = Map.groupBy(transitionRows, ({ from }) => from ?? "new");
const transitionLines = [...transitionsByState].map(
  ([from, list]) => `${from.padEnd(7)} ──▶ ${list.map(({ to }) => to).join(", ")}`,
);

const formatErrorName = (error: string): string => (/^[A-Z]/.test(error) ? `\`${error}\`` : error);

const tableRows = transitionRows.flatMap(({ from, to, exits }) =>
  exits.map(({ error, condition }) => `| ${from ?? "new"} | ${to} | ${condition} | ${formatErrorName(error)} |`),
);

const STATES_SECTION = `## States

Each run is one row in the database table \`run\`. The service writes this row before it evaluates any code, and ends each run exactly once.
The constant \`RUN_TRANSITIONS\` in \`src/data/run.ts\` lists all transitions between states. The SQL statements take their states from this
constant, and \`npm run reference\` generates this page's table of transitions from it.

\`\`\`text
${transitionLines.join("\n")}
\`\`\`

| from | to | if | error |
| --- | --- | --- | --- |
${tableRows.join("\n")}
`;

export function replaceRunStatesSection(page: string): string {
  const start = page.indexOf("## States");
  return page.slice(0, start) + STATES_SECTION + page.slice(page.indexOf("\n## ", start));
}
