/**
 * Notices that a browser still works although no run is under way: what goes on then was left by one. Knows pids, not pages.
 */
import { spentMs } from "./own-memory.js";

/** Long enough for a page to be renewed, a context to be thrown away, and their memory to be collected. */
const WINDOW_MS = 1_000;
const BUSY_SHARE = 0.5;
const WINDOWS_BUSY = 3;

export interface IdleWatch {
  /** To be called often. `active`: a run is under way. */
  look(active: boolean): Promise<void>;
}

/** `processes`: those of the browser, asked when a window begins. `onBusy`: one that was busy for several windows in a row. */
export function watchIdleness(
  processes: () => Promise<{ pid: number; renderer: boolean }[]>,
  onBusy: (one: { pid: number; renderer: boolean }) => void,
): IdleWatch {
  let begun = 0;
  let before = new Map<number, number>();
  let busy = new Map<number, number>();

  return {
    async look(active) {
      const now = Date.now();
      if (active) {
        begun = 0;
        busy = new Map();
        return;
      }
      if (now - begun < WINDOW_MS) return;
      const window = now - begun;
      const first = begun === 0;
      begun = now;
      const present = await processes();
      const spent = new Map<number, number>();
      const next = new Map<number, number>();
      for (const one of present) {
        const all = await spentMs(one.pid);
        spent.set(one.pid, all);
        const was = before.get(one.pid);
        if (first || was === undefined || all - was < BUSY_SHARE * window) continue;
        const times = (busy.get(one.pid) ?? 0) + 1;
        next.set(one.pid, times);
        if (times >= WINDOWS_BUSY) onBusy(one);
      }
      before = spent;
      busy = next;
    },
  };
}
