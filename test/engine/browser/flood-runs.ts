/** Runs that flood the browser's own process, and a neighbour app that runs code at the same time. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { PageOutcome } from "../../../src/engine/browser/run.js";
import { runOf } from "./support.js";

const QUIET_RUNS = 20;
/** Time limit of a run in milliseconds. It only ends a run that hangs: slow machines need long for a flood. */
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

/** Floods of messages to the browser's processes that wait for no response: title, code, and where in a page the code can run. */
export const FLOODS: [string, string, string[]][] = [
  ["requests", "for (;;) fetch(`https://host.example/`).catch(() => {});", ["a worker"]],
  ["requests that are blocked", "for (;;) fetch('/x').catch(() => {});", ["the page", "a frame"]],
  ["beacons", "for (;;) navigator.sendBeacon('/x', 'y');", ["the page", "a frame"]],
  ["reported errors", "for (;;) reportError(new Error('x'));", ["the page", "a frame", "a worker"]],
];

/** Errors with which a flood may end. Data that waits to be sent counts as the run's memory. */
export const FLOOD_ENDED =
  /caused so much work in the browser that other runs had to wait|used more than 512 MB of memory/;

export interface FloodOutcome {
  outcome: PageOutcome;
  /** Number of the neighbour's runs that failed during the flood. */
  lost: number;
  /** Longest run of the neighbour during the flood, and without a flood (`quiet`), in milliseconds. */
  longest: number;
  quiet: number;
}

/** Executes `code` until it ends. The neighbour runs code before it, repeatedly during it, and once after it. */
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

/** Code that floods with BroadcastChannels. A limit of channels or of messages ends each flood. */
export const CHANNEL_FLOODS = [
  "for (;;) new BroadcastChannel('x').postMessage(1);",
  "const c = new BroadcastChannel('x'); for (;;) c.postMessage(1);",
  "const Own = Object.getPrototypeOf(new BroadcastChannel('x')).constructor; for (;;) new Own('x').close();",
  "for (;;) Reflect.construct(BroadcastChannel, ['x'], Object).close?.();",
] as const;
export const LOCK_FLOOD = "for (;;) navigator.locks.request('a' + Math.random(), () => {});";
/** Contexts in a page where the flood can run, such as a worker. An error of the flood ends the run. */
export const CHANNEL_PLACES: [string, (code: string) => string][] = [
  ...PLACES.slice(0, 2),
  [
    "a worker",
    (code) => `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
      await new Promise((_, reject) => { worker.onerror = (event) => reject(new Error(event.message)) });`,
  ],
];

/** Expects that the flood fails with an error that names the limit, and that no run of the neighbour fails. */
export async function expectFloodRefused(browsers: Browsers, code: string): Promise<void> {
  const { outcome, lost } = await runNeighbourDuringFlood(browsers, code);
  expect(lost).to.equal(0);
  expect(outcome.ok ? "it went through" : outcome.error.message).to.match(
    /^(Uncaught RangeError: )?An action can (open at most 8 BroadcastChannels|send at most 1000 messages over|request at most 1000 locks)/,
  );
}
