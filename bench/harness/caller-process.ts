/**
 * A process of its own that calls over kept connections, as cheaply as can be, and says how many answers came in a span
 * of time and how long each took.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Connection, openConnection, requestOf } from "./connection.js";

/** What the parent asks for. */
export interface Load {
  /** Called in turns. */
  urls: readonly string[];
  headers: Record<string, string>;
  /** Sent by POST as it is. */
  body: string;
  /** A part of each answer; any other answer ends the process. */
  expected: string;
  callers: number;
  /** How long answers are counted, in milliseconds. */
  forMs: number;
  /** How long they call before that, so that the first calls of many do not count as a pause. */
  rampMs?: number;
  /** A caller begins one every so many milliseconds, and not one right after the other. */
  everyMs?: number;
}

/** What the parent is answered. */
export interface Report {
  /** Of the answers that came within `forMs`. */
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
