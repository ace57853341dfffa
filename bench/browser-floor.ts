/**
 * The bare floors beside which the service's runs are measured: the same Chromium with the same arguments, driven over the
 * protocol with nothing added. Knows nothing of pools, harnesses or runs.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { Chromium } from "../src/engine/browser/browser-source.js";
import { startChromium } from "../src/engine/browser/processes/chromium.js";

const ORIGIN = "https://floor.actions.internal";
const BODY = Buffer.from("<!doctype html>").toString("base64");
const SCRIPT = "(async () => 1)()";

/** p50 and p95 in milliseconds. */
export interface Figures {
  p50: number;
  p95: number;
  perSecond: number;
  count: number;
}

export interface Load {
  count: number;
  /** Loops beside each other; default 1. */
  parallel?: number;
  /** Starts one every so many milliseconds instead of one right after the other. */
  everyMs?: number;
}

export interface Floor {
  /** An evaluate in a context made ahead: no run can be faster. */
  bareEvaluate(load: Load): Promise<Figures>;
  /** A new context, a document, an evaluate, and the context's end. */
  contextLoop(load: Load): Promise<Figures>;
  /** A page sent to a fresh document, and an evaluate. */
  navigatingLoop(load: Load): Promise<Figures>;
  stop(): Promise<void>;
}

/** Calls `once` under a load and says how long each call took. `once` gets the number of the loop that it is in. */
export async function measure(load: Load, once: (loop: number) => Promise<unknown>): Promise<Figures> {
  const { count, parallel = 1, everyMs = 0 } = load;
  const took: number[] = [];
  const begun = performance.now();
  let started = 0;
  const loop = async (number: number) => {
    while (started++ < count) {
      const start = performance.now();
      await once(number);
      took.push(performance.now() - start);
      const rest = everyMs - (performance.now() - start);
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
    }
  };
  await Promise.all(Array.from({ length: parallel }, (_, number) => loop(number)));
  const seconds = (performance.now() - begun) / 1_000;
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), perSecond: took.length / seconds, count: took.length };
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

export async function startFloor(chromePath: string, sandbox = true): Promise<Floor> {
  const chromium = await startChromium({ chromePath, sandbox });
  const dispose = (browserContextId: string) =>
    chromium.connection.send("Target.disposeBrowserContext", { browserContextId });

  async function withPages(load: Load, once: (session: CDPSession) => Promise<unknown>): Promise<Figures> {
    const pages = await Promise.all(Array.from({ length: load.parallel ?? 1 }, () => openPage(chromium)));
    for (const { session } of pages) await once(session);
    const figures = await measure(load, (loop) => once(pages[loop]!.session));
    await Promise.all(pages.map((page) => dispose(page.browserContextId)));
    return figures;
  }

  return {
    bareEvaluate: (load) => withPages(load, evaluate),
    navigatingLoop: (load) =>
      withPages(load, async (session) => {
        await navigate(session);
        await evaluate(session);
      }),
    contextLoop: (load) =>
      measure(load, async () => {
        const { session, browserContextId } = await openPage(chromium);
        await evaluate(session);
        await dispose(browserContextId);
      }),
    stop: () => chromium.stop(),
  };
}
