/**
 * What one socket has still to send. A peer that does not read is cut off: what waits for it is bounded, in length and in time.
 * Knows no message.
 */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

/** Handed to the socket at once; the rest waits here, where its parts are shared with the other sockets. */
const HANDED_OVER_BYTES = 64 * 1024;
const WAITING_MESSAGES = 1_000;
const WAITING_LENGTH = 16 * 1024 * 1024;
/** A reader that is slower loses what waits when its socket is closed. */
const WAITED_MS = 1_000;
/** Below both, who can wait with the next text need not. */
const ROOM_MESSAGES = 100;
const ROOM_LENGTH = 1024 * 1024;
/** A peer that reads nothing for this long while something waits is gone, or as good as gone. */
export const STALLED_MS = 15_000;

export type Part = string | Buffer;

export interface Outbox {
  /**
   * Sends a text after those before it, in one part or several; bytes must be whole characters of UTF-8, and are not copied.
   * Cuts the socket off when too much waits.
   */
  send(...parts: Part[]): void;
  /** The same; `settled` is called once the text has left, or never will. */
  sendCounted(settled: () => void, ...parts: Part[]): void;
  /** Resolves while little waits, or nothing ever will: for who makes texts at the reader's pace. */
  room(): Promise<void>;
  /** Calls `act` once all that was sent so far has left, or after a second. */
  afterWaiting(act: () => void): void;
  /** To be asked from time to time. */
  isStalled(now: number): boolean;
}

interface Message {
  parts: Part[];
  settled?: () => void;
}

const lengthOf = (parts: readonly Part[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** Outboxes that were given something in this turn of the event loop. */
let due: (() => void)[] = [];

/** At the end of the turn, so that what many events say to one socket leaves in one write: a write costs more than all else. */
function atTurnsEnd(handOver: () => void): void {
  if (due.length === 0) {
    setImmediate(() => {
      const now = due;
      due = [];
      for (const each of now) each();
    });
  }
  due.push(handOver);
}

/** `wire` is the connection under the socket. */
export function createOutbox(socket: WebSocket, wire: Socket, onSlow: () => void): Outbox {
  const waiting: Message[] = [];
  let length = 0;
  let movedAt = Date.now();
  let isDue = false;
  let isCrowded = false;
  let roomy = Promise.withResolvers<void>();
  roomy.resolve();

  /** Closes the door behind what waits, and opens it again when that has left. */
  function tellRoom(): void {
    const hasRoom = socket.readyState !== socket.OPEN || (waiting.length < ROOM_MESSAGES && length < ROOM_LENGTH);
    if (hasRoom) roomy.resolve();
    else if (!isCrowded) roomy = Promise.withResolvers();
    isCrowded = !hasRoom;
  }

  function handOver(): void {
    isDue = false;
    wire.cork();
    while (waiting.length > 0 && socket.bufferedAmount < HANDED_OVER_BYTES) {
      const { parts, settled } = waiting.shift()!;
      length -= lengthOf(parts);
      const last = parts.pop()!;
      for (const part of parts) socket.send(part, { binary: false, fin: false });
      socket.send(last, { binary: false }, () => {
        settled?.();
        sent();
      });
    }
    wire.uncork();
    tellRoom();
  }

  function plan(): void {
    if (isDue) return;
    isDue = true;
    atTurnsEnd(handOver);
  }

  function sent(): void {
    movedAt = Date.now();
    // What ends a socket also ends what it had taken over: nothing may follow that.
    if (socket.readyState !== socket.OPEN) clear();
    else if (waiting.length > 0) plan();
  }

  function clear(): void {
    for (const { settled } of waiting.splice(0)) settled?.();
    length = 0;
    tellRoom();
  }

  function cutOff(): void {
    clear();
    onSlow();
    socket.terminate();
  }

  function add(message: Message): void {
    if (socket.readyState !== socket.OPEN) {
      message.settled?.();
      return;
    }
    if (waiting.length === 0 && socket.bufferedAmount === 0) movedAt = Date.now();
    waiting.push(message);
    length += lengthOf(message.parts);
    // A single text of any size is sent; many are not collected.
    if (waiting.length > WAITING_MESSAGES || (waiting.length > 1 && length > WAITING_LENGTH)) cutOff();
    else plan();
    tellRoom();
  }

  function afterWaiting(act: () => void): void {
    const since = Date.now();
    const look = () => {
      const isEmpty = waiting.length === 0 && !isDue;
      if (isEmpty || Date.now() - since > WAITED_MS || socket.readyState !== socket.OPEN) act();
      else setTimeout(look, 10);
    };
    // What this turn still adds comes before it.
    setImmediate(look);
  }

  // A socket that ends with nothing under way says no more that it has sent.
  socket.once("close", clear);

  return {
    send: (...parts) => add({ parts }),
    sendCounted: (settled, ...parts) => add({ parts, settled }),
    room: () => roomy.promise,
    afterWaiting,
    isStalled: (now) => (waiting.length > 0 || socket.bufferedAmount > 0) && now - movedAt > STALLED_MS,
  };
}
