/** A line before few places, in which keys take turns, so that one who asks often waits behind himself alone. Knows not what is done in a place. */

export type LineKey = number | string;

export interface FairLine {
  /** Waits for its turn. @returns what leaves the place */
  enter(key: LineKey): Promise<() => void>;
}

/** @param places in all @param placesOfOne of them, for one key */
export function createFairLine(places: number, placesOfOne: number): FairLine {
  /** In the order of turns: a key that has had its turn goes to the end. */
  const waiting = new Map<LineKey, (() => void)[]>();
  const inside = new Map<LineKey, number>();
  let taken = 0;

  const mayEnter = (key: LineKey) => taken < places && (inside.get(key) ?? 0) < placesOfOne;

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
      const call = calls.shift()!;
      waiting.delete(key);
      if (calls.length > 0) waiting.set(key, calls);
      call();
      return;
    }
  }

  return {
    async enter(key) {
      if (mayEnter(key) && !waiting.has(key)) return take(key);
      return new Promise((resolve) => {
        const calls = waiting.get(key) ?? [];
        calls.push(() => resolve(take(key)));
        waiting.set(key, calls);
      });
    },
  };
}
