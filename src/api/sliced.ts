/**
 * Sends a large text in slices at the speed of its reader, so that writing it does not block other requests. Disconnects a reader that is
 * too slow.
 */
import { Readable } from "node:stream";
import { READER_PACE } from "./reader-pace.js";

/** Minimum size of a text that is sliced. A smaller text fits into the system's buffers. */
export const LARGE_CHARACTERS = 64 * 1024;
const SLICE_CHARACTERS = 128 * 1024;

function* slicesOf(parts: readonly (string | Buffer)[]): Generator<Buffer> {
  for (const part of parts) {
    if (typeof part !== "string") {
      for (let from = 0; from < part.length; from += SLICE_CHARACTERS)
        yield part.subarray(from, from + SLICE_CHARACTERS);
      continue;
    }
    for (let from = 0; from < part.length; ) {
      let to = Math.min(part.length, from + SLICE_CHARACTERS);
      // Keeps both halves of a surrogate pair together.
      if (to < part.length && (part.charCodeAt(to - 1) & 0xfc00) === 0xd800) to -= 1;
      yield Buffer.from(part.slice(from, to));
      from = to;
    }
  }
}

/** Sends the text. @param onSlow called once if the reader is too slow; the rest of the text is then not sent */
export function streamSlices(
  parts: readonly (string | Buffer)[],
  onSlow: () => void,
  paceMs = READER_PACE.ms,
): Readable {
  const slices = slicesOf(parts);
  let slicesRead = 0;
  const timer = setInterval(() => {
    if (slicesRead >= READER_PACE.bytes) slicesRead = 0;
    else stream.destroy(new Error("the client reads the response too slowly"));
  }, paceMs);
  const stream = new Readable({
    highWaterMark: SLICE_CHARACTERS,
    read() {
      // Lets other work run between two slices.
      setImmediate(() => {
        if (stream.destroyed) return;
        const { value, done } = slices.next();
        slicesRead += value?.length ?? 0;
        stream.push(done ? null : value);
      });
    },
    destroy(error, callback) {
      clearInterval(timer);
      if (error) onSlow();
      callback(null);
    },
  });
  return stream;
}
