/**
 * Watches from outside what a browser's renderers hold in memory, and kills one that holds too much. Heap limits inside
 * V8 do not count buffers; this does. Knows pids, not pages.
 */
import type { Logger } from "pino";
import type { Chromium } from "../processes/chromium.js";
import { watchFloods } from "./floods.js";
import { watchIdleness } from "./idleness.js";
import { findFiller, residentBytes } from "./own-memory.js";
import { createPriorities } from "./priorities.js";

/** No run takes more: heap, buffers, canvases, everything its process holds. */
export const RENDERER_MAX_BYTES = 512 * 1024 * 1024;
/** The browser's own processes together; some 400 MB when young, since they share pages that are counted for each. */
const OWN_MAX_BYTES = 1_024 * 1024 * 1024;
/** Of them, past which no run is worth the machine. */
const OWN_HARD_MAX_BYTES = 2 * OWN_MAX_BYTES;
/** What is given back does not always come back at once: only what grew by so much since is looked into again. */
const OWN_STEP_BYTES = 128 * 1024 * 1024;
const INTERVAL_MS = 200;
/** How long after a kill a crash is put down to it. */
const BLAME_MS = 2_000;

export interface MemoryWatch {
  /** What a crash that is reported now comes from: memory, by this watch's kill or V8 at its limit; a flood; or neither. */
  blame(): "memory" | "flood" | null;
  /** Whether the browser's own processes, which serve all runs, have grown so large that it should be replaced. */
  overgrown(): boolean;
  stop(): void;
}

const BLIND: MemoryWatch = { blame: () => null, overgrown: () => false, stop: () => {} };

/**
 * Looks every 200 ms while `active` says that something runs. Does nothing where there is no /proc, and nothing to somebody else's
 * browser: its process ids may be other processes here.
 */
export function watchMemory(chromium: Chromium, active: () => boolean, log: Logger): MemoryWatch {
  if (chromium.pid === null) return BLIND;
  const floods = watchFloods(chromium, active);
  const priorities = createPriorities();
  let killedAt = 0;
  let looking = false;
  let ownBytes = 0;
  let lookedIntoAt = OWN_MAX_BYTES;

  function kill(pid: number): void {
    killedAt = Date.now();
    process.kill(pid, "SIGKILL");
  }

  async function look(): Promise<void> {
    const { processInfo } = await chromium.connection.send("SystemInfo.getProcessInfo");
    priorities.look(
      processInfo
        .filter(({ type }) => type === "renderer")
        .map(({ id: pid, cpuTime: cpuSeconds }) => ({ pid, cpuSeconds })),
    );
    const own: number[] = [];
    const renderers: number[] = [];
    ownBytes = 0;
    for (const { id, type } of processInfo) {
      const bytes = await residentBytes(id);
      if (type !== "renderer") {
        own.push(id);
        ownBytes += bytes;
      } else if (bytes > RENDERER_MAX_BYTES) kill(id);
      else renderers.push(id);
    }
    await lookInto(own, renderers);
  }

  /** What runs store with the browser itself, blobs first of all, is bounded as what they hold themselves. */
  async function lookInto(own: number[], renderers: number[]): Promise<void> {
    if (ownBytes > OWN_HARD_MAX_BYTES) return chromium.stop();
    if (ownBytes < lookedIntoAt) {
      lookedIntoAt = Math.max(OWN_MAX_BYTES, Math.min(lookedIntoAt, ownBytes + OWN_STEP_BYTES));
      return;
    }
    const filler = await findFiller(own, renderers);
    if (filler !== null) kill(filler);
    lookedIntoAt = ownBytes + OWN_STEP_BYTES;
  }

  async function processes() {
    const { processInfo } = await chromium.connection.send("SystemInfo.getProcessInfo");
    return processInfo.map(({ id, type }) => ({ pid: id, renderer: type === "renderer" }));
  }

  const idleness = watchIdleness(processes, ({ pid, renderer }) => {
    log.warn(
      { browser: chromium.pid, pid, renderer },
      "a process of the browser went on working after the last run; it is ended",
    );
    if (renderer) process.kill(pid, "SIGKILL");
    else void chromium.stop();
  });

  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    Promise.all([idleness.look(active()), active() ? look() : null])
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
