/**
 * Watches from outside what a browser's renderers hold in memory, and kills one that holds too much. Heap limits inside
 * V8 do not count buffers; this does. Knows pids, not pages.
 */
import { readFile } from "node:fs/promises";
import type { Chromium } from "./chromium.js";
import { watchFloods } from "./flood-watch.js";
import { createPriorities } from "./priorities.js";

/** No run takes more: heap, buffers, canvases, everything its process holds. */
export const RENDERER_MAX_BYTES = 512 * 1024 * 1024;
/** The browser's own processes together; some 400 MB when young, since they share pages that are counted for each. */
const OWN_MAX_BYTES = 1_024 * 1024 * 1024;
const INTERVAL_MS = 200;
const PAGE_BYTES = 4_096;
/** How long after a kill a crash is put down to it. */
const BLAME_MS = 2_000;

export interface MemoryWatch {
  /** What a crash that is reported now comes from: memory, by this watch's kill or V8 at its limit; a flood; or neither. */
  blame(): "memory" | "flood" | null;
  /** Whether the browser's own processes, which serve all runs, have grown so large that it should be replaced. */
  overgrown(): boolean;
  stop(): void;
}

async function residentBytes(pid: number): Promise<number> {
  try {
    return Number((await readFile(`/proc/${pid}/statm`, "latin1")).split(" ")[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

const BLIND: MemoryWatch = { blame: () => null, overgrown: () => false, stop: () => {} };

/**
 * Looks every 200 ms while `active` says that something runs. Does nothing where there is no /proc, and nothing to somebody else's
 * browser: its process ids may be other processes here.
 */
export function watchMemory(chromium: Chromium, active: () => boolean): MemoryWatch {
  if (chromium.pid === null) return BLIND;
  const floods = watchFloods(chromium, active);
  const priorities = createPriorities();
  let killedAt = 0;
  let looking = false;
  let ownBytes = 0;

  async function look(): Promise<void> {
    const { processInfo } = await chromium.connection.send("SystemInfo.getProcessInfo");
    priorities.look(
      processInfo
        .filter(({ type }) => type === "renderer")
        .map(({ id: pid, cpuTime: cpuSeconds }) => ({ pid, cpuSeconds })),
    );
    let own = 0;
    for (const { id, type } of processInfo) {
      const bytes = await residentBytes(id);
      if (type !== "renderer") own += bytes;
      else if (bytes > RENDERER_MAX_BYTES) {
        killedAt = Date.now();
        process.kill(id, "SIGKILL");
      }
    }
    ownBytes = own;
  }

  const timer = setInterval(() => {
    if (looking || !active()) return;
    looking = true;
    look()
      // The process went by itself, or the browser is going: nothing to watch any more.
      .catch(() => {})
      .finally(() => {
        looking = false;
      });
  }, INTERVAL_MS);

  return {
    blame() {
      if (floods.toBlame()) return "flood";
      return Date.now() - Math.max(killedAt, chromium.exhaustedAt()) < BLAME_MS ? "memory" : null;
    },
    overgrown: () => ownBytes > OWN_MAX_BYTES,
    stop() {
      clearInterval(timer);
      floods.stop();
    },
  };
}
