/** Executes runs that flood the browser's main process, while another app runs code. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { PageRunOutcome } from "../../../src/engine/browser/run.js";
import { runOf } from "./support.js";

const QUIET_RUNS = 20;
/** Time limit of a run in milliseconds. It is long, because a flood takes long on a slow machine. */
const LIMIT_MS = 240_000;

const inWorker = (code: string) =>
  `new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}]))); await new Promise(() => {});`;
const frameCode = (code: string) =>
  `const frame = document.createElement("iframe"); document.body.append(frame); frame.contentWindow.eval(${JSON.stringify(code)});`;

export const PLACES: [string, (code: string) => string][] = [
  ["the page", (code) => code],
  ["a frame", frameCode],
  ["a worker", inWorker],
];

/**
 * Floods of messages to the browser's processes: title, code, and names of the PLACES where the code can run. The code does not wait for
 * responses.
 */
export const FLOODS: [string, string, string[]][] = [
  ["requests", "for (;;) fetch(`https://host.example/`).catch(() => {});", ["a worker"]],
  ["requests that are blocked", "for (;;) fetch('/x').catch(() => {});", ["the page", "a frame"]],
  ["beacons", "for (;;) navigator.sendBeacon('/x', 'y');", ["the page", "a frame"]],
  ["reported errors", "for (;;) reportError(new Error('x'));", ["the page", "a frame", "a worker"]],
];

/** Error messages with which a flood may end. Messages that wait to be sent count as the run's memory. */
export const FLOOD_ENDED = /caused so much work in the browser that other runs had to wait|used too much memory/;

export interface FloodOutcome {
  outcome: PageRunOutcome;
  lost: number;
  /** Duration of the other app's longest run during the flood, in milliseconds. */
  longest: number;
  /** Duration of the other app's longest run before the flood, in milliseconds. */
  quiet: number;
}

/** Executes `code` as a run of one app. Another app executes runs before, during and after this run. */
export async function runNeighbourDuringFlood(browsers: Browsers, code: string): Promise<FloodOutcome> {
  const other = { isolationKey: "2:master", origin: "https://app-2.actions.internal", timeoutMs: LIMIT_MS };
  let longest = 0;
  const neighbour = async () => {
    const startedAt = performance.now();
    const { ok } = await browsers.run(runOf("const execute = async () => 1", other));
    longest = Math.max(longest, performance.now() - startedAt);
    return ok;
  };
  for (let count = 0; count < QUIET_RUNS; count += 1) await neighbour();
  const quiet = longest;
  longest = 0;
  let over = false;
  const flood = browsers.run(runOf(`const execute = async () => { ${code} }`, { timeoutMs: LIMIT_MS })).finally(() => {
    over = true;
  });
  let lost = 0;
  while (!over) if (!(await neighbour())) lost += 1;
  if (!(await neighbour())) lost += 1;
  return { outcome: await flood, lost, longest, quiet };
}

/** Code that floods the browser with BroadcastChannels or their messages, until it exceeds a limit. */
export const CHANNEL_FLOODS = [
  "for (;;) new BroadcastChannel('x').postMessage(1);",
  "const c = new BroadcastChannel('x'); for (;;) c.postMessage(1);",
  "const Own = Object.getPrototypeOf(new BroadcastChannel('x')).constructor; for (;;) new Own('x').close();",
  "for (;;) Reflect.construct(BroadcastChannel, ['x'], Object).close?.();",
] as const;
export const LOCK_FLOOD = "for (;;) navigator.locks.request('a' + Math.random(), () => {});";
/** Title of a context in a page, and a function that returns code to run a flood there. An error of the flood ends the run. */
export const CHANNEL_PLACES: [string, (code: string) => string][] = [
  ...PLACES.slice(0, 2),
  [
    "a worker",
    (code) => `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
      await new Promise((_, reject) => { worker.onerror = (event) => reject(new Error(event.message)) });`,
  ],
];

/** Expects that the flood ends with an error about a limit, and that all runs of the other app succeed. */
export async function expectFloodRefused(browsers: Browsers, code: string): Promise<void> {
  const { outcome, lost } = await runNeighbourDuringFlood(browsers, code);
  expect(lost).to.equal(0);
  expect(outcome.ok ? "it went through" : outcome.error.message).to.match(
    /^(Uncaught RangeError: )?An action can (open at most 8 BroadcastChannels|send at most 1000 messages over|request at most 1000 locks)/,
  );
}
