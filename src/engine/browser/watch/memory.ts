/**
 * Bounds what the processes of a browser hold: each renderer by itself, and the browser's own together. Heap limits inside V8 do
 * not count buffers; this does. Knows pids, not pages.
 */
import { runInBackground } from "../../../background.js";
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { findFiller } from "./filler.js";
import { takeFromIdle } from "./idle-group.js";
import { type MeasuredProcess, signal } from "./processes.js";

/** The browser's own processes together; some 400 MB when young, since they share pages that are counted for each. */
const OWN_MAX_BYTES = 1_024 * 1024 * 1024;
/** Of them, past which no run is worth the machine. */
const OWN_HARD_MAX_BYTES = 2 * OWN_MAX_BYTES;
/** What is given back does not always come back at once: only what grew by so much since is looked into again. */
const OWN_STEP_BYTES = 128 * 1024 * 1024;
/** By so much in so long they grow with nothing but a run that fills them, which costs all others the machine's memory bandwidth. */
const OWN_RUSH_BYTES = 192 * 1024 * 1024;
const RUSH_MS = 1_000;
/** A process that starts, a renderer to be among them, takes as much in its first moments by itself. */
const GROWN_UP_MS = 2_000;
/** What a renderer that fills anything computes at least between two looks: the others are left in peace. */
const FILLING_SPENT_MS = 20;

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
  /** What each of the browser's own processes held at the looks of the last RUSH_MS, and since when each is there. */
  let held: { at: number; byPid: Map<number, number> }[] = [];
  let since = new Map<number, number>();
  /** What each renderer had spent at the last look. */
  let spentBefore = new Map<number, number>();

  /** Those that are ended and not gone yet: what they held is given back slowly where the machine is busy. */
  let dying = new Set<number>();

  function end(pid: number): void {
    endedAt = Date.now();
    dying.add(pid);
    signal(pid, "SIGKILL");
    runInBackground(takeFromIdle(pid));
  }

  /** Whether those that were there before have grown in a rush, as nothing does that means no harm. */
  function rushes(own: readonly MeasuredProcess[]): boolean {
    const now = performance.now();
    since = new Map(own.map(({ pid }) => [pid, since.get(pid) ?? now]));
    const grownUp = own.filter(({ pid }) => now - since.get(pid)! >= GROWN_UP_MS);
    held = held.filter(({ at }) => now - at < RUSH_MS);
    held.push({ at: now, byPid: new Map(grownUp.map(({ pid, residentBytes }) => [pid, residentBytes])) });
    const before = held[0]!.byPid;
    const growth = grownUp.map(({ pid, residentBytes }) => residentBytes - (before.get(pid) ?? residentBytes));
    return growth.reduce((sum, bytes) => sum + bytes, 0) >= OWN_RUSH_BYTES;
  }

  /** Those that have computed enough since the last look to have filled anything, the busiest first. */
  function suspectsAmong(renderers: readonly MeasuredProcess[]): number[] {
    const spent = renderers.map(({ pid, spent: now }) => ({ pid, spent: now - (spentBefore.get(pid) ?? 0) }));
    spentBefore = new Map(renderers.map((one) => [one.pid, one.spent]));
    const filling = spent.filter((one) => one.spent >= FILLING_SPENT_MS);
    return filling.sort((one, other) => other.spent - one.spent).map(({ pid }) => pid);
  }

  /** What runs store with the browser itself, blobs first of all, is bounded as what they hold themselves. */
  async function lookIntoOwn(own: readonly MeasuredProcess[], suspects: number[]): Promise<void> {
    if (ownBytes > OWN_HARD_MAX_BYTES) return endBrowser();
    if (!rushes(own) && ownBytes < lookIntoAt) {
      lookIntoAt = Math.max(OWN_MAX_BYTES, Math.min(lookIntoAt, ownBytes + OWN_STEP_BYTES));
      return;
    }
    if (suspects.length === 0) return;
    const filler = await findFiller(suspects, { id: group, own: own.map(({ pid }) => pid) });
    if (filler !== null) end(filler);
    lookIntoAt = ownBytes + OWN_STEP_BYTES;
    held = [];
  }

  return {
    async look(processes) {
      const own: MeasuredProcess[] = [];
      const renderers: MeasuredProcess[] = [];
      ownBytes = 0;
      dying = new Set(processes.flatMap(({ pid }) => (dying.has(pid) ? [pid] : [])));
      if (dying.size > 0) endedAt = Date.now();
      for (const one of processes) {
        const { pid, renderer, residentBytes } = one;
        if (!renderer) {
          ownBytes += residentBytes;
          own.push(one);
        } else if (residentBytes > RENDERER_MAX_BYTES) end(pid);
        else renderers.push(one);
      }
      await lookIntoOwn(own, suspectsAmong(renderers));
    },
    endedAt: () => endedAt,
    overgrown: () => ownBytes > OWN_MAX_BYTES,
  };
}
