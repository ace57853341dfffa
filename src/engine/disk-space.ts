/** Periodically measures the free space of a disk, and rates it with a level: enough, low or spent. */

import type { Logger } from "pino";
import { runInBackground } from "../background.js";

/** `low`: the service allows only necessary writes. `spent`: the rest is reserved for the outcomes of running actions. */
export type DiskSpaceLevel = "enough" | "low" | "spent";

export interface DiskSpaceMonitor {
  level(): DiskSpaceLevel;
  /** Measures the free space once, and periodically from then on. */
  start(): Promise<void>;
  stop(): void;
}

export const UNLIMITED_DISK_SPACE: DiskSpaceMonitor = {
  level: () => "enough",
  start: async () => undefined,
  stop: () => undefined,
};

export function createDiskSpaceMonitor(options: {
  /** Name of the disk in log messages. */
  diskName: string;
  readFreeBytes: () => Promise<number>;
  /** Number of free bytes below which the level is `low`. Below half of this number, it is `spent`. */
  minimumBytes: number;
  intervalMs: number;
  log: Logger;
}): DiskSpaceMonitor {
  const { diskName, readFreeBytes, minimumBytes, intervalMs, log } = options;
  let level: DiskSpaceLevel = "enough";
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const computeLevel = (bytes: number): DiskSpaceLevel => {
    if (bytes >= minimumBytes) return "enough";
    return bytes < minimumBytes / 2 ? "spent" : "low";
  };

  async function measureDisk(): Promise<void> {
    try {
      const bytes = await readFreeBytes();
      const newLevel = computeLevel(bytes);
      if (newLevel !== level) {
        // Log monitors may read the field `room`, so it keeps its old name.
        const logFields = { room: newLevel, freeMb: Math.floor(bytes / 2 ** 20) };
        log.warn(logFields, `the level of the free space of ${diskName} has changed`);
      }
      level = newLevel;
    } catch (error) {
      // The measurement failed, so the level of the last measurement still applies.
      log.warn({ err: error }, `the free space of ${diskName} could not be measured`);
    }
    if (!stopped) timer = setTimeout(() => runInBackground(measureDisk()), intervalMs).unref();
  }

  return {
    level: () => level,
    start: measureDisk,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
