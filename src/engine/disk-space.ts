/** Periodically measures free space and rates it. */

import type { Logger } from "pino";
import { runInBackground } from "../background.js";

/** Level of free space. `low`: only necessary writes are allowed. `spent`: the rest is reserved for the outcomes of running actions. */
export type DiskSpaceLevel = "enough" | "low" | "spent";

export interface DiskSpace {
  /** Level at the last measurement. */
  level(): DiskSpaceLevel;
  /** Measures once, and periodically from then on. */
  start(): Promise<void>;
  stop(): void;
}

/** Free space of a database without a configured limit. */
export const UNLIMITED_SPACE: DiskSpace = {
  level: () => "enough",
  start: async () => undefined,
  stop: () => undefined,
};

export function createDiskSpace(options: {
  /** Name of the disk in the log. */
  what: string;
  /** Returns the free bytes. */
  free: () => Promise<number>;
  /** Below this number of bytes the level is low, below half of it spent. */
  minimumBytes: number;
  everyMs: number;
  log: Logger;
}): DiskSpace {
  const { what, free, minimumBytes, everyMs, log } = options;
  let level: DiskSpaceLevel = "enough";
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const levelOf = (bytes: number): DiskSpaceLevel => {
    if (bytes >= minimumBytes) return "enough";
    return bytes < minimumBytes / 2 ? "spent" : "low";
  };

  async function measureDisk(): Promise<void> {
    try {
      const bytes = await free();
      const now = levelOf(bytes);
      if (now !== level)
        log.warn({ room: now, freeMb: Math.floor(bytes / 2 ** 20) }, `the free space of ${what} has changed`);
      level = now;
    } catch (error) {
      // The last level stays in effect.
      log.warn({ err: error }, `the free space of ${what} could not be measured`);
    }
    if (!stopped) timer = setTimeout(() => runInBackground(measureDisk()), everyMs).unref();
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
