/** Detects the end of a response: it has been sent, or its connection has closed. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/** Callbacks for the end of each connection. With several responses on one connection, Node emits that event only for the first. */
const waiting = new WeakMap<Socket, Set<() => void>>();

function waitingOn(socket: Socket): Set<() => void> {
  const known = waiting.get(socket);
  if (known) return known;
  const ends = new Set<() => void>();
  waiting.set(socket, ends);
  socket.once("close", () => {
    for (const end of ends) end();
  });
  return ends;
}

/** Calls `over` once; at once if the response has ended already. */
export function whenOver({ socket }: IncomingMessage, response: ServerResponse, over: () => void): void {
  if (response.closed || socket.destroyed) {
    over();
    return;
  }
  const ends = waitingOn(socket);
  const end = () => {
    if (ends.delete(end)) over();
  };
  ends.add(end);
  response.once("close", end);
}

/** One shared error: creating one costs more than everything else here. */
const OVER = new DOMException("The answer is over", "AbortError");

/** Aborts when the HTTP response has ended. */
export function overSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const over = new AbortController();
  whenOver(request, response, () => over.abort(OVER));
  return over.signal;
}

const closings = new WeakMap<WebSocket, AbortSignal>();

/** Aborts when the socket has closed; one signal for all operations on it. */
export function closedSignal(socket: WebSocket): AbortSignal {
  const known = closings.get(socket);
  if (known) return known;
  const closed = new AbortController();
  if (socket.readyState === socket.CLOSED) closed.abort();
  else socket.once("close", () => closed.abort());
  closings.set(socket, closed.signal);
  return closed.signal;
}
