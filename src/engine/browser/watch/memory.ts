/**
 * Limits the memory of a browser's processes: of each renderer, and of the browser's own processes together. V8's heap limits do not count
 * buffers; these limits do.
 */
import { runInBackground } from "../../../background.js";
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { findFiller } from "./filler.js";
import { takeFromIdle } from "./idle-group.js";
import { type MeasuredProcess, signal } from "./processes.js";

/** Limit for the browser's own processes together. They start at about 400 MB, since shared pages are counted for each. */
const OWN_MAX_BYTES = 1_024 * 1024 * 1024;
/** Limit at which the whole browser is ended. */
const OWN_HARD_MAX_BYTES = 2 * OWN_MAX_BYTES;
/** Growth after which the next search starts, since freed memory is returned late. */
const OWN_STEP_BYTES = 128 * 1024 * 1024;
/** Growth within RUSH_MS that only a run causes which fills the browser. It takes the memory bandwidth of all other runs. */
const OWN_RUSH_BYTES = 192 * 1024 * 1024;
const RUSH_MS = 1_000;
/** Age up to which a process may grow as fast, since it is starting. */
const GROWN_UP_MS = 2_000;
/** Minimum processor time between two checks of a renderer that may fill the browser. Others are not paused. */
const FILLING_SPENT_MS = 20;

export interface MemoryBound {
  /** Ends a renderer with too much memory, or one that fills the browser. */
  look(processes: readonly MeasuredProcess[]): Promise<void>;
  /** Time of the last kill; Unix time in milliseconds, 0 for never. */
  endedAt(): number;
  /** True if the browser's own processes hold so much memory that the browser should be replaced. */
  overgrown(): boolean;
}

/** @param group the browser's process group @param endBrowser ends the browser at the hard limit */
export function boundMemory(group: number, endBrowser: () => Promise<void>): MemoryBound {
  let endedAt = 0;
  let ownBytes = 0;
  let searchAt = OWN_MAX_BYTES;
  /** Memory of the browser's own processes at the checks of the last RUSH_MS, and the time since when each exists. */
  let held: { at: number; byPid: Map<number, number> }[] = [];
  let since = new Map<number, number>();
  /** Processor time of each renderer at the last check. */
  let spentBefore = new Map<number, number>();

  /** Killed processes that still exist: a busy machine frees their memory slowly. */
  let dying = new Set<number>();

  function end(pid: number): void {
    endedAt = Date.now();
    dying.add(pid);
    signal(pid, "SIGKILL");
    runInBackground(takeFromIdle(pid));
  }

  /** True if the existing processes grew faster than any well-behaved run makes them. */
  function growsFast(own: readonly MeasuredProcess[]): boolean {
    const now = performance.now();
    since = new Map(own.map(({ pid }) => [pid, since.get(pid) ?? now]));
    const grownUp = own.filter(({ pid }) => now - since.get(pid)! >= GROWN_UP_MS);
    held = held.filter(({ at }) => now - at < RUSH_MS);
    held.push({ at: now, byPid: new Map(grownUp.map(({ pid, residentBytes }) => [pid, residentBytes])) });
    const before = held[0]!.byPid;
    const growth = grownUp.map(({ pid, residentBytes }) => residentBytes - (before.get(pid) ?? residentBytes));
    return growth.reduce((sum, bytes) => sum + bytes, 0) >= OWN_RUSH_BYTES;
  }

  /** Renderers that have computed enough since the last check to fill the browser, the busiest first. */
  function suspectsAmong(renderers: readonly MeasuredProcess[]): number[] {
    const spent = renderers.map(({ pid, spent: now }) => ({ pid, spent: now - (spentBefore.get(pid) ?? 0) }));
    spentBefore = new Map(renderers.map((one) => [one.pid, one.spent]));
    const filling = spent.filter((one) => one.spent >= FILLING_SPENT_MS);
    return filling.sort((one, other) => other.spent - one.spent).map(({ pid }) => pid);
  }

  /** Limits what runs store in the browser's own processes, such as blobs. */
  async function checkOwn(own: readonly MeasuredProcess[], suspects: number[]): Promise<void> {
    if (ownBytes > OWN_HARD_MAX_BYTES) return endBrowser();
    if (!growsFast(own) && ownBytes < searchAt) {
      searchAt = Math.max(OWN_MAX_BYTES, Math.min(searchAt, ownBytes + OWN_STEP_BYTES));
      return;
    }
    if (suspects.length === 0) return;
    const filler = await findFiller(suspects, { id: group, own: own.map(({ pid }) => pid) });
    if (filler !== null) end(filler);
    searchAt = ownBytes + OWN_STEP_BYTES;
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
      await checkOwn(own, suspectsAmong(renderers));
    },
    endedAt: () => endedAt,
    overgrown: () => ownBytes > OWN_MAX_BYTES,
  };
}
