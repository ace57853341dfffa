/**
 * Load generator, run as a separate process: sends requests over persistent connections with little overhead. Reports the responses per
 * second and the duration of each call.
 */
import { setTimeout as delay } from "node:timers/promises";
import { encodePostRequest, openConnection, type PersistentConnection } from "./connection.js";

/** Message from the parent process: the requests to send. */
export interface CallLoad {
  /** URLs that are called in rotation. */
  urls: readonly string[];
  headers: Record<string, string>;
  /** Body of each POST request. */
  body: string;
  /** Text that each response must contain. Any other response ends the process with an error. */
  expected: string;
  callers: number;
  /** Period in which responses are counted, in milliseconds. */
  measuredMs: number;
  /** Warm-up before that period, in milliseconds; its responses are not counted. */
  warmUpMs?: number;
  /** Interval between the calls of one caller, in milliseconds. Without it, each caller calls continuously. */
  intervalMs?: number;
}

/** Message to the parent process: the results. */
export interface CallReport {
  /** Responses per second within the measured period. */
  perSecond: number;
  /** Duration of each call in milliseconds, including the calls of the warm-up. */
  durations: number[];
}

async function sendRequest(connection: PersistentConnection, request: Buffer, expected: string): Promise<void> {
  const answer = await connection.send(request);
  if (!answer.includes(expected)) throw new Error(`unexpected response (got ${answer.slice(0, 500)})`);
}

async function measureLoad(load: CallLoad): Promise<CallReport> {
  const { urls, headers, body, callers, measuredMs, warmUpMs = 0, intervalMs = 0 } = load;
  const requests = urls.map((url) => encodePostRequest(new URL(url), headers, body));
  const expected = Buffer.from(load.expected).toString("latin1");
  const connections = await Promise.all(Array.from({ length: callers }, () => openConnection(new URL(urls[0]!))));
  const durations: number[] = [];
  let requestIndex = 0;
  let countedResponses = 0;
  const from = performance.now() + warmUpMs;
  const until = from + measuredMs;
  const runCaller = async (connection: PersistentConnection) => {
    while (performance.now() < until) {
      const sentAt = performance.now();
      await sendRequest(connection, requests[requestIndex++ % requests.length]!, expected);
      const now = performance.now();
      durations.push(now - sentAt);
      if (now > from && now <= until) countedResponses += 1;
      const remainingMs = intervalMs - (now - sentAt);
      if (remainingMs > 0) await delay(remainingMs);
    }
  };
  await Promise.all(connections.map(runCaller));
  for (const connection of connections) connection.end();
  return { perSecond: (countedResponses * 1_000) / measuredMs, durations };
}

process.once("disconnect", () => process.exit(0));
process.on("message", async (load: CallLoad) => process.send!(await measureLoad(load)));
