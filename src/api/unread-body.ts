/**
 * Reads and drops the rest of a request that is refused before its body has arrived. A connection that is closed with
 * unread bytes is reset, and then most clients report the reset instead of the refusal.
 */
import type { IncomingMessage } from "node:http";

/** Size of the largest body that any route accepts in one piece. */
const DROPPED_MAX_BYTES = 64 * 1024 * 1024;
const DROPPED_MAX_MS = 30_000;

/**
 * Drops the rest of the request. Closes the connection if the rest is too large or too slow; the response has been sent
 * by then.
 */
export function discardUnreadBody(
  request: IncomingMessage,
  maxBytes = DROPPED_MAX_BYTES,
  maxMs = DROPPED_MAX_MS,
): void {
  if (request.complete || request.destroyed) return;
  let bytes = 0;
  const closeSocket = () => request.socket.destroySoon();
  const timer = setTimeout(closeSocket, maxMs);
  const stopTimer = () => clearTimeout(timer);
  request.unpipe();
  request.once("end", stopTimer).once("close", stopTimer).on("error", stopTimer);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) closeSocket();
  });
  request.resume();
}
