/**
 * Sandbox of the mode `document`: a fresh document for each run, with all that a page has. Finds what would outlive a navigation, and
 * discards such a page.
 */
import type { CDPSession } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { createRunRequests } from "../network/run-requests.js";
import { createServiceCalls } from "../network/service-calls.js";
import { DEFAULT_SOURCE_NAME, NO_SERVICE } from "../run.js";
import { functionOf } from "./action-script.js";
import { createChildren } from "./children.js";
import {
  answerDocument,
  CALL_MARK,
  CONSOLE_BINDING,
  callForText,
  callHarness,
  installHarness,
  navigate,
} from "./fresh-document.js";
import { CHILD_CONSOLE, DOCUMENT_BOUNDS, DOCUMENT_HARNESS, WORKER_BOUNDS } from "./harness.js";
import { createPageWindow } from "./page-window.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { watchTraces } from "./traces.js";

/** What runs leave uncollected counts as memory of the next one, which may take 512 MB itself, and weighs on the machine. */
const LEFT_MAX_BYTES = 24 * 1024 * 1024;

/** A worker that does not answer for so long at the end of a run has its last lines lost. */
const LAST_LINES_MS = 1_000;

function boundDocuments(session: CDPSession): Promise<unknown> {
  return session.send("Page.addScriptToEvaluateOnNewDocument", { source: DOCUMENT_BOUNDS });
}

export function createDocument(options: SandboxOptions): Sandbox {
  const { session, origin, lane, lose, print, onAsked } = options;
  const traces = watchTraces({ ...options, onCrowd: () => lose("crowd"), onForbidden: () => lose("window") });
  const children = createChildren(session, (child, type) =>
    Promise.all([requests.guardChild(child), type === "worker" ? boundWorker(child) : boundDocuments(child)]),
  );
  const requests = createRunRequests({ session, origin, lane, caughtUp: children.caughtUp });
  const pageWindow = createPageWindow(options);
  let harnessId = "";
  const calls = createServiceCalls(requests.admit, (...part) => callHarness(session, harnessId, "answer", part));
  /** Whether the document asked for anything after its run. */
  let stirred = false;
  let running = false;

  function stir(): void {
    if (!running) stirred = true;
  }
  session.on("Network.requestWillBeSent", ({ type, request }) => {
    if (type !== "Document" || request.url !== `${origin}/`) stir();
  });
  session.on("Network.webSocketCreated", stir);
  session.on("Network.webTransportCreated", stir);

  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name !== CONSOLE_BINDING || !payload.startsWith(CALL_MARK)) return;
    onAsked();
    runInBackground(calls.take(payload.slice(CALL_MARK.length)));
  });

  session.on("Fetch.requestPaused", (event) => {
    const { requestId, request, resourceType } = event;
    const ours = resourceType === "Document" && request.url.startsWith(`${origin}/`);
    if (ours) answerDocument(session, requestId);
    else requests.answer(session, event);
  });

  async function held(): Promise<number> {
    const { usedSize, embedderHeapUsedSize, backingStorageSize } = await session.send("Runtime.getHeapUsage");
    return usedSize + embedderHeapUsedSize + backingStorageSize;
  }

  /** Drops what the page's own process keeps of answers to documents, which no navigation does. */
  function forgetAnswers(): Promise<unknown> {
    return Promise.all(
      [true, false].map((cacheDisabled) => session.send("Network.setCacheDisabled", { cacheDisabled })),
    );
  }

  /** Whether the page still holds much of what earlier documents left when that has been collected. */
  async function holdsMuch(): Promise<boolean> {
    if ((await held()) <= LEFT_MAX_BYTES) return false;
    await session.send("HeapProfiler.collectGarbage");
    return (await held()) > LEFT_MAX_BYTES;
  }

  /** @returns whether the documents so far have left something, and much */
  async function lookForTraces(): Promise<[boolean, boolean]> {
    // Not before the document has gone, which could still set some; not after a look for cookies, which would find them.
    if (await requests.clear()) await forgetAnswers();
    return Promise.all([traces.look(origin), holdsMuch()]);
  }

  /** Pipelined: all of it is in place before the worker goes on. */
  function boundWorker(worker: CDPSession): Promise<unknown> {
    worker.on("Runtime.bindingCalled", (event) => print(event.payload));
    return Promise.all([
      worker.send("Runtime.evaluate", { expression: WORKER_BOUNDS }),
      worker.send("Runtime.addBinding", { name: CONSOLE_BINDING }),
      worker.send("Runtime.evaluate", { expression: CHILD_CONSOLE }),
    ]);
  }

  return {
    async prepare() {
      await Promise.all([pageWindow.settle(), children.attach()]);
      await boundDocuments(session);
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/*`, resourceType: "Document" }] });
      await requests.watch(session);
      // An empty cache has no size to be found by.
      await session.send("Storage.trackCacheStorageForOrigin", { origin });
      await session.send("Storage.trackIndexedDBForOrigin", { origin });
    },

    async reset() {
      running = false;
      pageWindow.renew();
      if (traces.found() || children.met()) return false;
      await requests.settled();
      const { loaded } = await navigate(session, `${origin}/`);
      const [installedId, [left, heavy]] = await Promise.all([
        installHarness(session, DOCUMENT_HARNESS),
        lookForTraces(),
        loaded,
      ]);
      harnessId = installedId;
      // What the document asked for as it went may outlive it, and nobody is told of its end.
      await requests.settled();
      // Not earlier: right after the commit the page may not count as active yet, and the command fails.
      await session.send("Page.resetNavigationHistory");
      // Asked last: what the page sent while it went has been told of by now, and has come to the lane.
      return !left && !heavy && !stirred && !traces.found() && !requests.late();
    },

    async execute(request) {
      running = true;
      await requests.begin(request);
      const { sourceName: name = DEFAULT_SOURCE_NAME, source, packages, payload, settings } = request;
      // Flat, since what is evaluated first may change what later objects inherit.
      const scripts = packages.flatMap((script) => ("url" in script ? ["", script.url] : [script.name, script.source]));
      scripts.push(name, functionOf({ name, source }));
      pageWindow.begin();
      const { outgoing } = request;
      calls.begin({ outgoing });
      const answer = await callForText(session, harnessId, "run", [
        CONSOLE_BINDING,
        scripts,
        payload,
        settings,
        outgoing ? NO_SERVICE : "",
      ]);
      // What workers have printed comes on ways of their own, and may be behind the answer.
      if (children.any()) await children.caughtUp(LAST_LINES_MS).catch(() => {});
      return answer;
    },

    unreadyMs: () => 0,
    end() {
      calls.end();
      pageWindow.end();
    },
    explain: async (outcome) => requests.explain(outcome),
    stop() {
      calls.end();
      traces.stop();
    },
  };
}
