/** A second app that minds its own business beside an attack: how long its calls take, and how long the service's one thread paused. */
import { setTimeout as delay } from "node:timers/promises";
import type { ServiceProcess } from "./process.js";

/** A call is begun this often, whether or not the one before has come back. */
const EVERY_MS = 100;
const CODE = "async function execute({ payload }) { return payload.n * 2; }";

export interface Figures {
  /** Calls that were begun; every one of them has been answered. */
  calls: number;
  p50: number;
  p95: number;
  /** The longest. */
  wait: number;
  /** Answers that were not the right one. */
  failures: string[];
  /** The longest time for which the service's event loop did nothing else, in milliseconds, from its own metrics. */
  pause: number;
}

export interface Neighbour {
  /** Calls from now on, until `during` has settled, and for `atLeastMs`. */
  beside(during: Promise<unknown>, atLeastMs: number): Promise<Figures>;
}

const at = (sorted: readonly number[], share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;

/** Milliseconds since the last time that it was asked. */
async function longestPause(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const seconds = /^nodejs_eventloop_lag_max_seconds(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1];
  if (seconds === undefined) throw new Error("the metrics do not say how long the event loop paused");
  return Number(seconds) * 1_000;
}

/** A neighbour in an app of its own, with one action that needs the language alone. */
export async function createNeighbour(service: ServiceProcess, url: string): Promise<Neighbour> {
  const { admin } = service.credentials().tokens;
  // biome-ignore lint/suspicious/noExplicitAny: an answer has whatever shape its caller expects of it
  const post = async (path: string, body: object): Promise<{ http: number; body: any }> => {
    const headers = { "auth-token": admin, "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { http: response.status, body: await response.json() };
  };
  const { body } = await post("/v1/admin/apps", { name: "Neighbour" });
  const actions = `/v3/apps/${body.app.id}/actions`;
  await post(actions, { name: "double", active: true, triggers: [{ trigger: "manual" }], code: CODE });

  async function call(n: number, took: number[], failures: string[]): Promise<void> {
    const begun = performance.now();
    const answer = await post(`${actions}/double/runWithResult`, { n }).catch((error: Error) => ({
      http: 0,
      body: { result: error.message },
    }));
    took.push(performance.now() - begun);
    if (answer.http !== 200 || answer.body.result !== n * 2) failures.push(JSON.stringify(answer).slice(0, 200));
  }

  return {
    async beside(during, atLeastMs) {
      const took: number[] = [];
      const failures: string[] = [];
      const calls: Promise<void>[] = [];
      let over = false;
      const settled = Promise.allSettled([during, delay(atLeastMs)]).then(() => {
        over = true;
      });
      await longestPause(url);
      let pause = 0;
      for (let n = 0; !over; n += 1) {
        calls.push(call(n, took, failures));
        // The metric starts anew whenever it is asked, and an answer may itself have waited.
        if (n % 10 === 0) void longestPause(url).then((ms) => (pause = Math.max(pause, ms)));
        await delay(EVERY_MS);
      }
      await Promise.all([settled, ...calls]);
      pause = Math.max(pause, await longestPause(url));
      took.sort((a, b) => a - b);
      return { calls: calls.length, p50: at(took, 0.5), p95: at(took, 0.95), wait: took.at(-1) ?? 0, failures, pause };
    },
  };
}
