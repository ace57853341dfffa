/** Command `npm run agent-bench`: a scripted agent does twelve tasks without Studio. Prints how many calls each task takes. */
import { startBenchService } from "../harness/service.js";
import { AGENT_SCOPES, runTasks } from "./bench.js";

const service = await startBenchService();
try {
  const { appId, tokens } = service.first;
  const body = { kind: "api", name: "agent-bench", scopes: AGENT_SCOPES };
  const { token } = await service.call("POST", `/v1/apps/${appId}/tokens`, body);
  const options = { url: service.url, appId, agentToken: token, personToken: tokens.editor };
  const results = await runTasks(options);
  const width = Math.max(...results.map(({ title }) => title.length));
  const row = (title: string, ...cells: (string | number)[]) =>
    process.stdout.write(`${title.padEnd(width)} ${cells.map((cell) => String(cell).padStart(5)).join("")}\n`);
  row("", "MCP", "CLI", "all");
  for (const { title, mcp, cli, error } of results) {
    row(title, mcp, cli, mcp + cli);
    if (error !== null) process.stdout.write(`  not done: ${error}\n`);
  }
  if (results.some(({ error }) => error !== null)) process.exitCode = 1;
} finally {
  await service.stop();
}
