/**
 * Processes items in batches, for work that takes nearly as long for one item as for many, such as a transaction. Items
 * that are added while a batch is processed form the next batch. An item that is added at another time is processed at
 * once.
 */
import { runInBackground } from "../background.js";

export interface BatchProcessor<Item, Result> {
  /** Adds an item to the next batch, and resolves with its result. @throws errors of `processBatch` */
  add(item: Item): Promise<Result>;
}

interface WaitingItem<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

export function createBatchProcessor<Item, Result>(options: {
  /** Processes all items or none. Resolves with the results in the order of the items. */
  processBatch: (items: readonly Item[]) => Promise<readonly Result[]>;
  maxItems: number;
  maxConcurrentCalls: number;
  /**
   * Returns true if a single item may have caused the error, and `processBatch` has written nothing. Each item of the
   * batch is then processed in a call of its own.
   */
  isCausedByOneItem: (error: unknown) => boolean;
}): BatchProcessor<Item, Result> {
  const { processBatch: work, maxItems, maxConcurrentCalls, isCausedByOneItem } = options;
  let waiting: WaitingItem<Item, Result>[] = [];
  let activeCalls = 0;
  let isStartScheduled = false;

  async function processBatch(batch: readonly WaitingItem<Item, Result>[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      for (const [place, { resolve }] of batch.entries()) resolve(results[place]!);
    } catch (error) {
      if (batch.length > 1 && isCausedByOneItem(error))
        await Promise.all(batch.map((waiter) => processBatch([waiter])));
      else for (const { reject } of batch) reject(error);
    }
  }

  function startBatch(): void {
    isStartScheduled = false;
    while (waiting.length > 0 && activeCalls < maxConcurrentCalls) {
      const batch = waiting.slice(0, maxItems);
      waiting = waiting.slice(maxItems);
      activeCalls += 1;
      runInBackground(
        processBatch(batch).then(() => {
          activeCalls -= 1;
          startBatch();
        }),
      );
    }
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        // The call of `processBatch` is deferred, so that the batch includes items that are added in the same turn of
        // the event loop.
        if (isStartScheduled || activeCalls >= maxConcurrentCalls) return;
        isStartScheduled = true;
        setImmediate(startBatch);
      });
    },
  };
}
