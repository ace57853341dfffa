/**
 * Notices that a browser still works although no run is under way: what goes on then was left by one. Knows pids, not pages.
 */
import { type BrowserProcess, type MeasuredProcess } from "./processes.js";

/** Several are long enough for a page to be renewed, a context to be thrown away, and their memory to be collected. */
const WINDOW_MS = 1_000;
const WINDOWS_BUSY = 3;
/** Of a window. */
const BUSY_SHARE = 0.5;

export interface Idleness {
  /** To be called often while no run is under way. */
  look(): Promise<void>;
  /** A run is under way: what was seen before counts no more. */
  forget(): void;
}

/** `processes`: asked at the end of each window. `onBusy`: gets one that was busy for several windows in a row. */
export function watchIdleness(
  processes: () => Promise<MeasuredProcess[]>,
  onBusy: (one: BrowserProcess) => void,
): Idleness {
  let begunAt = 0;
  let before = new Map<number, { spent: number; busy: number }>();

  async function endWindow(window: number): Promise<void> {
    const next: typeof before = new Map();
    for (const one of await processes()) {
      const { pid, spent } = one;
      const was = before.get(pid);
      const isBusy = was !== undefined && spent - was.spent >= BUSY_SHARE * window;
      const busy = isBusy ? was.busy + 1 : 0;
      next.set(pid, { spent, busy });
      if (busy >= WINDOWS_BUSY) onBusy(one);
    }
    before = next;
  }

  return {
    async look() {
      const now = Date.now();
      if (now - begunAt < WINDOW_MS) return;
      const window = now - begunAt;
      begunAt = now;
      await endWindow(window);
    },
    forget() {
      before.clear();
    },
  };
}
