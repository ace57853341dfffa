import { execFileSync } from "node:child_process";
import { expect } from "chai";

const FULL_COLLECTIONS_MAX = 3;
/** Makes V8 choose a low limit for the heap, as in a process that allocates slowly. Then allocates 40 buffers of 6 MB. */
const SCRIPT = `
  import { constants, PerformanceObserver } from "node:perf_hooks";
  import { setTimeout as delay } from "node:timers/promises";
  import { setGarbageCollectionFlags } from ${JSON.stringify(new URL("../src/garbage-collection.js", import.meta.url))};
  setGarbageCollectionFlags();
  let fullCollections = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries())
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) fullCollections += 1;
  }).observe({ entryTypes: ["gc"] });
  const live = Array.from({ length: 1_000_000 }, (_, n) => ({ n, text: \`text \${n}\` }));
  for (let n = 0; n < 3; n += 1) {
    gc();
    await delay(500);
  }
  fullCollections = 0;
  for (let n = 0; n < 40; n += 1) {
    Buffer.allocUnsafeSlow(6 * 1024 * 1024).fill(live.length);
    await delay(20);
  }
  await delay(100);
  process.stdout.write(String(fullCollections));`;

describe("the garbage collection of the service", () => {
  it("starts few full collections for large buffers, also if the process allocates slowly", () => {
    const args = ["--expose-gc", "--max-semi-space-size=16", "--input-type=module", "--eval", SCRIPT];
    const fullCollections = Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
    expect(fullCollections).to.be.within(1, FULL_COLLECTIONS_MAX);
  });
});
