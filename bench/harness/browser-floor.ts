/** Baselines of the service's runs: the same Chromium with the same arguments, driven directly over the protocol. */
import { setTimeout as delay } from "node:timers/promises";
import type { CDPSession, Protocol } from "puppeteer";
import { readConfig } from "../../src/config.js";
import type { Chromium } from "../../src/engine/browser/browser-source.js";
import { startChromium } from "../../src/engine/browser/processes/chromium.js";
import { findChromium, usualPaths } from "../../src/engine/chromium-path.js";
import { median, timeEach } from "./figure.js";

const ORIGIN = "https://floor.actions.internal";
const BODY = Buffer.from("<!doctype html>").toString("base64");
const SCRIPT = "(async () => 1)()";

/** Concurrent loops: the number with the best throughput on few cores. */
const LOOPS = 2;
const RATE_MS = 800;
const PACE_MS = 200;

export interface Floor {
  /** The p50 in milliseconds of an evaluate in an open page, one every 200 ms: no run can be faster. */
  pacedEvaluate(count?: number): Promise<number>;
  /** Navigations per second to a new document with an evaluate. */
  navigatingLoop(): Promise<number>;
  /** The same with a new context, a document, an evaluate, and the end of the context. */
  contextLoop(): Promise<number>;
  stop(): Promise<void>;
}

/** Rounds per second of each of `turns`, all concurrent, during `RATE_MS`. */
async function rateOf(turns: readonly (() => Promise<unknown>)[]): Promise<number> {
  const begun = performance.now();
  let count = 0;
  await Promise.all(
    turns.map(async (turn) => {
      for (; performance.now() - begun < RATE_MS; count += 1) await turn();
    }),
  );
  return (count * 1_000) / (performance.now() - begun);
}

async function navigate(session: CDPSession): Promise<void> {
  const loaded = new Promise<void>((resolve) => session.once("Page.loadEventFired", () => resolve()));
  await session.send("Page.navigate", { url: `${ORIGIN}/` });
  await loaded;
}

function evaluate(session: CDPSession): Promise<unknown> {
  return session.send("Runtime.evaluate", { expression: SCRIPT, awaitPromise: true, returnByValue: true });
}

async function openPage({ connection }: Chromium): Promise<{ session: CDPSession; browserContextId: string }> {
  const { browserContextId } = await connection.send("Target.createBrowserContext");
  const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", browserContextId });
  const session = await connection.createSession({ targetId } as Protocol.Target.TargetInfo);
  session.on("Fetch.requestPaused", ({ requestId }) => {
    void session.send("Fetch.fulfillRequest", { requestId, responseCode: 200, body: BODY }).catch(() => {});
  });
  await session.send("Page.enable");
  await session.send("Fetch.enable", { patterns: [{ urlPattern: `${ORIGIN}/*` }] });
  await navigate(session);
  return { session, browserContextId };
}

export async function startFloor(): Promise<Floor> {
  const { chromePath: named, puppeteerCacheDir, chromeSandbox: sandbox } = readConfig();
  const chromePath = findChromium(named, usualPaths(puppeteerCacheDir));
  if (!chromePath) throw new Error("no Chromium was found");
  const chromium = await startChromium({ chromePath, sandbox });
  const dispose = (browserContextId: string) =>
    chromium.connection.send("Target.disposeBrowserContext", { browserContextId });
  // Kept open between measurements: an idle page costs nothing.
  const pages = await Promise.all(Array.from({ length: LOOPS }, () => openPage(chromium)));

  return {
    async pacedEvaluate(count = 8) {
      const samples: number[] = [];
      while (samples.length < count) {
        samples.push(...(await timeEach(1, () => evaluate(pages[0]!.session))));
        await delay(PACE_MS);
      }
      return median(samples);
    },
    navigatingLoop: () =>
      rateOf(
        pages.map(({ session }) => async () => {
          await navigate(session);
          await evaluate(session);
        }),
      ),
    contextLoop: () =>
      rateOf(
        pages.map(() => async () => {
          const { session, browserContextId } = await openPage(chromium);
          await evaluate(session);
          await dispose(browserContextId);
        }),
      ),
    stop: () => chromium.stop(),
  };
}
