/** Settings of V8's garbage collection, and a function that collects the garbage of the young generation. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Collect = (how: { type: "minor" }) => void;

/**
 * Returns V8's garbage collection function. Resets the V8 flag at once, so that JavaScript contexts that are created later do not have this
 * function.
 */
function collectFunction(): Collect {
  setFlagsFromString("--expose-gc");
  try {
    return runInNewContext("gc") as Collect;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}

let collectGarbage: Collect | null = null;

/**
 * Sets V8 flags for the whole process; call it at the start.
 *
 * - Without pretenuring: with it, V8 allocates objects directly in the old generation if earlier objects from the same code lived long, as
 *   nodes of cached GraphQL documents do. The nodes of rejected documents would then be freed only by a full collection: 1,500 hostile
 *   documents took 176 MB in a test, and 11 MB without pretenuring.
 * - The heap may double before a full collection starts. In a process that allocates slowly, V8 would start one when a quarter is added.
 *   Then each run with a result of 6 MB caused a full collection, which delays the runs of all apps by 20 to 50 ms.
 */
export function setGarbageCollectionFlags(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--heap-growing-percent=100");
}

/**
 * Collects the garbage of the young generation, which takes about a millisecond. V8 itself waits until buffers use 64 MB, so a stream that
 * is forwarded in chunks would occupy that much memory.
 */
export function collectYoungGarbage(): void {
  collectGarbage ??= collectFunction();
  collectGarbage({ type: "minor" });
}
