/** Counts places: who comes when none is free waits in line. Knows nothing of what a place is for. */

export interface Place {
  release(): void;
}

export interface Slots {
  /** Waits for a place, first come first served. @returns null when the signal fired first */
  take(signal?: AbortSignal): Promise<Place | null>;
  free(): number;
}

export function createSlots(total: number): Slots {
  const waiting = new Set<() => void>();
  let taken = 0;

  function place(): Place {
    let held = true;
    return {
      release() {
        if (!held) return;
        held = false;
        const [next] = waiting;
        if (next === undefined) taken -= 1;
        else {
          waiting.delete(next);
          next();
        }
      },
    };
  }

  return {
    async take(signal) {
      if (signal?.aborted) return null;
      if (taken < total) {
        taken += 1;
        return place();
      }
      return new Promise((resolve) => {
        const abort = () => {
          waiting.delete(enter);
          resolve(null);
        };
        const enter = () => {
          signal?.removeEventListener("abort", abort);
          resolve(place());
        };
        waiting.add(enter);
        signal?.addEventListener("abort", abort, { once: true });
      });
    },
    free: () => Math.max(0, total - taken),
  };
}
