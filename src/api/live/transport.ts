/** graphql-ws on sockets of ws: receives frames, sends frames through an outbox, pings, and disconnects peers that do not read. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Context, makeServer, type ServerOptions } from "graphql-ws";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { isDatabaseAway } from "../../data/database.js";
import { SMALL_BODY_BYTES } from "../../limits.js";
import { Operations } from "./operations.js";
import { createOutbox, type SocketOutbox } from "./outbox.js";

/** Interval of pings in milliseconds. A peer must answer a ping, or send a message, before the next ping. */
const PING_MS = 10_000;
const INTERNAL_ERROR = 4500;
const TRY_AGAIN_LATER = 1013;
/** Maximum bytes that a peer can send before it has authenticated. A token has about fifty. */
const BEFORE_INIT_MAX_BYTES = 16 * 1024;

/** Parts that belong to one websocket. */
export interface SocketLink {
  socket: WebSocket;
  request: IncomingMessage;
  outbox: SocketOutbox;
  operations: Operations;
  /** Removes the limit for unauthenticated peers. Call it once the peer is authenticated. */
  admit(): void;
}

/** Decides when messages are handled. */
export interface SocketPace<LinkState> {
  /** Counts a message. Returns null if it can be handled now, otherwise a promise that resolves when it can. */
  rate(link: SocketLink & LinkState): Promise<void> | null;
  /** Handles a large message when its sender's turn comes, because senders take turns. */
  turn(link: SocketLink & LinkState, handle: () => void): Promise<void>;
  /** Counts the socket. @returns a function to be called when it has closed */
  enter(link: SocketLink & LinkState): () => void;
}

export type Parameters = Record<string, unknown> | undefined;

/** Terminates sockets whose peer is unreachable or reads too slowly. */
function watchPings(socket: WebSocket, outbox: SocketOutbox, pingMs: number): () => void {
  let hasAnswered = true;
  const recordAnswer = () => {
    hasAnswered = true;
  };
  socket.on("pong", recordAnswer).on("message", recordAnswer);
  const timer = setInterval(() => {
    if (outbox.isStalled(Date.now())) return socket.terminate();
    // The rate limiter paused the socket, so that a pong cannot be read.
    if (socket.isPaused) return recordAnswer();
    if (!hasAnswered) return socket.terminate();
    hasAnswered = false;
    socket.ping();
  }, pingMs);
  return () => clearInterval(timer);
}

/**
 * Disconnects a peer that sends too much before it has authenticated, even within its first message.
 * @returns a function that removes this limit
 */
function limitBytesUntilAdmitted(socket: WebSocket, wire: Socket): () => void {
  const started = wire.bytesRead;
  const count = () => {
    if (wire.bytesRead - started > BEFORE_INIT_MAX_BYTES) socket.terminate();
  };
  wire.on("data", count);
  return () => {
    wire.off("data", count);
  };
}

/**
 * Handles messages one after the other, at the rate that the sender may use. A large message waits for its sender's turn. Nothing more is
 * read from the socket meanwhile.
 */
function createInbox<LinkState>(link: SocketLink & LinkState, { rate, turn: inTurn }: SocketPace<LinkState>) {
  const { socket } = link;
  let waiting: Promise<void> | null = null;
  return function receive(text: string, handle: (text: string) => void): void {
    // A small message behind a large one takes a turn as well, so that it does not overtake.
    const waitsForTurn = waiting !== null || text.length > SMALL_BODY_BYTES;
    const rateWait = waiting ? waiting.then(() => rate(link)) : rate(link);
    if (!rateWait && !waitsForTurn) {
      handle(text);
      return;
    }
    socket.pause();
    const handleOpen = () => {
      if (socket.readyState === socket.OPEN) handle(text);
    };
    const currentTurn: Promise<void> = Promise.resolve(rateWait)
      .then(() => (waitsForTurn ? inTurn(link, handleOpen) : handleOpen()))
      .catch(() => socket.close(TRY_AGAIN_LATER, "Too much waits"))
      .finally(() => {
        if (waiting !== currentTurn) return;
        waiting = null;
        socket.resume();
      });
    waiting = currentTurn;
  };
}

/** Returns a function that takes over a newly opened socket. */
export function createTransport<LinkState extends object>(
  options: ServerOptions<Parameters, SocketLink & LinkState>,
  pace: SocketPace<LinkState>,
  log: Logger,
  pingMs = PING_MS,
) {
  const protocol = makeServer<Parameters, SocketLink & LinkState>(options);

  return function open(socket: WebSocket, request: IncomingMessage, linkState: LinkState): void {
    const outbox = createOutbox(socket, request.socket, () =>
      log.warn("closed a websocket whose client did not read its messages"),
    );
    const stopWatching = watchPings(socket, outbox, pingMs);
    const operations = new Operations();
    const link = {
      ...linkState,
      socket,
      request,
      outbox,
      operations,
      admit: limitBytesUntilAdmitted(socket, request.socket),
    };
    const receive = createInbox(link, pace);
    const leaveQueue = pace.enter(link);
    const fail = (error: unknown) => {
      // Client libraries reconnect after close code TRY_AGAIN_LATER, but not after other codes.
      if (isDatabaseAway(error)) return socket.close(TRY_AGAIN_LATER, "The database is away");
      log.error({ err: error }, "a message on a websocket could not be handled");
      socket.close(INTERNAL_ERROR, "Internal server error");
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        // A subscription produces its events at the pace of its reader.
        send(text) {
          outbox.send(text);
          return outbox.room();
        },
        // Messages that were sent before are delivered first.
        close(code, reason) {
          setImmediate(() => socket.close(code, reason));
        },
        onMessage(receiveMessage) {
          socket.on("message", (data) =>
            receive(String(data), (text) => {
              operations.during(() => receiveMessage(text)).catch(fail);
            }),
          );
        },
      },
      link,
    );
    socket.once("close", (code, reason) => {
      stopWatching();
      leaveQueue();
      closed(code, String(reason)).catch(fail);
    });
  };
}

export type LinkContext<LinkState extends object> = Context<Parameters, SocketLink & LinkState>;
