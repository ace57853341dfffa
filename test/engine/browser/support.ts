/** What the tests of the browser share: one browser started for a file, and runs described by what differs. */
import { existsSync } from "node:fs";
import pino from "pino";
import { type Browsers, type BrowsersOptions, createBrowsers } from "../../../src/engine/browser/browsers.js";
import type { Outcome, PageRun } from "../../../src/engine/browser/page-run.js";

const CHROME_CANDIDATES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];

export function chromePath(): string {
  const path = process.env["CHROME_PATH"] ?? CHROME_CANDIDATES.find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error("no Chromium: set CHROME_PATH");
  return path;
}

export function testBrowsers(options: Partial<BrowsersOptions> = {}): Browsers {
  const log = pino({ level: "silent" });
  return createBrowsers({ chromePath: chromePath(), sandbox: true, concurrency: 4, log, openLane: null, ...options });
}

/** A run of the given source with everything else at rest. */
export function runOf(source: string, changes: Partial<PageRun> = {}): PageRun {
  return {
    isolationKey: "1:master",
    origin: "https://app-1.actions.internal",
    source,
    packages: [],
    payload: "{}",
    settings: "{}",
    timeoutMs: 10_000,
    ...changes,
  };
}

/** The value that `execute` returned. Throws with the run's error when there is none. */
export async function resultOf(browsers: Browsers, source: string, changes: Partial<PageRun> = {}): Promise<unknown> {
  const outcome = await browsers.run(runOf(source, changes));
  if (!outcome.ok) throw new Error(`${outcome.cause}: ${outcome.error.stack}`);
  return outcome.data === undefined ? undefined : JSON.parse(outcome.data);
}

/** The failure of a run. Throws when it succeeded. */
export async function failureOf(
  browsers: Browsers,
  source: string,
  changes: Partial<PageRun> = {},
): Promise<Extract<Outcome, { ok: false }>> {
  const outcome = await browsers.run(runOf(source, changes));
  if (outcome.ok) throw new Error(`expected a failure, got ${outcome.data}`);
  return outcome;
}

/** Polls until the condition holds. Throws after `boundMs`. */
export async function until(condition: () => boolean | Promise<boolean>, boundMs = 5_000): Promise<void> {
  const deadline = Date.now() + boundMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${boundMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
