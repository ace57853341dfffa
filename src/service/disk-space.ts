/** Measures the free space for data: on the disk of DATA_DIR, or in the database up to DATABASE_MAX_MB. */
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../config.js";
import { type Db, rows } from "../data/database.js";
import { createDiskSpaceMonitor, type DiskSpaceMonitor, UNLIMITED_DISK_SPACE } from "../engine/disk-space.js";

const MB = 2 ** 20;

/** Interval between two measurements of the disk of the embedded database. */
const DISK_MEASURE_INTERVAL_MS = 1_000;
/**
 * Interval between two measurements if DATABASE_URL is set: of the database's size and of the disk of DATA_DIR. It is longer, because
 * PostgreSQL reads the sizes of all files of the database.
 */
const DATABASE_MEASURE_INTERVAL_MS = 10_000;

/** Returns the free bytes on the disk of the folder, or of its nearest parent folder that exists. */
export async function getFreeDiskBytes(folder: string): Promise<number> {
  let path = folder;
  while (!existsSync(path)) path = dirname(path);
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Watches the disk of DATA_DIR (media files and keys) if the database is not on it. Logs a warning when this disk is nearly full. */
export function createDataDirDiskSpaceMonitor(
  { databaseUrl, dataDir, diskFreeMinMb }: Config,
  log: Logger,
): DiskSpaceMonitor {
  if (databaseUrl === null || diskFreeMinMb === 0) return UNLIMITED_DISK_SPACE;
  const minimumBytes = diskFreeMinMb * MB;
  return createDiskSpaceMonitor({
    diskName: "DATA_DIR",
    readFreeBytes: () => getFreeDiskBytes(dataDir),
    minimumBytes,
    intervalMs: DATABASE_MEASURE_INTERVAL_MS,
    log,
  });
}

export function createDatabaseDiskSpaceMonitor(config: Config, db: Db, log: Logger): DiskSpaceMonitor {
  const { databaseUrl, databaseMaxMb, dataDir, diskFreeMinMb } = config;
  const minimumBytes = diskFreeMinMb * MB;
  const isMeasured = databaseUrl === null || databaseMaxMb > 0;
  if (!isMeasured || minimumBytes === 0) return UNLIMITED_DISK_SPACE;
  const measureDatabaseSpace = async () => {
    const [size] = await rows<{ bytes: number }>(db, "SELECT pg_database_size(current_database()) AS bytes");
    return databaseMaxMb * MB - size!.bytes;
  };
  return databaseUrl === null
    ? createDiskSpaceMonitor({
        diskName: "the database",
        readFreeBytes: () => getFreeDiskBytes(dataDir),
        minimumBytes,
        intervalMs: DISK_MEASURE_INTERVAL_MS,
        log,
      })
    : createDiskSpaceMonitor({
        diskName: "the database",
        readFreeBytes: measureDatabaseSpace,
        minimumBytes,
        intervalMs: DATABASE_MEASURE_INTERVAL_MS,
        log,
      });
}
