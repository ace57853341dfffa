/** Runs all checks of the doctor, in the order of its output. */
import { type Config, ConfigError, readConfig } from "../../config.js";
import { checkDatabase } from "./database.js";
import { createPassedDiagnostic, createProblemDiagnostic, type Diagnostic } from "./diagnostic.js";
import {
  checkBrowser,
  checkDataDir,
  checkEgressAddress,
  checkIsolatedVmModule,
  checkKeyFile,
  checkNodeVersion,
  checkPackageBundling,
} from "./machine.js";

type Environment = Readonly<Record<string, string | undefined>>;

function checkConfig(environment: Environment | undefined): {
  config: Config | null;
  settingsDiagnostics: Diagnostic[];
} {
  try {
    return {
      config: readConfig(environment),
      settingsDiagnostics: [createPassedDiagnostic("settings", "can be read")],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      config: null,
      settingsDiagnostics: [
        createProblemDiagnostic(
          "settings",
          error.message,
          "docs/reference/variables.md lists the allowed values of each variable",
        ),
      ],
    };
  }
}

export async function collectDiagnostics(environment?: Environment): Promise<Diagnostic[]> {
  const { config, settingsDiagnostics } = checkConfig(environment);
  const diagnostics = [...settingsDiagnostics, checkNodeVersion(), await checkIsolatedVmModule()];
  if (!config) return diagnostics;
  const machineDiagnostics = [
    ...(await checkDataDir(config)),
    ...(await checkEgressAddress(config)),
    checkKeyFile(config),
    await checkPackageBundling(config),
    ...(await checkBrowser(config)),
  ];
  return [...diagnostics, ...machineDiagnostics, ...(await checkDatabase(config))];
}
