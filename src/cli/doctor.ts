/**
 * `npm run doctor`: checks settings, machine and database for problems that prevent the service from working, and prints how to fix them.
 * Changes nothing.
 */
import "reflect-metadata";
import { type Config, ConfigError, readConfig } from "../config.js";
import { readArguments, runCommand } from "./command.js";
import { database } from "./doctor/database.js";
import { type Finding, ill, well, written } from "./doctor/finding.js";
import { browser, bundling, egress, folder, isolate, keyFile, node } from "./doctor/machine.js";

const USAGE = "Usage: npm run doctor, without arguments";

/** The settings, or their fault. */
function settings(): { config: Config | null; findings: Finding[] } {
  try {
    return { config: readConfig(), findings: [well("settings", "can be read")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      config: null,
      findings: [ill("settings", error.message, "docs/reference/variables.md says what each variable may be")],
    };
  }
}

async function findings(): Promise<Finding[]> {
  const { config, findings: first } = settings();
  const own = [...first, node(), await isolate()];
  if (!config) return own;
  const ofMachine = [
    ...(await folder(config)),
    ...(await egress(config)),
    keyFile(config),
    await bundling(config),
    ...(await browser(config)),
  ];
  return [...own, ...ofMachine, ...(await database(config))];
}

await runCommand(async () => {
  readArguments({}, USAGE);
  const found = await findings();
  for (const one of found) process.stdout.write(`${written(one)}\n`);
  const wrong = found.filter(({ mend }) => mend !== null).length;
  process.stdout.write(wrong === 0 ? "Nothing is wrong.\n" : `${wrong} to mend.\n`);
  if (wrong > 0) process.exitCode = 1;
});
