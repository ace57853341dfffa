/**
 * Finds out when PostgreSQL's disk has free space again after it was full. Read this file if a process stays "not ready" because of a full
 * disk.
 */
import type { Logger } from "pino";
import type { Db } from "../data/database.js";
import { WRITE_TEMPORARY_FILES_SQL } from "../data/spill.js";
import { createTicker, type Ticker } from "../engine/ticker.js";
import { clearDiskFullState, getMsSinceDiskFull } from "../postgres.js";

const PROBE_INTERVAL_MS = 2_000;
/** Minimum milliseconds for which the disk counts as full after a rejected write. */
const DISK_FULL_MIN_MS = 5_000;

/** Creates periodic work. While the disk counts as full, it makes PostgreSQL write to the disk. A write that succeeds ends this state. */
export function createDiskFullProbe({ db, log }: { db: Db; log: Logger }): Ticker {
  async function probeDisk(): Promise<number> {
    const nextProbeAt = Date.now() + PROBE_INTERVAL_MS;
    if ((getMsSinceDiskFull() ?? 0) < DISK_FULL_MIN_MS) return nextProbeAt;
    await db.transaction(async (manager) => {
      for (const statement of WRITE_TEMPORARY_FILES_SQL) await manager.query(statement);
    });
    clearDiskFullState();
    log.info("PostgreSQL's disk has free space again");
    return nextProbeAt;
  }
  return createTicker({ work: probeDisk, msUntil: (time) => time - Date.now(), sleepMaxMs: PROBE_INTERVAL_MS, log });
}
