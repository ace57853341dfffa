/**
 * Processes items in batches, for work that takes nearly as long for one item as for many, such as a transaction. Items that are added
 * during a batch wait for the next batch. Each batch takes items of different keys in turn, so that a key with many items delays only
 * itself.
 */
import { runInBackground } from "../background.js";

interface BatchProcessor<Item, Result> {
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
  /** Returns the key of an item, such as the ID of its app. Without this function, all items have the same key. */
  keyOf?: (item: Item) => number;
  /** Returns the expected cost of an item. A batch takes no further item when its items' costs reach `maxCost` in total. */
  costOf?: (item: Item) => number;
  maxCost?: number;
  /** True if nothing was written, and one item may have caused the error. Then `processBatch` is called for each item separately. */
  isCausedByOneItem: (error: unknown) => boolean;
  /**
   * True if nothing was written, and the items of one key may have caused the error. Then `processBatch` is called for each key separately.
   */
  isCausedByOneKey?: (error: unknown) => boolean;
}): BatchProcessor<Item, Result> {
  const { processBatch: work, maxItems, maxConcurrentCalls, isCausedByOneItem } = options;
  const { keyOf = () => 0, costOf = () => 0, maxCost = 1, isCausedByOneKey = () => false } = options;
  /** Waiting items by key. The next item of a batch comes from the first key, which then moves to the end. */
  const waiting = new Map<number, Set<WaitingItem<Item, Result>>>();
  let activeCalls = 0;
  let isStartScheduled = false;

  async function processBatch(batch: readonly WaitingItem<Item, Result>[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]!);
    } catch (error) {
      if (batch.length > 1 && isCausedByOneItem(error))
        await Promise.all(batch.map((waiter) => processBatch([waiter])));
      else if (batch.length > 1 && isCausedByOneKey(error)) await processBatchByKey(batch, error);
      else for (const { reject } of batch) reject(error);
    }
  }

  async function processBatchByKey(batch: readonly WaitingItem<Item, Result>[], error: unknown): Promise<void> {
    const batches = [...Map.groupBy(batch, ({ item }) => keyOf(item)).values()];
    if (batches.length === 1) for (const { reject } of batch) reject(error);
    else for (const batchOfKey of batches) await processBatch(batchOfKey);
  }

  function takeBatch(): WaitingItem<Item, Result>[] {
    const batch: WaitingItem<Item, Result>[] = [];
    for (let cost = 0; batch.length < maxItems && cost < maxCost; ) {
      const [next] = waiting;
      if (!next) break;
      const [key, items] = next;
      const [waiter] = items;
      items.delete(waiter!);
      waiting.delete(key);
      if (items.size > 0) waiting.set(key, items);
      batch.push(waiter!);
      cost += costOf(waiter!.item);
    }
    return batch;
  }

  function startBatch(): void {
    isStartScheduled = false;
    while (waiting.size > 0 && activeCalls < maxConcurrentCalls) {
      const batch = takeBatch();
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
        const key = keyOf(item);
        waiting.set(key, (waiting.get(key) ?? new Set()).add({ item, resolve, reject }));
        // The batch starts later, so that it includes items that are added in the same turn of the event loop.
        if (isStartScheduled || activeCalls >= maxConcurrentCalls) return;
        isStartScheduled = true;
        setImmediate(startBatch);
      });
    },
  };
}
