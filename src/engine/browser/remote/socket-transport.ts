/** Transport for DevTools messages over a WebSocket. The browser watch detects a dead connection. */
import { once } from "node:events";
import type { ConnectionTransport } from "puppeteer";
import WebSocket from "ws";
import type { Chromium } from "../browser-source.js";

const SOCKET_OPTIONS = {
  perMessageDeflate: false,
  handshakeTimeout: 3_000,
  /** The socket closes after this time even if the browser does not answer the close frame. */
  closeTimeout: 500,
  maxPayload: 256 * 1024 * 1024,
  // The credentials in the URL are only for this host.
  followRedirects: false,
};

export interface SocketTransport extends ConnectionTransport, Pick<Chromium, "ended" | "isAlive" | "stop"> {
  peer: string;
}

export async function openSocketTransport(url: string, stopSignal: AbortSignal): Promise<SocketTransport> {
  stopSignal.throwIfAborted();
  const socket = new WebSocket(url, SOCKET_OPTIONS);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const transport: SocketTransport = {
    peer: "",
    ended,
    isAlive: () => socket.readyState === WebSocket.OPEN,
    send(message) {
      if (transport.isAlive()) socket.send(message);
    },
    close: () => socket.close(),
    stop() {
      socket.close();
      return ended;
    },
  };
  const terminate = () => socket.terminate();
  stopSignal.addEventListener("abort", terminate);
  socket.on("upgrade", ({ socket: { remoteAddress = "" } }) => {
    transport.peer = remoteAddress.replace(/^::ffff:/, "");
  });
  socket.on("message", (data: Buffer) => transport.onmessage?.(data.toString("utf8")));
  // An error is followed by the close event.
  socket.on("error", () => {});
  socket.on("close", () => {
    stopSignal.removeEventListener("abort", terminate);
    transport.onclose?.();
    resolve();
  });
  await once(socket, "open");
  return transport;
}
