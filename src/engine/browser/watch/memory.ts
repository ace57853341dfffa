/**
 * Bounds what the processes of a browser hold: each renderer by itself, and the browser's own together. Heap limits inside V8 do
 * not count buffers; this does. Knows pids, not pages.
 */
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { findFiller } from "./filler.js";
import { type MeasuredProcess, signal } from "./processes.js";

/** The browser's own processes together; some 400 MB when young, since they share pages that are counted for each. */
const OWN_MAX_BYTES = 1_024 * 1024 * 1024;
/** Of them, past which no run is worth the machine. */
const OWN_HARD_MAX_BYTES = 2 * OWN_MAX_BYTES;
/** What is given back does not always come back at once: only what grew by so much since is looked into again. */
const OWN_STEP_BYTES = 128 * 1024 * 1024;

export interface MemoryBound {
  /** Ends the renderer that holds too much, or that fills the browser. */
  look(processes: readonly MeasuredProcess[]): Promise<void>;
  /** When it last ended one; Unix time in milliseconds, 0 for never. */
  endedAt(): number;
  /** Whether the browser's own processes hold so much that it should be replaced. */
  overgrown(): boolean;
}

/** `group`: the browser's process group. `endBrowser`: the last resort. */
export function boundMemory(group: number, endBrowser: () => Promise<void>): MemoryBound {
  let endedAt = 0;
  let ownBytes = 0;
  let lookIntoAt = OWN_MAX_BYTES;

  function end(pid: number): void {
    endedAt = Date.now();
    signal(pid, "SIGKILL");
  }

  /** What runs store with the browser itself, blobs first of all, is bounded as what they hold themselves. */
  async function lookIntoOwn(own: number[], renderers: number[]): Promise<void> {
    if (ownBytes > OWN_HARD_MAX_BYTES) return endBrowser();
    if (ownBytes < lookIntoAt) {
      lookIntoAt = Math.max(OWN_MAX_BYTES, Math.min(lookIntoAt, ownBytes + OWN_STEP_BYTES));
      return;
    }
    const filler = await findFiller(renderers, { id: group, own });
    if (filler !== null) end(filler);
    lookIntoAt = ownBytes + OWN_STEP_BYTES;
  }

  return {
    async look(processes) {
      const own: number[] = [];
      const renderers: number[] = [];
      ownBytes = 0;
      for (const { pid, renderer, residentBytes } of processes) {
        if (!renderer) ownBytes += residentBytes;
        if (renderer && residentBytes > RENDERER_MAX_BYTES) end(pid);
        else (renderer ? renderers : own).push(pid);
      }
      await lookIntoOwn(own, renderers);
    },
    endedAt: () => endedAt,
    overgrown: () => ownBytes > OWN_MAX_BYTES,
  };
}
