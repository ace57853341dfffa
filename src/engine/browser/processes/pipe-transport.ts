/** Transport for protocol messages over Chromium's debugging pipe: JSON texts separated by NUL. */
import type { Readable, Writable } from "node:stream";
import type { ConnectionTransport } from "puppeteer";

const NUL = 0;

/**
 * Creates the transport. A pipe opens no port, so that no other process on the machine can control the browser.
 * `onclose` is called once.
 */
export function createPipeTransport(toBrowser: Writable, fromBrowser: Readable): ConnectionTransport {
  let pending: Buffer[] = [];
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

  function receive(chunk: Buffer): void {
    let start = 0;
    for (let messageEnd = chunk.indexOf(NUL); messageEnd !== -1; messageEnd = chunk.indexOf(NUL, start)) {
      const last = chunk.subarray(start, messageEnd);
      const message = pending.length === 0 ? last : Buffer.concat([...pending, last]);
      pending = [];
      start = messageEnd + 1;
      transport.onmessage?.(message.toString("utf8"));
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }

  fromBrowser.on("data", receive);
  fromBrowser.on("close", () => transport.close());
  // A write to an ended browser fails with EPIPE. The close event follows.
  fromBrowser.on("error", () => {});
  toBrowser.on("error", () => {});
  return transport;
}
