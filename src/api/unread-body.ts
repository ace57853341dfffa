/**
 * Reads and drops the rest of a request that is refused before its body has arrived. A connection that is closed with unread bytes is
 * reset, and then most clients report the reset instead of the refusal. Knows no route.
 */
import type { IncomingMessage } from "node:http";

/** The largest body that any route accepts in one piece. */
const DROPPED_MAX_BYTES = 64 * 1024 * 1024;
const DROPPED_MAX_MS = 30_000;

/** Resolves when the whole request has arrived, or with more bytes or time than the bounds: then the connection has to be closed. */
export function dropRest(
  request: IncomingMessage,
  maxBytes = DROPPED_MAX_BYTES,
  maxMs = DROPPED_MAX_MS,
): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let bytes = 0;
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) end();
    };
    const end = () => {
      clearTimeout(timer);
      request.off("data", count).off("end", end).off("close", end).off("error", end);
      resolve();
    };
    const timer = setTimeout(end, maxMs);
    request.unpipe();
    request.on("end", end).on("close", end).on("error", end).on("data", count);
    request.resume();
  });
}
