/** How much room the database has, by the configuration: of the disk under DATA_DIR, or of what DATABASE_MAX_MB allows. Refuses nobody. */
import { statfs } from "node:fs/promises";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Config } from "../config.js";
import { rows } from "../data/database.js";
import { createDiskRoom, type DiskRoom, ENDLESS_ROOM } from "../engine/disk-room.js";

const MB = 2 ** 20;

/** A disk is asked in microseconds, a database has all its files counted. */
const DISK_EVERY_MS = 1_000;
const DATABASE_EVERY_MS = 10_000;

export function diskRoom(config: Config, db: DataSource, log: Logger): DiskRoom {
  const { databaseUrl, databaseMaxMb, dataDir, diskFreeMinMb } = config;
  const minimumBytes = diskFreeMinMb * MB;
  const measured = databaseUrl === null || databaseMaxMb > 0;
  if (!measured || minimumBytes === 0) return ENDLESS_ROOM;
  const ofDisk = async () => {
    const { bavail, bsize } = await statfs(dataDir);
    return bavail * bsize;
  };
  const ofDatabase = async () => {
    const [size] = await rows<{ bytes: number }>(db, "SELECT pg_database_size(current_database()) AS bytes");
    return databaseMaxMb * MB - size!.bytes;
  };
  return databaseUrl === null
    ? createDiskRoom({ free: ofDisk, minimumBytes, everyMs: DISK_EVERY_MS, log })
    : createDiskRoom({ free: ofDatabase, minimumBytes, everyMs: DATABASE_EVERY_MS, log });
}
