/**
 * A process of its own that calls over kept connections, as cheaply as can be, and says how many answers came in a span of time and how
 * long each took. Knows nothing of who answers.
 */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

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

/** A server closes what is idle for five seconds; a call just then would fail. */
const agent = new Agent({ keepAlive: true, timeout: 3_000 });

function call(url: string, { headers, body, expected }: Load): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: "POST", agent, headers }, async (response) => {
      const answer = await text(response);
      if (answer.includes(expected)) resolve();
      else reject(new Error(`${url} answered ${response.statusCode}: ${answer.slice(0, 500)}`));
    });
    outgoing.once("error", reject).end(body);
  });
}

async function measure(load: Load): Promise<Report> {
  const { urls, callers, forMs, rampMs = 0, everyMs = 0 } = load;
  const took: number[] = [];
  let begun = 0;
  let inTime = 0;
  const from = performance.now() + rampMs;
  const until = from + forMs;
  const caller = async () => {
    while (performance.now() < until) {
      const at = performance.now();
      await call(urls[begun++ % urls.length]!, load);
      const now = performance.now();
      took.push(now - at);
      if (now > from && now <= until) inTime += 1;
      const rest = everyMs - (now - at);
      if (rest > 0) await delay(rest);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { perSecond: (inTime * 1_000) / forMs, took };
}

process.once("disconnect", () => process.exit(0));
process.on("message", async (load: Load) => process.send!(await measure(load)));
