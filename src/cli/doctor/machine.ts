/**
 * Doctor's checks of this machine: Node, the isolate (runs code without a browser page), the data folder, the browser, and the sandboxes.
 */
import { accessSync, constants, existsSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import type { Config } from "../../config.js";
import { Browsers } from "../../engine/browser/browsers.js";
import { createLocalBrowserSource } from "../../engine/browser/processes/chromium.js";
import { Bundler } from "../../engine/bundler.js";
import { findChromium, getDefaultChromiumPaths } from "../../engine/chromium-path.mjs";
import { createCompileChecker } from "../../engine/isolate-check.js";
import { isLocalAddress } from "../../engine/local-address.js";
import { getSettingsKeyFilePath } from "../../operations/settings/data-keys.js";
import { createPassedDiagnostic, createProblemDiagnostic, type Diagnostic } from "./diagnostic.js";

const MB = 2 ** 20;
const NODE_VERSION_MIN = { major: 24, minor: 11 };
const GROUP_AND_OTHERS_MODE_BITS = 0o077;

export function checkNodeVersion(version = process.versions.node): Diagnostic {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isSupported =
    major > NODE_VERSION_MIN.major || (major === NODE_VERSION_MIN.major && minor >= NODE_VERSION_MIN.minor);
  if (isSupported) return createPassedDiagnostic("Node", version);
  return createProblemDiagnostic(
    "Node",
    version,
    `use Node ${NODE_VERSION_MIN.major}.${NODE_VERSION_MIN.minor} or later; on Linux, npm install installs this version`,
  );
}

export async function checkIsolatedVmModule(): Promise<Diagnostic> {
  try {
    await createCompileChecker().check("async function execute() {}");
    return createPassedDiagnostic("isolate", "compiles code");
  } catch (error) {
    return createProblemDiagnostic(
      "isolate",
      (error as Error).message,
      "start with --no-node-snapshot, and run npm ci for this Node and processor",
    );
  }
}

function findNearestExistingFolder(path: string): string {
  let folder = path;
  while (!existsSync(folder)) folder = join(folder, "..");
  return folder;
}

/** Advice for a disk of DATA_DIR with too little space. If the database is elsewhere, only uploads need this disk. */
function createDiskAdvice({ databaseUrl, diskFreeMinMb }: Config): string {
  if (diskFreeMinMb === 0) return "free space: the service checks no minimum, because DISK_FREE_MIN_MB is 0";
  const advice = `free space: below ${diskFreeMinMb} MB (DISK_FREE_MIN_MB), the service rejects uploads`;
  return databaseUrl === null ? `${advice} and other new data, and below half of this also new runs` : advice;
}

export async function checkDataDir(config: Config): Promise<Diagnostic[]> {
  const { dataDir, diskFreeMinMb } = config;
  const existingFolder = findNearestExistingFolder(dataDir);
  try {
    accessSync(existingFolder, constants.W_OK | constants.X_OK);
    rmdirSync(mkdtempSync(join(existingFolder, ".svc-doctor-")));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return [
      createProblemDiagnostic(
        "DATA_DIR",
        `${dataDir} cannot be written (${code})`,
        "make the user that runs the service its owner, or set DATA_DIR to another folder",
      ),
    ];
  }
  const { bavail, bsize } = await statfs(existingFolder);
  const freeMb = Math.floor((bavail * bsize) / MB);
  const description = `${freeMb} MB free under ${dataDir}`;
  const minimumMb = Math.max(diskFreeMinMb, 1);
  if (freeMb >= minimumMb)
    return [createPassedDiagnostic("DATA_DIR", "can be written"), createPassedDiagnostic("disk", description)];
  return [
    createPassedDiagnostic("DATA_DIR", "can be written"),
    createProblemDiagnostic("disk", description, createDiskAdvice(config)),
  ];
}

/** Checks that this machine has the network address EGRESS_ADDRESS, from which runs send their requests. */
export async function checkEgressAddress({ egressAddress }: Config): Promise<Diagnostic[]> {
  if (egressAddress === null) return [];
  if (await isLocalAddress(egressAddress))
    return [createPassedDiagnostic("egress", `${egressAddress} is an address of this machine`)];
  return [
    createProblemDiagnostic(
      "egress",
      `EGRESS_ADDRESS ${egressAddress} is not an address of this machine`,
      "set EGRESS_ADDRESS to an address of this machine, or remove the variable",
    ),
  ];
}

export function checkKeyFile({ dataDir, settingsKeys }: Config): Diagnostic {
  const path = getSettingsKeyFilePath(dataDir);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (settingsKeys !== null) return createPassedDiagnostic("settings key", "in SETTINGS_KEY");
  if (!stats) return createPassedDiagnostic("settings key", `the service creates it at its first start, in ${path}`);
  if ((stats.mode & GROUP_AND_OTHERS_MODE_BITS) === 0)
    return createPassedDiagnostic("settings key", `in ${path}, readable only by its owner`);
  return createProblemDiagnostic("settings key", `others on this machine can read ${path}`, `chmod 600 ${path}`);
}

export async function checkPackageBundling({ roles, npm, bundlerSandbox }: Config): Promise<Diagnostic> {
  if (!npm) return createPassedDiagnostic("packages of npm", "are switched off");
  if (!roles.has("api"))
    return createPassedDiagnostic(
      "packages of npm",
      "are not bundled by this process, because ROLES does not contain api",
    );
  try {
    await new Bundler({ log: pino({ level: "silent" }), sandbox: true }).findSandbox();
    return createPassedDiagnostic("packages of npm", "are bundled in a process without network access");
  } catch (error) {
    const advice =
      "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, a container's seccomp profile)";
    const description = bundlerSandbox
      ? (error as Error).message
      : "are bundled in a process with network access (NPM_SANDBOX=off)";
    return createProblemDiagnostic("packages of npm", description, advice);
  }
}

export async function checkBrowser({
  roles,
  browserWsEndpoints,
  chromePath,
  puppeteerCacheDir,
  chromeSandbox,
}: Config): Promise<Diagnostic[]> {
  if (!roles.has("runner"))
    return [createPassedDiagnostic("browser", "not needed, because ROLES does not contain runner")];
  if (browserWsEndpoints.length > 0)
    return [
      createPassedDiagnostic(
        "browser",
        `${browserWsEndpoints.length} remote browsers; the service checks them when it starts`,
      ),
    ];
  const path = findChromium(chromePath, getDefaultChromiumPaths(puppeteerCacheDir));
  if (!path)
    return [
      createProblemDiagnostic(
        "browser",
        chromePath === null ? "no Chromium was found" : `CHROME_PATH ${chromePath} is not an executable program`,
        "apt-get install chromium-headless-shell, or set CHROME_PATH to an installed Chromium",
      ),
    ];
  const log = pino({ level: "silent" });
  const browsers = new Browsers({
    sources: [createLocalBrowserSource({ chromePath: path, sandbox: chromeSandbox, log })],
    log,
    openProxyPort: null,
    spareContexts: 0,
  });
  try {
    await browsers.start();
    const states = await browsers.waitForProcessSandboxStates();
    const startDiagnostic = createPassedDiagnostic("browser", `${path} starts`);
    if (states?.every(({ contained }) => contained))
      return [startDiagnostic, createPassedDiagnostic("sandbox", `is active for ${states.length} processes`)];
    const advice =
      "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), and leave CHROME_SANDBOX on";
    return [
      startDiagnostic,
      createProblemDiagnostic("sandbox", "is not active, so untrusted code would run without a sandbox", advice),
    ];
  } catch (error) {
    return [
      createProblemDiagnostic(
        "browser",
        (error as Error).message.split("\n")[0]!,
        "start this browser by hand to read its error; its sandbox needs user namespaces",
      ),
    ];
  } finally {
    await browsers.stop();
  }
}
