/**
 * Queue of the messages that one websocket has to send. The queue is limited in length and in time: a client that does not read is
 * disconnected.
 */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/** Maximum bytes that the outbox passes to the websocket before the websocket has sent them. Later messages wait in the outbox. */
const UNSENT_SOCKET_MAX_BYTES = 64 * 1024;
const WAITING_MESSAGES_MAX = 1_000;
const WAITING_MESSAGES_MAX_BYTES = 16 * 1024 * 1024;
/** Maximum time to send the queued messages before a websocket is closed, in milliseconds. */
const CLOSE_WAIT_MAX_MS = 1_000;
/** A queue is short if it has fewer messages and fewer bytes than these limits. `waitForCapacity` then resolves at once. */
const SHORT_QUEUE_MESSAGES = 100;
const SHORT_QUEUE_BYTES = 1024 * 1024;
/** Time in milliseconds without progress after which a client with waiting messages is disconnected. */
export const STALLED_CLIENT_TIMEOUT_MS = 15_000;

export type SocketMessagePart = string | Buffer;

export interface SocketOutbox {
  /**
   * Sends one message after all earlier ones. Bytes must be whole UTF-8 characters, and must not change afterwards because they are not
   * copied. Closes the websocket if too much is queued.
   */
  send(...parts: SocketMessagePart[]): void;
  /** Sends a message like `send`. Calls `onSettled` when the message has been sent or can never be sent. */
  sendWithCallback(onSettled: () => void, ...parts: SocketMessagePart[]): void;
  /** Resolves when the queue is short or the websocket is closed, so that the sender of messages waits for a slow reader. */
  waitForCapacity(): Promise<void>;
  /** Calls `callback` when the queue is empty, at the latest after CLOSE_WAIT_MAX_MS. */
  callAfterSending(callback: () => void): void;
  /** True if the client has stopped reading. Call it at intervals with the current time. */
  isStalled(now: number): boolean;
}

interface Message {
  parts: SocketMessagePart[];
  onSettled?: () => void;
}

const sumLengths = (parts: readonly SocketMessagePart[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** Functions that write the outboxes to which messages were added in this turn of the event loop. */
let writeFunctions: (() => void)[] = [];

/** Writes at the end of the event loop's turn, so that all messages to one websocket share one write, the most expensive step. */
function writeAtEndOfTurn(write: () => void): void {
  if (writeFunctions.length === 0) {
    setImmediate(() => {
      const functionsToCall = writeFunctions;
      writeFunctions = [];
      for (const writeOutbox of functionsToCall) writeOutbox();
    });
  }
  writeFunctions.push(write);
}

/**
 * @param tcpSocket TCP connection of the websocket
 * @param onSlowClient called when the websocket is closed because its client reads too slowly
 */
export function createSocketOutbox(socket: WebSocket, tcpSocket: Socket, onSlowClient: () => void): SocketOutbox {
  const waitingMessages: Message[] = [];
  let queuedLength = 0;
  let lastProgressAt = Date.now();
  let isWriteScheduled = false;
  let isFull = false;
  let untilCapacity = Promise.withResolvers<void>();
  untilCapacity.resolve();

  /** Makes `waitForCapacity` wait while the websocket is open and its queue is not short. */
  function updateCapacity(): void {
    const hasCapacity =
      socket.readyState !== socket.OPEN ||
      (waitingMessages.length < SHORT_QUEUE_MESSAGES && queuedLength < SHORT_QUEUE_BYTES);
    if (hasCapacity) untilCapacity.resolve();
    else if (!isFull) untilCapacity = Promise.withResolvers();
    isFull = !hasCapacity;
  }

  function writeNextMessages(): void {
    isWriteScheduled = false;
    tcpSocket.cork();
    while (waitingMessages.length > 0 && socket.bufferedAmount < UNSENT_SOCKET_MAX_BYTES) {
      const { parts, onSettled } = waitingMessages.shift()!;
      queuedLength -= sumLengths(parts);
      const lastPart = parts.pop()!;
      for (const part of parts) socket.send(part, { binary: false, fin: false });
      socket.send(lastPart, { binary: false }, () => {
        onSettled?.();
        onSent();
      });
    }
    tcpSocket.uncork();
    updateCapacity();
  }

  function scheduleWrite(): void {
    if (isWriteScheduled) return;
    isWriteScheduled = true;
    writeAtEndOfTurn(writeNextMessages);
  }

  function onSent(): void {
    lastProgressAt = Date.now();
    // A closed websocket cannot send the queued messages, so the outbox drops them.
    if (socket.readyState !== socket.OPEN) clearMessages();
    else if (waitingMessages.length > 0) scheduleWrite();
  }

  function clearMessages(): void {
    for (const { onSettled } of waitingMessages.splice(0)) onSettled?.();
    queuedLength = 0;
    updateCapacity();
  }

  function terminateSlowClient(): void {
    clearMessages();
    onSlowClient();
    socket.terminate();
  }

  function enqueueMessage(message: Message): void {
    if (socket.readyState !== socket.OPEN) {
      message.onSettled?.();
      return;
    }
    if (waitingMessages.length === 0 && socket.bufferedAmount === 0) lastProgressAt = Date.now();
    waitingMessages.push(message);
    queuedLength += sumLengths(message.parts);
    // A single message may have any size. Several queued messages together must not exceed the limits.
    if (
      waitingMessages.length > WAITING_MESSAGES_MAX ||
      (waitingMessages.length > 1 && queuedLength > WAITING_MESSAGES_MAX_BYTES)
    )
      terminateSlowClient();
    else scheduleWrite();
    updateCapacity();
  }

  function callWhenEmpty(callback: () => void): void {
    const startedAt = Date.now();
    const checkProgress = () => {
      const isEmpty = waitingMessages.length === 0 && !isWriteScheduled;
      if (isEmpty || Date.now() - startedAt > CLOSE_WAIT_MAX_MS || socket.readyState !== socket.OPEN) callback();
      else setTimeout(checkProgress, 10);
    };
    // The first check waits for the end of this turn of the event loop, because this turn may still add messages.
    setImmediate(checkProgress);
  }

  // A closed websocket sends nothing more, so the `onSettled` callbacks of its queued messages are called.
  socket.once("close", clearMessages);

  return {
    send: (...parts) => enqueueMessage({ parts }),
    sendWithCallback: (settled, ...parts) => enqueueMessage({ parts, onSettled: settled }),
    waitForCapacity: () => untilCapacity.promise,
    callAfterSending: callWhenEmpty,
    isStalled: (now) =>
      (waitingMessages.length > 0 || socket.bufferedAmount > 0) && now - lastProgressAt > STALLED_CLIENT_TIMEOUT_MS,
  };
}
