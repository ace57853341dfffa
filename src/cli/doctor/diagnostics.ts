/** Runs all checks of the doctor, in the order of its output. */
import { type Config, ConfigError, readConfig } from "../../config.js";
import { checkDatabase } from "./database.js";
import { createDiagnostic, type Diagnostic, noProblem } from "./diagnostic.js";
import { checkBrowser, checkBundling, checkEgress, checkFolder, checkIsolate, checkNode, keyFile } from "./machine.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the settings of the service. If a setting is invalid, returns a diagnostic for it. */
function readSettings(environment: Environment | undefined): { config: Config | null; findings: Diagnostic[] } {
  try {
    return { config: readConfig(environment), findings: [noProblem("settings", "can be read")] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      config: null,
      findings: [
        createDiagnostic(
          "settings",
          error.message,
          "docs/reference/variables.md lists the allowed values of each variable",
        ),
      ],
    };
  }
}

/**
 * Checks the settings, this machine and the database.
 * @param environment environment variables; by default those of the process
 */
export async function collectDiagnostics(environment?: Environment): Promise<Diagnostic[]> {
  const { config, findings: first } = readSettings(environment);
  const diagnostics = [...first, checkNode(), await checkIsolate()];
  if (!config) return diagnostics;
  const machineFindings = [
    ...(await checkFolder(config)),
    ...(await checkEgress(config)),
    keyFile(config),
    await checkBundling(config),
    ...(await checkBrowser(config)),
  ];
  return [...diagnostics, ...machineFindings, ...(await checkDatabase(config))];
}
