import pino from "pino";
import type { BrowserSource, Chromium } from "../../../src/engine/browser/browser-source.js";
import { Browsers, type BrowsersOptions } from "../../../src/engine/browser/browsers.js";
import {
  type ChromiumOptions,
  createLocalBrowserSource,
  startChromium,
} from "../../../src/engine/browser/processes/chromium.js";
import {
  createRemoteBrowserSource,
  type RemoteBrowser,
  type RemoteBrowserOptions,
} from "../../../src/engine/browser/remote/remote-browser.js";
import type { PageRunOutcome, PageRunRequest } from "../../../src/engine/browser/run.js";
import { chromePath } from "../../harness/remote-chromium.js";
import { runsAll } from "../../harness/samples.js";
import { sharedBrowserEndpoint } from "../../harness/shared-chromium.js";

/** Creates browsers on this machine, or browsers of `sources` if this option is set. */
export function testBrowsers(options: Partial<BrowsersOptions & ChromiumOptions> = {}): Browsers {
  const { log = pino({ level: "silent" }), sandbox = true, ...others } = options;
  const local = createLocalBrowserSource({ chromePath: options.chromePath ?? chromePath(), sandbox, log });
  return new Browsers({ sources: [local], openProxyPort: null, log, ...others });
}

export const startTestChromium = (): Promise<Chromium> =>
  startChromium({ chromePath: chromePath(), sandbox: true }, new AbortController().signal);

export function createRemoteSource(endpoint: string, changes: Partial<RemoteBrowserOptions> = {}): RemoteBrowser {
  return createRemoteBrowserSource({
    endpoint,
    egressHost: "127.0.0.1",
    sandbox: true,
    log: pino({ level: "silent" }),
    ...changes,
  });
}

function sharedSource(): BrowserSource {
  const remote = sharedBrowserEndpoint().then(createRemoteSource);
  return {
    name: "shared Chromium",
    open: async (stopped) => (await remote).open(stopped),
    checkSandbox: async (chromium) => (await remote).checkSandbox(chromium),
  };
}

/**
 * Returns browsers that share one Chromium with all test files of this process, because a start takes about a second of processor time. In
 * the long tests, returns browsers of their own.
 */
export function sharedBrowsers(options: Partial<BrowsersOptions> = {}): Browsers {
  return runsAll() ? testBrowsers(options) : testBrowsers({ sources: [sharedSource()], ...options });
}

/** Returns a run of this source in a document. `changes` replaces default values. */
export function runOf(source: string, changes: Partial<PageRunRequest> = {}): PageRunRequest {
  return {
    isolationKey: "1:master",
    origin: "https://app-1.actions.internal",
    source,
    packages: [],
    payload: "{}",
    settings: "{}",
    // A run that hangs ends before the time limit of its test.
    timeoutMs: 50_000,
    mode: "document",
    ...changes,
  };
}

/** Executes the source as a run. Returns its result. @throws Error if the run fails */
export async function resultOf(
  browsers: Browsers,
  source: string,
  changes: Partial<PageRunRequest> = {},
): Promise<unknown> {
  const outcome = await browsers.run(runOf(source, changes));
  if (!outcome.ok) throw new Error(`${outcome.cause}: ${outcome.error.stack}`);
  return outcome.data === undefined ? undefined : JSON.parse(String(outcome.data));
}

/** Executes the source as a run that must fail. Returns the cause and the error. @throws Error if the run succeeds */
export async function failureOf(
  browsers: Browsers,
  source: string,
  changes: Partial<PageRunRequest> = {},
): Promise<Extract<PageRunOutcome, { ok: false }>> {
  const outcome = await browsers.run(runOf(source, changes));
  if (outcome.ok) throw new Error(`expected a failure, got ${outcome.data}`);
  return outcome;
}

/** Executes a body of `execute`. Returns its result, and in `seen` the modes of its attempts and its console lines, in order. */
export async function runBody(browsers: Browsers, body: string, changes: Partial<PageRunRequest>) {
  const seen: string[] = [];
  const result = await resultOf(browsers, `async function execute({ payload }) { ${body} }`, {
    mode: undefined,
    onMode: (realm) => void seen.push(realm),
    onConsole: ({ text }) => void seen.push(text),
    ...changes,
  });
  return { result, seen };
}
