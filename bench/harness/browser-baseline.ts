/** Baselines for runs: control the same Chromium directly by the DevTools protocol, with the options of the service or of Puppeteer. */
import { setTimeout as delay } from "node:timers/promises";
import puppeteer, { type CDPSession, type Protocol } from "puppeteer";
import { readConfig } from "../../src/config.js";
import type { Chromium } from "../../src/engine/browser/browser-source.js";
import { startChromium } from "../../src/engine/browser/processes/chromium.js";
import { findChromium, getDefaultChromiumPaths } from "../../src/engine/chromium-path.mjs";
import { computeMedian, timeCalls } from "./figure.js";

const PAGE_ORIGIN = "https://floor.actions.internal";
const PAGE_BODY = Buffer.from("<!doctype html>").toString("base64");
const EVALUATED_SCRIPT = "(async () => 1)()";

/** Number of concurrent loops. On a machine with few cores, two loops have the highest throughput. */
const LOOP_COUNT = 2;
const RATE_MS = 800;
const PACE_MS = 200;

export interface BrowserBaseline {
  /** Measures how long an open page takes to evaluate a script, with one call every 200 ms. Returns the median in milliseconds. */
  measureEvaluationDuration(count?: number): Promise<number>;
  /** Measures rounds per second. Each round navigates to a new document and evaluates a script there. */
  measureNavigationRate(): Promise<number>;
  /** Measures rounds per second. Each round creates a browser context with a document, evaluates a script, and disposes of the context. */
  measureContextRate(): Promise<number>;
  stop(): Promise<void>;
}

/** Repeats all `loops` concurrently for `RATE_MS`. Returns the total rounds per second. */
async function measureRate(loops: readonly (() => Promise<unknown>)[]): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  await Promise.all(
    loops.map(async (runOnce) => {
      for (; performance.now() - startedAt < RATE_MS; count += 1) await runOnce();
    }),
  );
  return (count * 1_000) / (performance.now() - startedAt);
}

async function navigateToDocument(session: CDPSession): Promise<void> {
  const loaded = new Promise<void>((resolve) => session.once("Page.loadEventFired", () => resolve()));
  await session.send("Page.navigate", { url: `${PAGE_ORIGIN}/` });
  await loaded;
}

function evaluateScript(session: CDPSession): Promise<unknown> {
  return session.send("Runtime.evaluate", { expression: EVALUATED_SCRIPT, awaitPromise: true, returnByValue: true });
}

async function navigateAndEvaluate(session: CDPSession): Promise<void> {
  await navigateToDocument(session);
  await evaluateScript(session);
}

async function serveDocuments(session: CDPSession): Promise<void> {
  session.on("Fetch.requestPaused", ({ requestId }) => {
    // Ignores an error, because the command fails only if the page has closed.
    void session.send("Fetch.fulfillRequest", { requestId, responseCode: 200, body: PAGE_BODY }).catch(() => {});
  });
  await session.send("Page.enable");
  await session.send("Fetch.enable", { patterns: [{ urlPattern: `${PAGE_ORIGIN}/*` }] });
  await navigateToDocument(session);
}

async function openPage({ connection }: Chromium): Promise<{ session: CDPSession; browserContextId: string }> {
  const { browserContextId } = await connection.send("Target.createBrowserContext");
  const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", browserContextId });
  const session = await connection.createSession({ targetId } as Protocol.Target.TargetInfo);
  await serveDocuments(session);
  return { session, browserContextId };
}

function readChromium(): { chromePath: string; sandbox: boolean } {
  const { chromePath: configuredPath, puppeteerCacheDir, chromeSandbox: sandbox } = readConfig();
  const chromePath = findChromium(configuredPath, getDefaultChromiumPaths(puppeteerCacheDir));
  if (!chromePath) throw new Error("no Chromium found; set CHROME_PATH");
  return { chromePath, sandbox };
}

/** Starts Chromium with the default options of Puppeteer, as a program without this service would. */
export async function startDefaultBrowserBaseline(): Promise<Pick<BrowserBaseline, "measureNavigationRate" | "stop">> {
  const isRoot = process.getuid?.() === 0;
  // Chromium refuses to run its sandbox as root.
  const args = isRoot ? ["--no-sandbox"] : [];
  const browser = await puppeteer.launch({ executablePath: readChromium().chromePath, headless: "shell", args });
  const openSession = async () => {
    const session = await (await browser.newPage()).createCDPSession();
    await serveDocuments(session);
    return session;
  };
  const sessions = await Promise.all(Array.from({ length: LOOP_COUNT }, openSession));
  return {
    measureNavigationRate: () => measureRate(sessions.map((session) => () => navigateAndEvaluate(session))),
    stop: () => browser.close(),
  };
}

export async function startBrowserBaseline(): Promise<BrowserBaseline> {
  const chromium = await startChromium(readChromium(), new AbortController().signal);
  const disposeContext = (browserContextId: string) =>
    chromium.connection.send("Target.disposeBrowserContext", { browserContextId });
  // The pages stay open between measurements, because an idle page costs no processor time.
  const pages = await Promise.all(Array.from({ length: LOOP_COUNT }, () => openPage(chromium)));

  return {
    async measureEvaluationDuration(count = 8) {
      const samples: number[] = [];
      while (samples.length < count) {
        samples.push(...(await timeCalls(1, () => evaluateScript(pages[0]!.session))));
        await delay(PACE_MS);
      }
      return computeMedian(samples);
    },
    measureNavigationRate: () =>
      measureRate(
        pages.map(
          ({ session }) =>
            () =>
              navigateAndEvaluate(session),
        ),
      ),
    measureContextRate: () =>
      measureRate(
        pages.map(() => async () => {
          const { session, browserContextId } = await openPage(chromium);
          await evaluateScript(session);
          await disposeContext(browserContextId);
        }),
      ),
    stop: () => chromium.stop(),
  };
}
