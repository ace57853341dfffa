/**
 * Keeps what is used for a moment out of what is old, and collects it. V8 waits until 64 MB of buffers have come together; a stream that is
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

/**
 * V8 makes objects old from the beginning where most of their kind lived for long once. Parts of documents are such a kind, since what is
 * remembered lives: then what is left of a refused document is garbage that only a large collection finds. In a process of its own 1,500
 * hostile documents took 176 MB so, and take 11 without. To be called before anything has run for long; it holds for the whole process.
 */
export function bearYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** Takes about a millisecond. */
export function collectYoungGarbage(): void {
  collect ??= found();
  collect({ type: "minor" });
}
