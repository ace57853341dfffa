/**
 * Neighbour: a second app with normal use, while a test attacks the service. Measures the duration of the neighbour's calls, and the pauses
 * of the service's event loop.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ServiceProcess } from "./process.js";

/** Interval of the neighbour's calls in milliseconds. A call starts even if the previous one has not ended. */
const EVERY_MS = 100;
const CODE = "async function execute({ payload }) { return payload.n * 2; }";

export interface NeighbourFigures {
  /** Number of calls. */
  calls: number;
  /** Median of the durations in milliseconds. */
  p50: number;
  /** 95th percentile of the durations in milliseconds. */
  p95: number;
  /** Duration of the longest call in milliseconds. */
  wait: number;
  /** Responses that were wrong. */
  failures: string[];
  /** Longest pause of the service's event loop in milliseconds, from its metrics. */
  pause: number;
}

export interface NeighbourApp {
  /** Sends calls until `during` has settled, but for at least `atLeastMs` milliseconds. */
  measureDuring(during: Promise<unknown>, atLeastMs: number): Promise<NeighbourFigures>;
}

const percentile = (sorted: readonly number[], share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;

/** Returns the longest pause of the event loop in milliseconds since the last read of the service's metrics. */
export async function readLongestPause(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const seconds = /^nodejs_eventloop_lag_max_seconds(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1];
  if (seconds === undefined) throw new Error("the service's metrics lack nodejs_eventloop_lag_max_seconds");
  return Number(seconds) * 1_000;
}

/** Creates the neighbour: a separate app with one action that uses no APIs outside of the JavaScript language. */
export async function createNeighbour(service: ServiceProcess, url: string): Promise<NeighbourApp> {
  const { admin } = service.credentials().tokens;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  const post = async (path: string, body: object): Promise<{ http: number; body: any }> => {
    const headers = { "auth-token": admin, "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { http: response.status, body: await response.json() };
  };
  const { body } = await post("/v1/admin/apps", { name: "Neighbour" });
  const actions = `/v3/apps/${body.app.id}/actions`;
  await post(actions, { name: "double", active: true, triggers: [{ trigger: "manual" }], code: CODE });

  async function call(n: number, durations: number[], failures: string[]): Promise<void> {
    const startedAt = performance.now();
    const answer = await post(`${actions}/double/runWithResult`, { n }).catch((error: Error) => ({
      http: 0,
      body: { result: error.message },
    }));
    durations.push(performance.now() - startedAt);
    if (answer.http !== 200 || answer.body.result !== n * 2) failures.push(JSON.stringify(answer).slice(0, 200));
  }

  return {
    async measureDuring(during, atLeastMs) {
      const durations: number[] = [];
      const failures: string[] = [];
      const calls: Promise<void>[] = [];
      let over = false;
      const settled = Promise.allSettled([during, delay(atLeastMs)]).then(() => {
        over = true;
      });
      await readLongestPause(url);
      let pause = 0;
      for (let n = 0; !over; n += 1) {
        calls.push(call(n, durations, failures));
        // Each read resets the metric, so `pause` stores the maximum. The loop does not wait for the read, which can be slow.
        if (n % 10 === 0) void readLongestPause(url).then((ms) => (pause = Math.max(pause, ms)));
        await delay(EVERY_MS);
      }
      await Promise.all([settled, ...calls]);
      pause = Math.max(pause, await readLongestPause(url));
      durations.sort((a, b) => a - b);
      return {
        calls: calls.length,
        p50: percentile(durations, 0.5),
        p95: percentile(durations, 0.95),
        wait: durations.at(-1) ?? 0,
        failures,
        pause,
      };
    },
  };
}
