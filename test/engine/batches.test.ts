/** Tests batches. Items that arrive together are processed together, but each item has its own result. */
import { expect } from "chai";
import { createBatchProcessor } from "../../src/engine/batches.js";

class AwayError extends Error {}
class SlowError extends Error {}

/**
 * Creates a batch processor that doubles numbers. The key of a number is a tenth of it, its cost is the number itself. Each batch waits
 * until the test calls `go`, and fails if it contains a negative number.
 */
function createDoublingBatches({ maxItems = 10, concurrency = 1, maxCost = 1_000 } = {}) {
  const calls: { items: readonly number[]; go: (error?: Error) => void }[] = [];
  let called = Promise.withResolvers<void>();
  const batches = createBatchProcessor<number, number>({
    maxItems,
    maxConcurrentCalls: concurrency,
    keyOf: (item) => Math.floor(item / 10),
    costOf: (item) => item,
    maxCost,
    isCausedByOneItem: (error) => !(error instanceof AwayError || error instanceof SlowError),
    isCausedByOneKey: (error) => error instanceof SlowError,
    async processBatch(items) {
      await new Promise<void>((resolve, reject) => {
        calls.push({ items, go: (error) => (error ? reject(error) : resolve()) });
        called.resolve();
        called = Promise.withResolvers();
      });
      if (items.some((item) => item < 0)) throw new Error("negative");
      return items.map((item) => 2 * item);
    },
  });
  const waitForCalls = async (count: number) => {
    while (calls.length < count) await called.promise;
  };
  return { batches, calls, waitForCalls };
}

describe("batches", () => {
  it("process together what arrives in one turn, and each caller gets its own answer", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches();
    const answers = [1, 2, 3].map((item) => batches.add(item));
    await waitForCalls(1);
    expect(calls[0]!.items).to.deep.equal([1, 2, 3]);
    calls[0]!.go();
    expect(await Promise.all(answers)).to.deep.equal([2, 4, 6]);
  });

  it("collect what arrives while the maximum is in progress, with at most `maxItems` at once", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches({ maxItems: 2 });
    const first = batches.add(1);
    await waitForCalls(1);
    const rest = [2, 3, 4].map((item) => batches.add(item));
    calls[0]!.go();
    expect(await first).to.equal(2);
    await waitForCalls(2);
    calls[1]!.go();
    await waitForCalls(3);
    calls[2]!.go();
    expect(await Promise.all(rest)).to.deep.equal([4, 6, 8]);
    expect(calls.map(({ items }) => items)).to.deep.equal([[1], [2, 3], [4]]);
  });

  it("process each item alone if one may have caused an error, so that the others succeed", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches();
    const answers = Promise.allSettled([1, -2, 3].map((item) => batches.add(item)));
    await waitForCalls(1);
    calls[0]!.go();
    await waitForCalls(4);
    for (const { go } of calls.slice(1)) go();
    expect((await answers).map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    expect(calls.slice(1).map(({ items }) => items)).to.deep.equal([[1], [-2], [3]]);
  });

  it("take items of different keys in turn, in the order of each key", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches({ maxItems: 3 });
    const answers = [10, 11, 12, 13, 20, 30].map((item) => batches.add(item));
    for (let count = 1; count <= 2; count += 1) {
      await waitForCalls(count);
      calls[count - 1]!.go();
    }
    await Promise.all(answers);
    expect(calls.map(({ items }) => items)).to.deep.equal([
      [10, 20, 30],
      [11, 12, 13],
    ]);
  });

  it("end with the item with which they reach the maximum cost", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches({ maxCost: 4 });
    const answers = [2, 2, 2, 5, 1].map((item) => batches.add(item));
    for (let count = 1; count <= 3; count += 1) {
      await waitForCalls(count);
      calls[count - 1]!.go();
    }
    await Promise.all(answers);
    expect(calls.map(({ items }) => items)).to.deep.equal([[2, 2], [2, 5], [1]]);
  });

  it("process each key alone if one may have caused an error, so that the others succeed", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches();
    const answers = Promise.allSettled([10, 11, 20, 30].map((item) => batches.add(item)));
    await waitForCalls(1);
    calls[0]!.go(new SlowError());
    for (let count = 2; count <= 4; count += 1) {
      await waitForCalls(count);
      calls[count - 1]!.go(count === 2 ? new SlowError() : undefined);
    }
    expect((await answers).map(({ status }) => status)).to.deep.equal([
      "rejected",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(calls.slice(1).map(({ items }) => items)).to.deep.equal([[10, 11], [20], [30]]);
  });

  it("do nothing twice that may have been done, and continue afterwards", async () => {
    const { batches, calls, waitForCalls } = createDoublingBatches();
    const answers = Promise.allSettled([1, 2].map((item) => batches.add(item)));
    await waitForCalls(1);
    calls[0]!.go(new AwayError());
    expect((await answers).map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    const later = batches.add(3);
    await waitForCalls(2);
    calls[1]!.go();
    expect(await later).to.equal(6);
  });
});
