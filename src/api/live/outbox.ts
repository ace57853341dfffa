/** Queues the messages that one socket has to send. Disconnects a peer that does not read: the queue is limited in length and in time. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/**
 * Maximum bytes that are passed to the socket before it has sent them. Later messages wait in the outbox, where sockets
 * share the memory of equal messages.
 */
const HANDED_OVER_BYTES = 64 * 1024;
const WAITING_MESSAGES = 1_000;
const WAITING_LENGTH = 16 * 1024 * 1024;
/** Maximum time in milliseconds to send queued messages before a socket is closed. A slower reader loses them. */
const WAITED_MS = 1_000;
/** Number of queued messages below which `room` resolves at once. */
const QUEUE_MESSAGES = 100;
const QUEUE_LENGTH = 1024 * 1024;
/** Time after which a client that reads nothing, while messages are waiting, is disconnected. */
export const STALLED_MS = 15_000;

export type MessagePart = string | Buffer;

export interface SocketOutbox {
  /**
   * Sends a text after earlier ones, in one part or several. Bytes must be whole UTF-8 characters and are not copied.
   * Closes the socket if too much is queued.
   */
  send(...parts: MessagePart[]): void;
  /** Sends a text like `send`. Calls `settled` once the text has been sent or never will be. */
  sendCounted(settled: () => void, ...parts: MessagePart[]): void;
  /** Resolves when few messages are queued or the socket is closed, so that a producer can work at the reader's pace. */
  room(): Promise<void>;
  /** Calls `act` once all earlier messages have been sent, or after a second. */
  afterWaiting(act: () => void): void;
  /** True if the reader has stopped reading. Call it at intervals. */
  isStalled(now: number): boolean;
}

interface Message {
  parts: MessagePart[];
  settled?: () => void;
}

const lengthOf = (parts: readonly MessagePart[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** Outboxes that received messages in this turn of the event loop. */
let handOvers: (() => void)[] = [];

/** Writes at the end of the turn, so that the messages of many events to one socket share one write, the most expensive step. */
function runAtEndOfTurn(handOver: () => void): void {
  if (handOvers.length === 0) {
    setImmediate(() => {
      const now = handOvers;
      handOvers = [];
      for (const each of now) each();
    });
  }
  handOvers.push(handOver);
}

/** @param wire connection under the socket */
export function createOutbox(socket: WebSocket, wire: Socket, onSlow: () => void): SocketOutbox {
  const waitingMessages: Message[] = [];
  let length = 0;
  let lastProgressAt = Date.now();
  let isDue = false;
  let isCrowded = false;
  let whenRoomy = Promise.withResolvers<void>();
  whenRoomy.resolve();

  /** Makes `room` wait while messages are queued, and resolves it when they have been sent. */
  function updateFreeSpace(): void {
    const hasRoom =
      socket.readyState !== socket.OPEN || (waitingMessages.length < QUEUE_MESSAGES && length < QUEUE_LENGTH);
    if (hasRoom) whenRoomy.resolve();
    else if (!isCrowded) whenRoomy = Promise.withResolvers();
    isCrowded = !hasRoom;
  }

  function writeNextMessages(): void {
    isDue = false;
    wire.cork();
    while (waitingMessages.length > 0 && socket.bufferedAmount < HANDED_OVER_BYTES) {
      const { parts, settled } = waitingMessages.shift()!;
      length -= lengthOf(parts);
      const last = parts.pop()!;
      for (const part of parts) socket.send(part, { binary: false, fin: false });
      socket.send(last, { binary: false }, () => {
        settled?.();
        onSent();
      });
    }
    wire.uncork();
    updateFreeSpace();
  }

  function planCheck(): void {
    if (isDue) return;
    isDue = true;
    runAtEndOfTurn(writeNextMessages);
  }

  function onSent(): void {
    lastProgressAt = Date.now();
    // A closed socket needs no more messages, so the queued messages are dropped.
    if (socket.readyState !== socket.OPEN) clearMessages();
    else if (waitingMessages.length > 0) planCheck();
  }

  function clearMessages(): void {
    for (const { settled } of waitingMessages.splice(0)) settled?.();
    length = 0;
    updateFreeSpace();
  }

  function terminateSlowClient(): void {
    clearMessages();
    onSlow();
    socket.terminate();
  }

  function enqueueMessage(message: Message): void {
    if (socket.readyState !== socket.OPEN) {
      message.settled?.();
      return;
    }
    if (waitingMessages.length === 0 && socket.bufferedAmount === 0) lastProgressAt = Date.now();
    waitingMessages.push(message);
    length += lengthOf(message.parts);
    // A single text of any size is sent, but many are not queued.
    if (waitingMessages.length > WAITING_MESSAGES || (waitingMessages.length > 1 && length > WAITING_LENGTH))
      terminateSlowClient();
    else planCheck();
    updateFreeSpace();
  }

  function afterWaiting(act: () => void): void {
    const since = Date.now();
    const checkProgress = () => {
      const isEmpty = waitingMessages.length === 0 && !isDue;
      if (isEmpty || Date.now() - since > WAITED_MS || socket.readyState !== socket.OPEN) act();
      else setTimeout(checkProgress, 10);
    };
    // Messages that this turn still adds are sent first.
    setImmediate(checkProgress);
  }

  // Once a socket has closed, queued messages count as settled.
  socket.once("close", clearMessages);

  return {
    send: (...parts) => enqueueMessage({ parts }),
    sendCounted: (settled, ...parts) => enqueueMessage({ parts, settled }),
    room: () => whenRoomy.promise,
    afterWaiting,
    isStalled: (now) => (waitingMessages.length > 0 || socket.bufferedAmount > 0) && now - lastProgressAt > STALLED_MS,
  };
}
