/** Detects the end of a response: it has been sent, or its connection has closed. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/**
 * Functions to call when a connection closes. The event `close` of the responses is not enough, because Node emits it only on the first
 * open response of the connection.
 */
const endCallbacksBySocket = new WeakMap<Socket, Set<() => void>>();

function getEndCallbacks(socket: Socket): Set<() => void> {
  const knownCallbacks = endCallbacksBySocket.get(socket);
  if (knownCallbacks) return knownCallbacks;
  const endCallbacks = new Set<() => void>();
  endCallbacksBySocket.set(socket, endCallbacks);
  socket.once("close", () => {
    for (const endCallback of endCallbacks) endCallback();
  });
  return endCallbacks;
}

/** Calls `onEnd` once, when the response has been sent or its connection has closed; immediately if that has already happened. */
export function callWhenResponseEnds({ socket }: IncomingMessage, response: ServerResponse, onEnd: () => void): void {
  if (response.closed || socket.destroyed) {
    onEnd();
    return;
  }
  const endCallbacks = getEndCallbacks(socket);
  const onClose = () => {
    if (endCallbacks.delete(onClose)) onEnd();
  };
  endCallbacks.add(onClose);
  response.once("close", onClose);
}

/** Reason with which all signals of this file abort. It is one shared object, because creating an error for each response costs time. */
const RESPONSE_ENDED = new DOMException("The HTTP response has ended", "AbortError");

/** Returns a signal that aborts when the HTTP response has been sent or its connection has closed. */
export function createResponseEndSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const endController = new AbortController();
  callWhenResponseEnds(request, response, () => endController.abort(RESPONSE_ENDED));
  return endController.signal;
}

const closedSignalBySocket = new WeakMap<WebSocket, AbortSignal>();

/** Returns a signal that aborts when the websocket has closed. Repeated calls for one websocket return the same signal. */
export function getWebsocketClosedSignal(socket: WebSocket): AbortSignal {
  const knownSignal = closedSignalBySocket.get(socket);
  if (knownSignal) return knownSignal;
  const closeController = new AbortController();
  if (socket.readyState === socket.CLOSED) closeController.abort();
  else socket.once("close", () => closeController.abort());
  closedSignalBySocket.set(socket, closeController.signal);
  return closeController.signal;
}
