/** Runs that flood the browser's own process, and a neighbour whose runs go on beside one. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { PageOutcome } from "../../../src/engine/browser/run.js";
import { runOf } from "./support.js";

const QUIET_RUNS = 20;
/** Ends what hangs: how soon a flood is ended depends on the processor time that the machine has for the browser. */
const LIMIT_MS = 240_000;

const inWorker = (code: string) =>
  `new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}]))); await new Promise(() => {});`;
const inFrame = (code: string) =>
  `const frame = document.createElement("iframe"); document.body.append(frame); frame.contentWindow.eval(${JSON.stringify(code)});`;

export const PLACES: [string, (code: string) => string][] = [
  ["the page", (code) => code],
  ["a frame", inFrame],
  ["a worker", inWorker],
];

/** What is told to the browser's processes without waiting for an answer. */
export const FLOODS: [string, string, string[]][] = [
  ["requests", "for (;;) fetch(`https://host.example/`).catch(() => {});", ["a worker"]],
  ["requests that are blocked", "for (;;) fetch('/x').catch(() => {});", ["the page", "a frame"]],
  ["beacons", "for (;;) navigator.sendBeacon('/x', 'y');", ["the page", "a frame"]],
  ["reported errors", "for (;;) reportError(new Error('x'));", ["the page", "a frame", "a worker"]],
];

/** What waits to be sent counts as the run's memory. */
export const FLOOD_ENDED =
  /asked the browser for so much at once that other runs had to wait|used more than 512 MB of memory/;

export interface Beside {
  outcome: PageOutcome;
  /** How many of the neighbour's runs failed while the flood lasted. */
  lost: number;
  /** The neighbour's longest run beside the flood, and before it, in milliseconds. */
  longest: number;
  quiet: number;
}

/** Runs `code` to its end, and a neighbour's runs one after the other before it, beside it and once after it. */
export async function besideFlood(browsers: Browsers, code: string): Promise<Beside> {
  const other = { isolationKey: "2:master", origin: "https://app-2.actions.internal", timeoutMs: LIMIT_MS };
  let longest = 0;
  const neighbour = async () => {
    const begun = performance.now();
    const { ok } = await browsers.run(runOf("const execute = async () => 1", other));
    longest = Math.max(longest, performance.now() - begun);
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

/** Floods by channels, each refused by what it asks for. */
export const CHANNEL_FLOODS = [
  "for (;;) new BroadcastChannel('x').postMessage(1);",
  "const c = new BroadcastChannel('x'); for (;;) c.postMessage(1);",
  "const Own = Object.getPrototypeOf(new BroadcastChannel('x')).constructor; for (;;) new Own('x').close();",
  "for (;;) Reflect.construct(BroadcastChannel, ['x'], Object).close?.();",
] as const;
export const LOCK_FLOOD = "for (;;) navigator.locks.request('a' + Math.random(), () => {});";
/** Places whose errors end the run. */
export const CHANNEL_PLACES: [string, (code: string) => string][] = [
  ...PLACES.slice(0, 2),
  [
    "a worker",
    (code) => `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
      await new Promise((_, reject) => { worker.onerror = (event) => reject(new Error(event.message)) });`,
  ],
];

/** Expects that the flood is refused in words and that no run of the neighbour is lost. */
export async function expectRefused(browsers: Browsers, code: string): Promise<void> {
  const { outcome, lost } = await besideFlood(browsers, code);
  expect(lost).to.equal(0);
  expect(outcome.ok ? "it went through" : outcome.error.message).to.match(
    /^(Uncaught RangeError: )?An action may (open 8 BroadcastChannels|send 1000 messages over|ask for 1000 locks)/,
  );
}
