/**
 * `npm run doctor`: checks settings, machine and database for problems that prevent the service from working, and prints how to solve them.
 * Changes nothing.
 */
import "reflect-metadata";
import { parseCommandLine, runCommand } from "./command.js";
import { formatDiagnostic } from "./doctor/diagnostic.js";
import { collectDiagnostics } from "./doctor/diagnostics.js";

const USAGE = "Usage: npm run doctor, without arguments";

await runCommand(async () => {
  parseCommandLine({}, USAGE);
  const diagnostics = await collectDiagnostics();
  for (const diagnostic of diagnostics) process.stdout.write(`${formatDiagnostic(diagnostic)}\n`);
  const problemCount = diagnostics.filter(({ advice }) => advice !== null).length;
  process.stdout.write(problemCount === 0 ? "Nothing is wrong.\n" : `${problemCount} to fix.\n`);
  if (problemCount > 0) process.exitCode = 1;
});
