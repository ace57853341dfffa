/** Transport for DevTools messages over Chromium's debugging pipe. Each message is JSON text that ends with NUL. */
import type { Readable, Writable } from "node:stream";
import type { ConnectionTransport } from "puppeteer";

const NUL = 0;
const BUFFER_BYTES = 1024 * 1024;

/** Uses a pipe instead of a port, so that no other process on the machine can control the browser. */
export function createPipeTransport(toBrowser: Writable, fromBrowser: Readable): ConnectionTransport {
  /** One buffer for all messages, because a new buffer for each large message would cause garbage collections. */
  let memory = Buffer.allocUnsafe(BUFFER_BYTES);
  let pendingBytes = 0;
  let closed = false;

  const transport: ConnectionTransport = {
    send(message) {
      if (!closed) toBrowser.write(`${message}\0`);
    },
    close() {
      if (closed) return;
      closed = true;
      toBrowser.destroy();
      fromBrowser.destroy();
      transport.onclose?.();
    },
  };

  function bufferBytes(bytes: Buffer): void {
    if (pendingBytes + bytes.length > memory.length) {
      const larger = Buffer.allocUnsafe(2 * (pendingBytes + bytes.length));
      memory.copy(larger, 0, 0, pendingBytes);
      memory = larger;
    }
    pendingBytes += bytes.copy(memory, pendingBytes);
  }

  function completeMessage(last: Buffer): string {
    if (pendingBytes === 0) return last.toString("utf8");
    bufferBytes(last);
    const message = memory.toString("utf8", 0, pendingBytes);
    pendingBytes = 0;
    if (memory.length > BUFFER_BYTES) memory = Buffer.allocUnsafe(BUFFER_BYTES);
    return message;
  }

  function receiveChunk(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NUL); end !== -1; end = chunk.indexOf(NUL, start)) {
      const message = completeMessage(chunk.subarray(start, end));
      start = end + 1;
      transport.onmessage?.(message);
    }
    if (start < chunk.length) bufferBytes(chunk.subarray(start));
  }

  fromBrowser.on("data", receiveChunk);
  fromBrowser.on("close", () => transport.close());
  // The error EPIPE of a write to a browser that has ended is followed by the close event.
  fromBrowser.on("error", () => {});
  toBrowser.on("error", () => {});
  return transport;
}
