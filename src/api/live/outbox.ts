/**
 * What one socket has still to send. A peer that does not read is cut off: what waits for it is bounded, in length and in time.
 * Knows no message.
 */
import type { WebSocket } from "ws";

/** Handed to the socket at once; the rest waits here, where texts are shared with the other sockets. */
const HANDED_OVER_BYTES = 64 * 1024;
const WAITING_MESSAGES = 1_000;
const WAITING_CHARACTERS = 16 * 1024 * 1024;
/** A peer that reads nothing for this long while something waits is gone, or as good as gone. */
export const STALLED_MS = 15_000;

export interface Outbox {
  /** Sends the text after those before it. Cuts the socket off when too much waits. */
  send(text: string): void;
  /** To be asked from time to time. */
  isStalled(now: number): boolean;
}

export function createOutbox(socket: WebSocket, onSlow: () => void): Outbox {
  const waiting: string[] = [];
  let characters = 0;
  let movedAt = Date.now();

  function handOver(): void {
    while (waiting.length > 0 && socket.bufferedAmount < HANDED_OVER_BYTES) {
      const text = waiting.shift()!;
      characters -= text.length;
      socket.send(text, sent);
    }
  }

  function sent(): void {
    movedAt = Date.now();
    if (waiting.length > 0) handOver();
  }

  function cutOff(): void {
    waiting.length = 0;
    characters = 0;
    onSlow();
    socket.terminate();
  }

  return {
    send(text) {
      if (socket.readyState !== socket.OPEN) return;
      if (waiting.length === 0 && socket.bufferedAmount === 0) movedAt = Date.now();
      waiting.push(text);
      characters += text.length;
      handOver();
      // A single text of any size is sent; many are not collected.
      if (waiting.length > WAITING_MESSAGES || (waiting.length > 1 && characters > WAITING_CHARACTERS)) cutOff();
    },
    isStalled: (now) => (waiting.length > 0 || socket.bufferedAmount > 0) && now - movedAt > STALLED_MS,
  };
}
