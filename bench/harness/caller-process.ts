/**
 * A separate process that sends requests over persistent connections with little overhead, and reports the number of responses in a period
 * and their durations.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Connection, openConnection, requestOf } from "./connection.js";

/** Request of the parent. */
export interface Load {
  /** Called in rotation. */
  urls: readonly string[];
  headers: Record<string, string>;
  /** Sent by POST, unchanged. */
  body: string;
  /** Required part of each response; any other response ends the process. */
  expected: string;
  callers: number;
  /** Milliseconds during which responses are counted. */
  forMs: number;
  /** Warm-up before that, so that the first calls do not count as a pause. */
  rampMs?: number;
  /** Interval between calls of a caller, instead of calling continuously. */
  everyMs?: number;
}

/** Result for the parent. */
export interface Report {
  /** Responses within `forMs`, per second. */
  perSecond: number;
  /** Milliseconds of each call. */
  took: number[];
}

async function call(connection: Connection, request: Buffer, expected: string): Promise<void> {
  const answer = await connection.ask(request);
  if (!answer.includes(expected)) throw new Error(`another answer came: ${answer.slice(0, 500)}`);
}

async function measure(load: Load): Promise<Report> {
  const { urls, headers, body, callers, forMs, rampMs = 0, everyMs = 0 } = load;
  const requests = urls.map((url) => requestOf(new URL(url), headers, body));
  const expected = Buffer.from(load.expected).toString("latin1");
  const connections = await Promise.all(Array.from({ length: callers }, () => openConnection(new URL(urls[0]!))));
  const took: number[] = [];
  let begun = 0;
  let inTime = 0;
  const from = performance.now() + rampMs;
  const until = from + forMs;
  const caller = async (connection: Connection) => {
    while (performance.now() < until) {
      const at = performance.now();
      await call(connection, requests[begun++ % requests.length]!, expected);
      const now = performance.now();
      took.push(now - at);
      if (now > from && now <= until) inTime += 1;
      const rest = everyMs - (now - at);
      if (rest > 0) await delay(rest);
    }
  };
  await Promise.all(connections.map(caller));
  for (const connection of connections) connection.end();
  return { perSecond: (inTime * 1_000) / forMs, took };
}

process.once("disconnect", () => process.exit(0));
process.on("message", async (load: Load) => process.send!(await measure(load)));
