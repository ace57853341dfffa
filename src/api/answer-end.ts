/** Detects the end of a response: it has been sent, or its connection has closed. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/** Callbacks for the end of each connection. Node emits its own event only for the first of several responses on one connection. */
const endersBySocket = new WeakMap<Socket, Set<() => void>>();

function endersOf(socket: Socket): Set<() => void> {
  const knownEnders = endersBySocket.get(socket);
  if (knownEnders) return knownEnders;
  const enders = new Set<() => void>();
  endersBySocket.set(socket, enders);
  socket.once("close", () => {
    for (const endAnswer of enders) endAnswer();
  });
  return enders;
}

/** Calls `onEnd` once, when the response ends, or immediately if it has already ended. */
export function callWhenResponseEnds({ socket }: IncomingMessage, response: ServerResponse, onEnd: () => void): void {
  if (response.closed || socket.destroyed) {
    onEnd();
    return;
  }
  const enders = endersOf(socket);
  const onClose = () => {
    if (enders.delete(onClose)) onEnd();
  };
  enders.add(onClose);
  response.once("close", onClose);
}

/** One shared error object, because creating an error for each response costs more than the rest of this function. */
const RESPONSE_ENDED = new DOMException("The HTTP response has ended", "AbortError");

/** Returns a signal that aborts when the HTTP response has ended. */
export function responseEndSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const overController = new AbortController();
  callWhenResponseEnds(request, response, () => overController.abort(RESPONSE_ENDED));
  return overController.signal;
}

const closeSignals = new WeakMap<WebSocket, AbortSignal>();

/** Returns a signal that aborts when the websocket has closed. All operations on the websocket share the signal. */
export function websocketClosedSignal(socket: WebSocket): AbortSignal {
  const knownSignal = closeSignals.get(socket);
  if (knownSignal) return knownSignal;
  const closeController = new AbortController();
  if (socket.readyState === socket.CLOSED) closeController.abort();
  else socket.once("close", () => closeController.abort());
  closeSignals.set(socket, closeController.signal);
  return closeController.signal;
}
