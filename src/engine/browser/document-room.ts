/**
 * A document of its own for each run: everything that a page has, with a way out through the page's lane. Knows what of a run
 * would outlive a navigation, and gives such a page up.
 */
import { answerDocument, callHarness, installHarness, navigate } from "./fresh-document.js";
import { DOCUMENT_HARNESS } from "./harness.js";
import type { PageRun } from "./page-run.js";
import { watchRequestFaults } from "./request-faults.js";
import { createRequestGuard } from "./request-guard.js";
import type { Room, RoomOptions } from "./room.js";
import { watchTraces } from "./traces.js";

/** What a run leaves uncollected counts as memory of the next one, which may take 512 MB itself. */
const LEFT_MAX_BYTES = 64 * 1024 * 1024;
const NO_BUFFERS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };

export function createDocumentRoom(options: RoomOptions): Room {
  const { session, origin, lane, lose } = options;
  const traces = watchTraces({ ...options, onCrowd: () => lose("crowd"), onForbidden: () => lose("window") });
  const guard = createRequestGuard(session);
  const faults = watchRequestFaults(session, origin);
  let harnessId = "";

  session.on("Fetch.requestPaused", (event) => {
    const { requestId, request, resourceType } = event;
    const ours = resourceType === "Document" && request.url.startsWith(`${origin}/`);
    if (ours) answerDocument(session, requestId);
    else guard.answer(session, event);
  });

  function beginRequests({ mayRequest, onHost, onConsole }: PageRun): Promise<void> {
    faults.begin((text) => onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }));
    lane?.begin({
      onHost: (host) => onHost?.(host),
      onRefused: (host, reason) => faults.refused(host, reason),
      mayConnect: (host) => guard.mayConnect(host),
    });
    return guard.begin(mayRequest);
  }

  async function holdsMuch(): Promise<boolean> {
    const { usedSize, embedderHeapUsedSize, backingStorageSize } = await session.send("Runtime.getHeapUsage");
    return usedSize + embedderHeapUsedSize + backingStorageSize > LEFT_MAX_BYTES;
  }

  return {
    async settle() {
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/*`, resourceType: "Document" }] });
      await session.send("Network.enable", NO_BUFFERS);
      // An empty cache has no size to be found by.
      await session.send("Storage.trackCacheStorageForOrigin", { origin });
      await session.send("Storage.trackIndexedDBForOrigin", { origin });
    },

    async renew() {
      if (traces.found() || lane?.used() === true) return false;
      const { loaded } = await navigate(session, `${origin}/`);
      const installed = installHarness(session, DOCUMENT_HARNESS);
      const [left, heavy, id] = await Promise.all([traces.look(origin), holdsMuch(), installed, loaded]);
      harnessId = id;
      // Not earlier: right after the commit the page may not count as active yet, and the command fails.
      await session.send("Page.resetNavigationHistory");
      return !left && !heavy;
    },

    async run(request) {
      await beginRequests(request);
      const { sourceName: name = "action.js", source, packages, payload, settings } = request;
      // Flat, since what is evaluated first may change what later objects inherit.
      const scripts = [...packages, { name, source }].flatMap((script) =>
        "url" in script ? ["", script.url] : [script.name, script.source],
      );
      return callHarness(session, harnessId, "run", [scripts, payload, settings]);
    },

    explain: faults.explain,
    stop: traces.stop,
  };
}
