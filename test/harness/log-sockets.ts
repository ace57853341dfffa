/** Opens sockets that follow an app's execution log, and can stop reading. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import WebSocket from "ws";

export interface LogSocket {
  /** Number of received frames with log entries. */
  received(): number;
  /** Payloads of the runs in these frames. */
  payloads(): Record<string, unknown>[];
  /** Stops reading from the network: the socket receives no frames, no pings, and no end of the connection. */
  stall(): void;
  /** Reads the remaining data. Resolves to the code with which the socket was closed. */
  drain(): Promise<number>;
  close(): void;
  /** Local port of the connection. */
  port: number;
}

const ESTABLISHED_STATE = "01";

/** Opens a socket, and resolves when the subscription has been sent. */
export async function followLogs(url: string, token: string, appId: number): Promise<LogSocket> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  const closed = once(socket, "close") as Promise<[code: number]>;
  const [[response]] = await Promise.all([once(socket, "upgrade"), once(socket, "open")]);
  socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: token } }));
  await once(socket, "message");
  const frames: Buffer[] = [];
  socket.on("message", (frame) => frames.push(frame as Buffer));
  const query = `subscription { actionLogAdded(appId: ${appId}) { id type createdAt data } }`;
  socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query } }));
  return {
    received: () => frames.length,
    payloads: () => frames.map((frame) => JSON.parse(String(frame)).payload.data.actionLogAdded.data.payload),
    stall: () => socket.pause(),
    async drain() {
      socket.resume();
      return (await closed)[0];
    },
    close: () => socket.close(1000),
    port: response.socket.localPort,
  };
}

/** Returns the number of these sockets whose TCP connection is still established on the service's side. */
export function countOpenSockets(url: string, sockets: readonly LogSocket[]): number {
  const ports = new Set(sockets.map(({ port }) => port));
  const served = Number(new URL(url).port);
  const portOf = (address = "") => Number.parseInt(address.split(":")[1] ?? "", 16);
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, near, far, state]) => state === ESTABLISHED_STATE && portOf(near) === served && ports.has(portOf(far)))
    .length;
}
