/** graphql-ws on sockets of ws: frames in, frames out through an outbox, pings, and the end of peers that do not read. Knows no operation. */
import type { IncomingMessage } from "node:http";
import { type Context, makeServer, type ServerOptions } from "graphql-ws";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { isDatabaseAway } from "../../data/database.js";
import { createOutbox, type Outbox } from "./outbox.js";

/** A peer must answer a ping before the next one. */
const PING_MS = 10_000;
const INTERNAL_ERROR = 4500;
const TRY_AGAIN_LATER = 1013;

/** What is kept with each socket. */
export interface Link {
  socket: WebSocket;
  request: IncomingMessage;
  outbox: Outbox;
}

export type Parameters = Record<string, unknown> | undefined;

/** Ends sockets whose peer is gone without a word, or reads too slowly. */
function watch(socket: WebSocket, outbox: Outbox): () => void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered || outbox.isStalled(Date.now())) return socket.terminate();
    answered = false;
    socket.ping();
  }, PING_MS);
  return () => clearInterval(timer);
}

/** Answers what takes over a socket that has just been opened. */
export function createTransport<Held extends object>(options: ServerOptions<Parameters, Link & Held>, log: Logger) {
  const protocol = makeServer<Parameters, Link & Held>(options);

  return function open(socket: WebSocket, request: IncomingMessage, held: Held): void {
    const outbox = createOutbox(socket, request.socket, () =>
      log.warn("cut off a socket that did not read what was sent to it"),
    );
    const unwatch = watch(socket, outbox);
    const fail = (error: unknown) => {
      // Client libraries come again after this one, and never after the other.
      if (isDatabaseAway(error)) return socket.close(TRY_AGAIN_LATER, "The database is away");
      log.error({ err: error }, "a message on a socket could not be handled");
      socket.close(INTERNAL_ERROR, "Internal server error");
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        // What a subscription makes one after the other, it makes at the pace at which its reader takes it.
        send(text) {
          outbox.send(text);
          return outbox.room();
        },
        // What was sent before it goes before it.
        close: (code, reason) => void setImmediate(() => socket.close(code, reason)),
        onMessage(take) {
          socket.on("message", (data) => void take(String(data)).catch(fail));
        },
      },
      { ...held, socket, request, outbox },
    );
    socket.once("close", (code, reason) => {
      unwatch();
      void closed(code, String(reason)).catch(fail);
    });
  };
}

export type LinkContext<Held extends object> = Context<Parameters, Link & Held>;
