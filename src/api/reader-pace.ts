/**
 * Minimum speed at which a client must read a streamed response. A slower client would occupy memory that others need.
 */
import type { FastifyReply } from "fastify";

/** Minimum speed: 480 KB in 15 seconds, which is 32 KB (a quarter of a megabit) a second. */
export const MIN_READ_SPEED = { ms: 15_000, bytes: 480 * 1024 };

/**
 * Closes the connection if the client reads less than `pace` while more bytes wait to be sent. Time in which no bytes wait does not count.
 */
export function disconnectSlowClient({ raw }: FastifyReply, pace = MIN_READ_SPEED): void {
  const { socket } = raw;
  if (!socket) return;
  let bytesWrittenBefore = socket.bytesWritten;
  let wasWaiting = false;
  const timer = setInterval(() => {
    const bytesRead = socket.bytesWritten - bytesWrittenBefore;
    // The client is slow only if bytes wait at the start and at the end of the interval. Otherwise, the source may have been slow.
    const hasWaitingBytes = raw.writableNeedDrain;
    if (wasWaiting && hasWaitingBytes && bytesRead < pace.bytes) raw.destroy();
    wasWaiting = hasWaitingBytes;
    bytesWrittenBefore = socket.bytesWritten;
  }, pace.ms);
  raw.once("close", () => clearInterval(timer));
}
