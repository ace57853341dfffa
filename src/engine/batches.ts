/**
 * Processes items together whose cost is nearly the same for one as for many. Items that arrive during a call form the
 * next batch. A single item does not wait.
 */
import { runInBackground } from "../background.js";

export interface Batches<Item, Result> {
  /** Processes the item, together with others that have arrived. @throws errors of the work */
  add(item: Item): Promise<Result>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

export function createBatches<Item, Result>(options: {
  /** Processes all items or none. Returns results in their order. */
  work: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Largest number of items that are processed together. */
  most: number;
  /** Number of concurrent calls of `work`. */
  atOnce: number;
  /** True if a single item may have caused the failure, and nothing was written. Each item is then tried alone. */
  isOfOne: (error: unknown) => boolean;
}): Batches<Item, Result> {
  const { work, most, atOnce, isOfOne } = options;
  let waiting: Waiting<Item, Result>[] = [];
  let underWay = 0;
  let called = false;

  async function processBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      for (const [place, { resolve }] of batch.entries()) resolve(results[place]!);
    } catch (error) {
      if (batch.length > 1 && isOfOne(error)) await Promise.all(batch.map((waiter) => processBatch([waiter])));
      else for (const { reject } of batch) reject(error);
    }
  }

  function startBatch(): void {
    called = false;
    while (waiting.length > 0 && underWay < atOnce) {
      const batch = waiting.slice(0, most);
      waiting = waiting.slice(most);
      underWay += 1;
      runInBackground(
        processBatch(batch).then(() => {
          underWay -= 1;
          startBatch();
        }),
      );
    }
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        // The call is deferred, so that other items of this turn of the event loop are included.
        if (called || underWay >= atOnce) return;
        called = true;
        setImmediate(startBatch);
      });
    },
  };
}
