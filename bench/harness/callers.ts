/** Callers of runs in a separate process, so that measurements do not wait for them. */
import type { Load, Report } from "./caller-process.js";
import { messageOf, startChild } from "./child.js";
import { percentile } from "./figure.js";
import type { BenchService } from "./service.js";

export interface Calls {
  service: BenchService;
  /** Default: the editor's. */
  token?: string;
  /** Paths of runWithResult, called in rotation. */
  paths: readonly string[];
  payload: object;
  /** The result of each run. */
  result: unknown;
  /** Required part of each response; by default the result of runWithResult. */
  expected?: string;
}

export interface Callers {
  /** Responses per second for `callers` during `forMs` milliseconds. */
  rate(calls: Calls, callers: number, forMs?: number): Promise<number>;
  /** The p50 in milliseconds of one call every 200 ms. */
  paced(calls: Calls, count?: number): Promise<number>;
  stop(): void;
}

const PACE_MS = 200;
const PACED_CALLS = 24;
const RATE_MS = 2_000;
const RAMP_MS = 250;

export function startCallers(): Callers {
  const child = startChild("caller-process.js");

  async function ask(
    { service, token = service.first.tokens.editor, paths, payload, result, expected }: Calls,
    load: Pick<Load, "callers" | "forMs" | "rampMs" | "everyMs">,
  ) {
    const wanted: Load = {
      urls: paths.map((path) => service.url + path),
      headers: { "auth-token": token, "content-type": "application/json" },
      body: JSON.stringify(payload),
      expected: expected ?? `"result":${JSON.stringify(result)}}`,
      ...load,
    };
    child.send(wanted);
    return messageOf<Report>(child);
  }

  return {
    rate: async (calls, callers, forMs = RATE_MS) => (await ask(calls, { callers, forMs, rampMs: RAMP_MS })).perSecond,
    async paced(calls, count = PACED_CALLS) {
      const { took } = await ask(calls, { callers: 1, forMs: count * PACE_MS, everyMs: PACE_MS });
      return percentile(took, 0.5);
    },
    stop: () => void child.kill(),
  };
}
