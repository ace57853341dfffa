/** Fair semaphore: round-robin over keys, so that a key with many requests only delays itself. Knows no work. */

export type LineKey = number | string;

export interface FairLine {
  /**
   * Waits for a slot.
   * @param gone makes the signal that takes the request out of the line; it is called only if the request has to wait
   * @returns a function that frees the slot
   * @throws the signal's reason
   */
  enter(key: LineKey, gone?: () => AbortSignal): Promise<() => void>;
}

/** True if a key with `own` units may have `more`: never more than half of what the other keys leave, so that the next key finds some. */
export function leavesHalf(total: number, taken: number, own: number, more: number): boolean {
  return own + more <= Math.ceil((total - (taken - own)) / 2);
}

/**
 * @param places slots in total
 * @param placesOfOne slots that one key may hold
 * @param shares "halved": a key also holds at most half of the slots that others leave
 */
export function createFairLine(places: number, placesOfOne: number, shares: "equal" | "halved" = "equal"): FairLine {
  /** In the order of turns: a key that got a slot goes to the end. */
  const waiting = new Map<LineKey, Set<() => void>>();
  const inside = new Map<LineKey, number>();
  let taken = 0;

  function mayEnter(key: LineKey): boolean {
    const own = inside.get(key) ?? 0;
    if (taken >= places || own >= placesOfOne) return false;
    return shares === "equal" || leavesHalf(places, taken, own, 1);
  }

  function take(key: LineKey): () => void {
    taken += 1;
    inside.set(key, (inside.get(key) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      taken -= 1;
      if (inside.get(key) === 1) inside.delete(key);
      else inside.set(key, inside.get(key)! - 1);
      callNext();
    };
  }

  function callNext(): void {
    for (const [key, calls] of waiting) {
      if (!mayEnter(key)) continue;
      const [call] = calls;
      waiting.delete(key);
      calls.delete(call!);
      if (calls.size > 0) waiting.set(key, calls);
      call!();
      return;
    }
  }

  /** Adds a request to the line. */
  function wait(key: LineKey, signal: AbortSignal | undefined): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const calls = waiting.get(key) ?? new Set();
      const call = () => {
        signal?.removeEventListener("abort", drop);
        resolve(take(key));
      };
      const drop = () => {
        const line = waiting.get(key);
        line?.delete(call);
        if (line?.size === 0) waiting.delete(key);
        reject(signal!.reason as Error);
      };
      waiting.set(key, calls.add(call));
      signal?.addEventListener("abort", drop, { once: true });
    });
  }

  return {
    async enter(key, gone) {
      if (mayEnter(key) && !waiting.has(key)) return take(key);
      const signal = gone?.();
      signal?.throwIfAborted();
      return wait(key, signal);
    },
  };
}
