/**
 * A separate process that holds many graphql-transport-ws sockets and counts received messages with little overhead, so that the load
 * generator is not the bottleneck.
 */
import { once } from "node:events";
import WebSocket from "ws";

/** Request of the parent. */
export interface Wanted {
  url: string;
  token: string;
  query: string;
  sockets: number;
}

/** Periodic report to the parent: deliveries so far, and sampled delays since the last report. */
export interface Report {
  delivered: number;
  /** Sockets that have received at least one delivery. */
  reached: number;
  /** Milliseconds since the event's `sentAt`. */
  delays: number[];
}

/** One of this many sockets parses its messages; the others only count them. */
const SAMPLED = 20;
/** Sockets that are opened concurrently. */
const AT_ONCE = 50;
const REPORT_MS = 5;
const SENT_AT = '"sentAt":';

const report: Report = { delivered: 0, reached: 0, delays: [] };

function delayOf(text: string): number {
  const at = text.indexOf(SENT_AT);
  if (at < 0) throw new Error(`no event: ${text}`);
  return performance.timeOrigin + performance.now() - Number.parseFloat(text.slice(at + SENT_AT.length, at + 40));
}

/** Resolves when the server has accepted the socket and the subscription has been sent. */
async function open({ url, token, query }: Wanted, sampled: boolean): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
    perMessageDeflate: false,
  });
  socket.on("close", (code) => {
    throw new Error(`a socket was closed with ${code}`);
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: token } }));
  await once(socket, "message");
  socket.once("message", () => {
    report.reached += 1;
  });
  socket.on("message", (data) => {
    report.delivered += 1;
    if (sampled) report.delays.push(delayOf(String(data)));
  });
  socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query } }));
}

function tell(): void {
  process.send!(report);
  report.delays = [];
}

process.once("disconnect", () => process.exit(0));
process.once("message", async (wanted: Wanted) => {
  for (let opened = 0; opened < wanted.sockets; opened += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => open(wanted, (opened + lane) % SAMPLED === 0)));
  }
  let told = -1;
  setInterval(() => {
    if (report.delivered !== told) tell();
    told = report.delivered;
  }, REPORT_MS);
});
