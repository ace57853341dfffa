/**
 * Connects graphql-ws to websockets of the package ws: receives messages, sends messages through an outbox, pings, and disconnects clients
 * that do not read.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Context, makeServer, type ServerOptions } from "graphql-ws";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { isDatabaseUnavailable } from "../../data/database.js";
import { IMMEDIATELY_PARSED_BODY_MAX_BYTES } from "../../limits.js";
import { SocketOperations } from "./operations.js";
import { createSocketOutbox, type SocketOutbox } from "./outbox.js";

/** Interval of pings in milliseconds. A client must answer a ping, or send a message, before the next ping. */
const PING_INTERVAL_MS = 10_000;
const INTERNAL_ERROR_CLOSE_CODE = 4500;
const TRY_AGAIN_LATER_CLOSE_CODE = 1013;
/** Maximum bytes that a client can send before it has authenticated. A token is about fifty bytes long. */
const UNAUTHENTICATED_MAX_BYTES = 16 * 1024;

/** Objects that this file creates for each websocket. */
export interface SocketConnection {
  socket: WebSocket;
  request: IncomingMessage;
  outbox: SocketOutbox;
  operations: SocketOperations;
  /** Removes the byte limit for unauthenticated clients. Call it when the client has authenticated. */
  removeByteLimit(): void;
}

/** Flow control: decides when the service handles the next message of a websocket. */
export interface SocketFlowControl<ConnectionState> {
  /** Counts a message of the websocket. Returns null if it can be handled now, otherwise a promise that resolves when it can. */
  countMessage(connection: SocketConnection & ConnectionState): Promise<void> | null;
  /** Calls `handle`, which handles a large message, when it is the turn of the message's sender. */
  handleInTurn(connection: SocketConnection & ConnectionState, handle: () => void): Promise<void>;
  /**
   * Counts a new websocket.
   * @returns a function to call when the websocket has closed
   */
  countSocket(connection: SocketConnection & ConnectionState): () => void;
}

export type ConnectionParameters = Record<string, unknown> | undefined;

/** Closes a websocket whose client is unreachable or reads too slowly. */
function watchPings(socket: WebSocket, outbox: SocketOutbox, pingMs: number): () => void {
  let hasAnswered = true;
  const recordAnswer = () => {
    hasAnswered = true;
  };
  socket.on("pong", recordAnswer).on("message", recordAnswer);
  const timer = setInterval(() => {
    if (outbox.isStalled(Date.now())) return socket.terminate();
    // A received message waits, so the websocket is paused, and the service cannot receive a pong. The client counts as reachable.
    if (socket.isPaused) return recordAnswer();
    if (!hasAnswered) return socket.terminate();
    hasAnswered = false;
    socket.ping();
  }, pingMs);
  return () => clearInterval(timer);
}

/**
 * Disconnects a client that sends too many bytes before it has authenticated, even within its first message.
 * @returns a function that removes this limit
 */
function limitBytesUntilAuthenticated(socket: WebSocket, tcpSocket: Socket): () => void {
  const bytesBefore = tcpSocket.bytesRead;
  const checkByteCount = () => {
    if (tcpSocket.bytesRead - bytesBefore > UNAUTHENTICATED_MAX_BYTES) socket.terminate();
  };
  tcpSocket.on("data", checkByteCount);
  return () => {
    tcpSocket.off("data", checkByteCount);
  };
}

/** Handles a websocket's messages one after the other, within the rate limit. While a message waits, nothing more is read. */
function createInbox<ConnectionState>(
  connection: SocketConnection & ConnectionState,
  { countMessage, handleInTurn }: SocketFlowControl<ConnectionState>,
) {
  const { socket } = connection;
  let pendingTurn: Promise<void> | null = null;
  return function receive(text: string, handle: (text: string) => void): void {
    // A small message that arrives while a large one waits must wait too, so that the messages keep their order.
    const waitsForTurn = pendingTurn !== null || text.length > IMMEDIATELY_PARSED_BODY_MAX_BYTES;
    const rateLimitWait = pendingTurn ? pendingTurn.then(() => countMessage(connection)) : countMessage(connection);
    if (!rateLimitWait && !waitsForTurn) {
      handle(text);
      return;
    }
    socket.pause();
    const handleIfOpen = () => {
      if (socket.readyState === socket.OPEN) handle(text);
    };
    const currentTurn: Promise<void> = Promise.resolve(rateLimitWait)
      .then(() => (waitsForTurn ? handleInTurn(connection, handleIfOpen) : handleIfOpen()))
      .catch(() => socket.close(TRY_AGAIN_LATER_CLOSE_CODE, "Too many messages wait"))
      .finally(() => {
        if (pendingTurn !== currentTurn) return;
        pendingTurn = null;
        socket.resume();
      });
    pendingTurn = currentTurn;
  };
}

export function createSocketHandler<ConnectionState extends object>(
  options: ServerOptions<ConnectionParameters, SocketConnection & ConnectionState>,
  flowControl: SocketFlowControl<ConnectionState>,
  log: Logger,
  pingMs = PING_INTERVAL_MS,
) {
  const protocol = makeServer<ConnectionParameters, SocketConnection & ConnectionState>(options);

  return function handleConnection(
    socket: WebSocket,
    request: IncomingMessage,
    connectionState: ConnectionState,
  ): void {
    const outbox = createSocketOutbox(socket, request.socket, () =>
      log.warn("closed a websocket whose client did not read its messages"),
    );
    const stopWatching = watchPings(socket, outbox, pingMs);
    const operations = new SocketOperations();
    const connection = {
      ...connectionState,
      socket,
      request,
      outbox,
      operations,
      removeByteLimit: limitBytesUntilAuthenticated(socket, request.socket),
    };
    const receive = createInbox(connection, flowControl);
    const removeFromSocketCount = flowControl.countSocket(connection);
    const closeAfterError = (error: unknown) => {
      // Client libraries reconnect after TRY_AGAIN_LATER_CLOSE_CODE, but not after INTERNAL_ERROR_CLOSE_CODE.
      if (isDatabaseUnavailable(error)) return socket.close(TRY_AGAIN_LATER_CLOSE_CODE, "The database is unavailable");
      log.error({ err: error }, "a message on a websocket could not be handled");
      socket.close(INTERNAL_ERROR_CLOSE_CODE, "Internal server error");
    };
    const notifyClosed = protocol.opened(
      {
        protocol: socket.protocol,
        // The returned promise makes a subscription wait until its client can receive the next event.
        send(text) {
          outbox.send(text);
          return outbox.waitForCapacity();
        },
        // Closes the websocket in the next turn of the event loop, so that the outbox writes earlier messages first.
        close(code, reason) {
          setImmediate(() => socket.close(code, reason));
        },
        onMessage(receiveMessage) {
          socket.on("message", (data) =>
            receive(String(data), (text) => {
              operations.handleMessage(() => receiveMessage(text)).catch(closeAfterError);
            }),
          );
        },
      },
      connection,
    );
    socket.once("close", (code, reason) => {
      stopWatching();
      removeFromSocketCount();
      notifyClosed(code, String(reason)).catch(closeAfterError);
    });
  };
}

export type SocketConnectionContext<ConnectionState extends object> = Context<
  ConnectionParameters,
  SocketConnection & ConnectionState
>;
