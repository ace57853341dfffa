/** How much room the database has left, looked at from time to time. Knows neither what is measured nor who is refused. */

import type { Logger } from "pino";
import { runInBackground } from "../background.js";

/** `low`: only what must be written may be; `spent`: the rest is for ending what runs. */
export type RoomLevel = "enough" | "low" | "spent";

export interface DiskRoom {
  /** As of the last look. */
  level(): RoomLevel;
  /** Looks once, and from then on every so often. */
  start(): Promise<void>;
  stop(): void;
}

/** Where nobody set a bound. */
export const ENDLESS_ROOM: DiskRoom = { level: () => "enough", start: async () => undefined, stop: () => undefined };

export function createDiskRoom(options: {
  /** The owner of the disk, for the log. */
  what: string;
  /** Bytes that are left. */
  free: () => Promise<number>;
  /** Below this many bytes it is low, below half of them spent. */
  minimumBytes: number;
  everyMs: number;
  log: Logger;
}): DiskRoom {
  const { what, free, minimumBytes, everyMs, log } = options;
  let level: RoomLevel = "enough";
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const levelOf = (bytes: number): RoomLevel => {
    if (bytes >= minimumBytes) return "enough";
    return bytes < minimumBytes / 2 ? "spent" : "low";
  };

  async function look(): Promise<void> {
    try {
      const bytes = await free();
      const now = levelOf(bytes);
      if (now !== level)
        log.warn({ room: now, freeMb: Math.floor(bytes / 2 ** 20) }, `the free space of ${what} has changed`);
      level = now;
    } catch (error) {
      // What was seen last goes on to hold.
      log.warn({ err: error }, `the free space of ${what} could not be measured`);
    }
    if (!stopped) timer = setTimeout(() => runInBackground(look()), everyMs).unref();
  }

  return {
    level: () => level,
    start: look,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
