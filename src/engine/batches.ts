/**
 * Work that costs nearly the same for one item as for many: what comes while it is under way is gathered, and done together next. Who
 * comes alone waits for nobody. Knows not what is done.
 */
import { runInBackground } from "../background.js";

export interface Batches<Item, Result> {
  /** Does the item, with others where others came. @throws what its work throws */
  add(item: Item): Promise<Result>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

export function createBatches<Item, Result>(options: {
  /** Does all of them, or none; answers in their order. */
  work: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Items that are done together at most. */
  most: number;
  /** How often `work` is under way at once. */
  atOnce: number;
  /** Whether one item may be to blame for the failure, so that nothing was done: then each is tried by itself. */
  isOfOne: (error: unknown) => boolean;
}): Batches<Item, Result> {
  const { work, most, atOnce, isOfOne } = options;
  let waiting: Waiting<Item, Result>[] = [];
  let underWay = 0;
  let called = false;

  async function workOn(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      for (const [place, { resolve }] of batch.entries()) resolve(results[place]!);
    } catch (error) {
      if (batch.length > 1 && isOfOne(error)) await Promise.all(batch.map((one) => workOn([one])));
      else for (const { reject } of batch) reject(error);
    }
  }

  function begin(): void {
    called = false;
    while (waiting.length > 0 && underWay < atOnce) {
      const batch = waiting.slice(0, most);
      waiting = waiting.slice(most);
      underWay += 1;
      runInBackground(
        workOn(batch).then(() => {
          underWay -= 1;
          begin();
        }),
      );
    }
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        // Not at once: what else this turn of the event loop brings goes along.
        if (called || underWay >= atOnce) return;
        called = true;
        setImmediate(begin);
      });
    },
  };
}
