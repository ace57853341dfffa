/** Minimum rate at which the reader of a streamed response must read: a slower reader would hold capacity that others need. */
import type { FastifyReply } from "fastify";

/** Minimum rate of 32 KB a second: a quarter of a megabit. */
export const READER_PACE = { ms: 15_000, bytes: 480 * 1024 };

/** Ends the connection if its reader reads less than this while more bytes wait. A slow source does not count. */
export function endSlowReader({ raw }: FastifyReply, pace = READER_PACE): void {
  const { socket } = raw;
  if (!socket) return;
  let bytesBefore = socket.bytesWritten;
  let hasWaited = false;
  const timer = setInterval(() => {
    const bytesTaken = socket.bytesWritten - bytesBefore;
    // More bytes must wait both at the start and at the end of the interval.
    const isWaiting = raw.writableNeedDrain;
    if (hasWaited && isWaiting && bytesTaken < pace.bytes) raw.destroy();
    hasWaited = isWaiting;
    bytesBefore = socket.bytesWritten;
  }, pace.ms);
  raw.once("close", () => clearInterval(timer));
}
