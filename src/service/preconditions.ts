/** Checks before the start that the settings fit the machine. Read this file if the service does not start because of a variable. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Config } from "../config.js";
import { isLocalAddress } from "../engine/local-address.js";
import { StartError } from "../errors.js";

/** True if the process stores something in DATA_DIR: the embedded database, the key of the settings, or media files. */
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

/**
 * Checks the data folder and the network address for runs.
 * @throws StartError that names the variable whose value cannot be used on this machine
 */
export async function checkStartPreconditions(config: Config): Promise<void> {
  const { egressAddress } = config;
  if (egressAddress !== null && !(await isLocalAddress(egressAddress))) {
    throw new StartError(`EGRESS_ADDRESS must be an address of this machine (got ${egressAddress})`);
  }
  if (needsDataDir(config)) await checkDataDir(config);
}
