/** Starts the load generator (caller-process.ts) in a separate process, so that its work does not slow the measuring process. */
import type { CallLoad, CallReport } from "./caller-process.js";
import { nextMessage, startBenchChild } from "./child.js";
import { computePercentile } from "./figure.js";
import type { BenchService } from "./service.js";

export interface RunWithResultLoad {
  service: BenchService;
  /** Token that is sent; by default the editor's. */
  token?: string;
  /** Paths of runWithResult that are called in rotation. */
  paths: readonly string[];
  payload: object;
  /** Result that each run must return. */
  result: unknown;
  /** Text that each response must contain. By default it is derived from `result`. */
  expected?: string;
}

export interface LoadGenerator {
  /** Measures responses per second with `callers` concurrent callers during `measuredMs` milliseconds. */
  measureRate(calls: RunWithResultLoad, callers: number, measuredMs?: number): Promise<number>;
  /** Measures the median duration of a call in milliseconds, with one call every 200 ms. */
  measurePacedDuration(calls: RunWithResultLoad, count?: number): Promise<number>;
  stop(): void;
}

const PACED_INTERVAL_MS = 200;
const PACED_CALLS = 24;
const RATE_MS = 2_000;
const WARM_UP_MS = 250;

export function startLoadGenerator(): LoadGenerator {
  const child = startBenchChild("caller-process.js");

  async function sendLoad(
    { service, token = service.first.tokens.editor, paths, payload, result, expected }: RunWithResultLoad,
    load: Pick<CallLoad, "callers" | "measuredMs" | "warmUpMs" | "intervalMs">,
  ) {
    const message: CallLoad = {
      urls: paths.map((path) => service.url + path),
      headers: { "auth-token": token, "content-type": "application/json" },
      body: JSON.stringify(payload),
      expected: expected ?? `"result":${JSON.stringify(result)}}`,
      ...load,
    };
    child.send(message);
    return nextMessage<CallReport>(child);
  }

  return {
    measureRate: async (calls, callers, measuredMs = RATE_MS) =>
      (await sendLoad(calls, { callers, measuredMs, warmUpMs: WARM_UP_MS })).perSecond,
    async measurePacedDuration(calls, count = PACED_CALLS) {
      const { durations } = await sendLoad(calls, {
        callers: 1,
        measuredMs: count * PACED_INTERVAL_MS,
        intervalMs: PACED_INTERVAL_MS,
      });
      return computePercentile(durations, 0.5);
    },
    stop: () => void child.kill(),
  };
}
