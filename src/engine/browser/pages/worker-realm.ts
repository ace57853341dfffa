/**
 * A dedicated worker for each run, in a page whose document is the host's alone. Costs less than a document, and holds
 * code that needs the language and little beside it (worker-globals.ts): three walls part it from everything else, each enough by
 * itself. Its global scope has no other names, its origin is nobody's, and the page's policy lets nothing be loaded.
 */
import { answerDocument, callForText, callHarness, installHarness, navigate } from "./fresh-document.js";
import { WORKER_HARNESS } from "./harness.js";
import type { Realm, RealmOptions } from "./realm.js";

const POLICY = {
  name: "Content-Security-Policy",
  value: "default-src 'none'; script-src 'unsafe-eval'; worker-src data:",
};

/** A worker that has ended holds 100 KB of the browser's memory until the page's own garbage is collected, which is late. */
const COLLECT_EVERY_RUNS = 50;

export function createWorkerRealm({ session, origin }: RealmOptions): Realm {
  let harnessId: string | null = null;
  let runs = 0;

  session.on("Fetch.requestPaused", ({ requestId }) => answerDocument(session, requestId, [POLICY]));

  async function open(): Promise<string> {
    const { loaded } = await navigate(session, `${origin}/`);
    const [installed] = await Promise.all([installHarness(session, WORKER_HARNESS), loaded]);
    return installed.harnessId;
  }

  return {
    async settle() {
      // No wider: the worker's own start would pass through this process as well.
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
    },

    async renew() {
      harnessId ??= await open();
      const renewed = (await callHarness(session, harnessId, "renew", [])) === true;
      if (runs % COLLECT_EVERY_RUNS === COLLECT_EVERY_RUNS - 1) await session.send("HeapProfiler.collectGarbage");
      return renewed;
    },

    evaluate({ sourceName = "action.js", source, payload, settings }) {
      runs += 1;
      return callForText(session, harnessId!, "run", [source, sourceName, payload, settings]);
    },

    explain: (outcome) => outcome,
    stop: () => {},
  };
}
