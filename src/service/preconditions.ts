/** Checks before the start that the settings fit the machine. Read this file if the service does not start because of a variable. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Config } from "../config.js";
import { findChromium } from "../engine/chromium-path.mjs";
import { isLocalAddress } from "../engine/local-address.js";
import { StartError } from "../errors.js";
import { readCatalogue } from "../operations/operations.js";

/** True if the process may store something in DATA_DIR: the embedded database, the key of the settings, or media files. */
const needsDataDir = ({ databaseUrl, settingsKeys, roles }: Config): boolean =>
  databaseUrl === null || settingsKeys === null || roles.has("api") || roles.has("scheduler");

/** Creates a folder and its parents. Node's recursive `mkdir` reports ENOENT on a read-only file system, and never returns under /proc. */
async function createFolder(path: string): Promise<void> {
  if (existsSync(path)) return;
  await createFolder(dirname(path));
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

/** @throws StartError if this process cannot create files in the folder */
async function checkDataDir({ dataDir }: Config): Promise<void> {
  try {
    await createFolder(dataDir);
    const probe = join(dataDir, `.probe-${randomBytes(4).toString("hex")}`);
    await (await open(probe, "wx", 0o600)).close();
    await rm(probe);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartError(
      `DATA_DIR must be a folder in which this process can create files (got ${dataDir}: ${code ?? message})`,
    );
  }
}

/** @throws StartError if this machine does not have the address */
async function checkLocalAddress(name: string, address: string | null): Promise<void> {
  if (address !== null && !(await isLocalAddress(address)))
    throw new StartError(`${name} must be an address of this machine (got ${address})`);
}

/** @throws StartError if CHROME_PATH is not a program */
async function checkChromePath({ chromePath }: Config): Promise<void> {
  if (chromePath !== null && findChromium(chromePath) === null)
    throw new StartError(`CHROME_PATH must be the path of an executable Chromium (got ${chromePath})`);
}

/** Returns messages about variables whose values are valid, but cannot be used on this machine. */
export async function findUnusableValues(config: Config): Promise<string[]> {
  const { host, egressAddress, egressProxyHost, browserWsEndpoints, roles } = config;
  const usesRemoteBrowsers = browserWsEndpoints.length > 0;
  const checks = await Promise.allSettled([
    checkLocalAddress("HOST", host),
    checkLocalAddress("EGRESS_ADDRESS", egressAddress),
    roles.has("runner") && usesRemoteBrowsers && checkLocalAddress("EGRESS_PROXY_HOST", egressProxyHost),
    roles.has("runner") && !usesRemoteBrowsers && checkChromePath(config),
    (async () => readCatalogue(config))(),
    needsDataDir(config) && checkDataDir(config),
  ]);
  return checks.flatMap((check) => (check.status === "rejected" ? [(check.reason as Error).message] : []));
}

/** @throws StartError with one message about all variables whose values cannot be used on this machine */
export async function checkStartPreconditions(config: Config): Promise<void> {
  const faults = await findUnusableValues(config);
  if (faults.length > 0) throw new StartError(faults.join("; "));
}
