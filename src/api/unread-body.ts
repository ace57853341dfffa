/**
 * Reads and drops the rest of a request that the service rejected before its body had arrived. If the service closed the connection
 * instead, most clients would report a connection reset and not the response.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

/** Maximum number of bytes that are dropped: the size of the largest body that a route accepts as JSON. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024;
const DISCARDED_BODY_MAX_MS = 30_000;

/**
 * Handles a client that wants the connection closed after the response: closes it only when the rest of the request has arrived too. Node
 * would close it right after the response.
 */
function closeAfterRequest(request: IncomingMessage, response: ServerResponse): void {
  if (response.shouldKeepAlive) return;
  response.shouldKeepAlive = true;
  const closeSocket = () => request.socket.destroySoon();
  request.once("end", () => {
    if (response.writableFinished) closeSocket();
    else response.once("finish", closeSocket);
  });
}

/** Drops the rest of the request. Closes the connection if the rest is too large or too slow. */
export function discardUnreadBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes = DISCARDED_BODY_MAX_BYTES,
  maxMs = DISCARDED_BODY_MAX_MS,
): void {
  if (request.complete || request.destroyed) return;
  let bytes = 0;
  const closeSocket = () => request.socket.destroySoon();
  const timer = setTimeout(closeSocket, maxMs);
  const stopTimer = () => clearTimeout(timer);
  closeAfterRequest(request, response);
  request.unpipe();
  request.once("end", stopTimer).once("close", stopTimer).on("error", stopTimer);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) closeSocket();
  });
  request.resume();
}
