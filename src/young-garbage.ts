/**
 * Collects what was allocated lately and is not used any longer. V8 waits until 64 MB of buffers have come together; a stream that is
 * passed on chunk by chunk would hold so much for nothing. Collects nothing that is older.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Collect = (how: { type: "minor" }) => void;

/** The flag is taken back at once: no context that is made later has the function. */
function found(): Collect {
  setFlagsFromString("--expose-gc");
  try {
    return runInNewContext("gc") as Collect;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}

let collect: Collect | null = null;

/** Takes about a millisecond. */
export function collectYoungGarbage(): void {
  collect ??= found();
  collect({ type: "minor" });
}
