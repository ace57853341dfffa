/** Transport for DevTools messages over a WebSocket. The browser watch detects a dead connection. */
import { once } from "node:events";
import type { ConnectionTransport } from "puppeteer";
import WebSocket from "ws";
import type { Chromium } from "../browser-source.js";

const HANDSHAKE_TIMEOUT_MS = 3_000;
const CLOSE_TIMEOUT_MS = 500;
const MESSAGE_MAX_BYTES = 256 * 1024 * 1024;

export interface SocketTransport extends ConnectionTransport, Pick<Chromium, "ended" | "isAlive" | "stop"> {
  readonly peer: string;
}

export async function openSocketTransport(url: string, stopped: AbortSignal): Promise<SocketTransport> {
  stopped.throwIfAborted();
  const socket = new WebSocket(url, {
    perMessageDeflate: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    maxPayload: MESSAGE_MAX_BYTES,
    // The credentials in the URL are only for this host.
    followRedirects: false,
  });
  const terminate = () => socket.terminate();
  stopped.addEventListener("abort", terminate);
  socket.on("close", () => stopped.removeEventListener("abort", terminate));
  let peer = "";
  socket.on("upgrade", (response) => {
    peer = (response.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
  });
  // An error is followed by the close event.
  socket.on("error", () => {});
  await once(socket, "open");
  return createTransport(socket, peer);
}

function createTransport(socket: WebSocket, peer: string): SocketTransport {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const transport: SocketTransport = {
    peer,
    ended,
    isAlive: () => socket.readyState === WebSocket.OPEN,
    send(message) {
      if (transport.isAlive()) socket.send(message);
    },
    close() {
      socket.close();
      setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS).unref();
    },
    stop() {
      transport.close();
      return ended;
    },
  };
  socket.on("message", (data: Buffer) => transport.onmessage?.(data.toString("utf8")));
  socket.on("close", () => {
    transport.onclose?.();
    resolve();
  });
  return transport;
}
