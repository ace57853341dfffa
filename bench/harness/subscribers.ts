/**
 * Subscribers, run as a separate process: opens many GraphQL WebSockets and counts the messages with little overhead, so that the
 * subscribers do not limit the measured rate.
 */
import { once } from "node:events";
import WebSocket from "ws";

/** Message from the parent process: the subscription, and the number of sockets that open it. */
export interface SubscribersOptions {
  url: string;
  token: string;
  query: string;
  sockets: number;
}

/** Message to the parent process after new deliveries: their total number, and the sampled delays since the last message. */
export interface DeliveryReport {
  delivered: number;
  /** Number of sockets that have received at least one delivery. */
  reachedSockets: number;
  /** Delays in milliseconds, counted from the event's `sentAt`. */
  delays: number[];
}

/** Every twentieth socket parses its messages to measure delays. The others only count messages. */
const SAMPLE_INTERVAL = 20;
/** Maximum number of sockets that are being opened at the same time. */
const CONCURRENT_OPENINGS = 50;
const REPORT_INTERVAL_MS = 5;
const SENT_AT_KEY = '"sentAt":';

const report: DeliveryReport = { delivered: 0, reachedSockets: 0, delays: [] };

function parseDelay(text: string): number {
  const keyIndex = text.indexOf(SENT_AT_KEY);
  if (keyIndex < 0) throw new Error(`the message contains no event (got ${text})`);
  return (
    performance.timeOrigin +
    performance.now() -
    Number.parseFloat(text.slice(keyIndex + SENT_AT_KEY.length, keyIndex + 40))
  );
}

/** Opens a socket and subscribes. Resolves when the server has accepted the connection and the subscription has been sent. */
async function openSocket({ url, token, query }: SubscribersOptions, isSampled: boolean): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
    perMessageDeflate: false,
  });
  socket.on("close", (code) => {
    throw new Error(`a WebSocket was closed (got close code ${code})`);
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init", payload: { authToken: token } }));
  await once(socket, "message");
  socket.once("message", () => {
    report.reachedSockets += 1;
  });
  socket.on("message", (data) => {
    report.delivered += 1;
    if (isSampled) report.delays.push(parseDelay(String(data)));
  });
  socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query } }));
}

function sendReport(): void {
  process.send!(report);
  report.delays = [];
}

process.once("disconnect", () => process.exit(0));
process.once("message", async (options: SubscribersOptions) => {
  for (let opened = 0; opened < options.sockets; opened += CONCURRENT_OPENINGS) {
    await Promise.all(
      Array.from({ length: CONCURRENT_OPENINGS }, (_, socketIndex) =>
        openSocket(options, (opened + socketIndex) % SAMPLE_INTERVAL === 0),
      ),
    );
  }
  let reportedCount = -1;
  setInterval(() => {
    if (report.delivered !== reportedCount) sendReport();
    reportedCount = report.delivered;
  }, REPORT_INTERVAL_MS);
});
