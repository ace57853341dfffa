/**
 * Sends a large text in slices, as fast as its client reads, so that writing the text does not block other requests. Disconnects a client
 * that reads too slowly.
 */
import { Readable } from "node:stream";
import { MIN_READ_SPEED } from "./reader-pace.js";

/** Length above which a text is sent in slices. The buffers of the operating system can hold a shorter text. */
export const LARGE_RESPONSE_MIN_CHARACTERS = 64 * 1024;
const SLICE_CHARACTERS = 128 * 1024;

function* listSlices(parts: readonly (string | Buffer)[]): Generator<Buffer> {
  for (const part of parts) {
    if (typeof part !== "string") {
      for (let from = 0; from < part.length; from += SLICE_CHARACTERS)
        yield part.subarray(from, from + SLICE_CHARACTERS);
      continue;
    }
    for (let from = 0; from < part.length; ) {
      let to = Math.min(part.length, from + SLICE_CHARACTERS);
      // Moves the end of the slice before a surrogate pair, so that no character is divided.
      if (to < part.length && (part.charCodeAt(to - 1) & 0xfc00) === 0xd800) to -= 1;
      yield Buffer.from(part.slice(from, to));
      from = to;
    }
  }
}

/**
 * Sends the texts one after the other as one response.
 * @param onSlowClient called once if the client reads too slowly; the rest of the response is then not sent
 */
export function streamResponseParts(
  parts: readonly (string | Buffer)[],
  onSlowClient: () => void,
  paceIntervalMs = MIN_READ_SPEED.ms,
): Readable {
  const slices = listSlices(parts);
  let bytesRead = 0;
  const timer = setInterval(() => {
    if (bytesRead >= MIN_READ_SPEED.bytes) bytesRead = 0;
    else stream.destroy(new Error("the client reads the response too slowly"));
  }, paceIntervalMs);
  const stream = new Readable({
    highWaterMark: SLICE_CHARACTERS,
    read() {
      // Handles other work between two slices.
      setImmediate(() => {
        if (stream.destroyed) return;
        const { value, done } = slices.next();
        bytesRead += value?.length ?? 0;
        stream.push(done ? null : value);
      });
    },
    destroy(error, callback) {
      clearInterval(timer);
      if (error) onSlowClient();
      callback(null);
    },
  });
  return stream;
}
