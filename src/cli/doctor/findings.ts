/** All checks of the doctor, in the order of its output. */
import { type Config, ConfigError, readConfig } from "../../config.js";
import { database } from "./database.js";
import { type Finding, ill, noProblem } from "./finding.js";
import { browser, bundling, egress, folder, isolate, keyFile, node } from "./machine.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the settings. Returns them, or the diagnostic that reports their fault. */
function settings(environment: Environment | undefined): { config: Config | null; findings: Finding[] } {
  try {
    return { config: readConfig(environment), findings: [noProblem("settings", "can be read")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      config: null,
      findings: [
        ill("settings", error.message, "docs/reference/variables.md lists the allowed values of each variable"),
      ],
    };
  }
}

/** Checks the settings, this machine and the database. @param environment by default that of the process */
export async function findings(environment?: Environment): Promise<Finding[]> {
  const { config, findings: first } = settings(environment);
  const diagnostics = [...first, node(), await isolate()];
  if (!config) return diagnostics;
  const ofMachine = [
    ...(await folder(config)),
    ...(await egress(config)),
    keyFile(config),
    await bundling(config),
    ...(await browser(config)),
  ];
  return [...diagnostics, ...ofMachine, ...(await database(config))];
}
