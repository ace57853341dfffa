/** graphql-ws on sockets of ws: frames in, frames out through an outbox, pings, and the end of peers that do not read. Knows no operation. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Context, makeServer, type ServerOptions } from "graphql-ws";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { isDatabaseAway } from "../../data/database.js";
import { SMALL_BODY_BYTES } from "../../limits.js";
import { createOutbox, type Outbox } from "./outbox.js";

/** A peer must answer a ping before the next one. */
const PING_MS = 10_000;
const INTERNAL_ERROR = 4500;
const TRY_AGAIN_LATER = 1013;
/** Bytes that a peer may send before it has said who it is: a token has some fifty. */
const BEFORE_INIT_MAX_BYTES = 16 * 1024;

/** What is kept with each socket. */
export interface Link {
  socket: WebSocket;
  request: IncomingMessage;
  outbox: Outbox;
  /** To be called once it is known who the peer is: until then it may send next to nothing. */
  admit(): void;
}

/** Handles a message when it is its peer's turn. */
export type Pace<Held> = (link: Link & Held, handle: () => void) => Promise<void>;

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

/** Ends a peer that sends much before it was let in, while the first of it is still arriving. @returns what lets it in */
function boundUntilAdmitted(socket: WebSocket, wire: Socket): () => void {
  const begun = wire.bytesRead;
  const count = () => {
    if (wire.bytesRead - begun > BEFORE_INIT_MAX_BYTES) socket.terminate();
  };
  wire.on("data", count);
  return () => {
    wire.off("data", count);
  };
}

/** One message after the other, each in its peer's turn where it is large; nothing more is read meanwhile. */
function createInbox(socket: WebSocket, pace: (handle: () => void) => Promise<void>) {
  let waiting: Promise<void> | null = null;
  return function receive(text: string, handle: (text: string) => void): void {
    if (!waiting && text.length <= SMALL_BODY_BYTES) {
      handle(text);
      return;
    }
    socket.pause();
    const turn: Promise<void> = (waiting ?? Promise.resolve())
      .then(() => pace(() => handle(text)))
      .catch(() => socket.close(TRY_AGAIN_LATER, "Too much waits"))
      .finally(() => {
        if (waiting !== turn) return;
        waiting = null;
        socket.resume();
      });
    waiting = turn;
  };
}

/** Answers what takes over a socket that has just been opened. */
export function createTransport<Held extends object>(
  options: ServerOptions<Parameters, Link & Held>,
  pace: Pace<Held>,
  log: Logger,
) {
  const protocol = makeServer<Parameters, Link & Held>(options);

  return function open(socket: WebSocket, request: IncomingMessage, held: Held): void {
    const outbox = createOutbox(socket, request.socket, () =>
      log.warn("cut off a socket that did not read what was sent to it"),
    );
    const unwatch = watch(socket, outbox);
    const link = { ...held, socket, request, outbox, admit: boundUntilAdmitted(socket, request.socket) };
    const receive = createInbox(socket, (handle) => pace(link, handle));
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
        close(code, reason) {
          setImmediate(() => socket.close(code, reason));
        },
        onMessage(take) {
          socket.on("message", (data) =>
            receive(String(data), (text) => {
              take(text).catch(fail);
            }),
          );
        },
      },
      link,
    );
    socket.once("close", (code, reason) => {
      unwatch();
      closed(code, String(reason)).catch(fail);
    });
  };
}

export type LinkContext<Held extends object> = Context<Parameters, Link & Held>;
