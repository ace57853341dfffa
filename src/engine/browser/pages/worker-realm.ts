/**
 * A realm or a dedicated worker for each run, where nothing can be asked for: its origin is nobody's. Its global scope has no names but those
 * that are listed (worker-globals.ts).
 */
import { answerDocument, CONSOLE_BINDING } from "./fresh-document.js";
import { LANGUAGE_HARNESS, PAUSE_MS, READY_WITHIN_MS, WORKER_HARNESS } from "./harness.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createThread } from "./thread.js";
import { createWorkerPage, SILENT_POLICY } from "./worker-page.js";

/**
 * Where nothing can be asked for once the page has its document. A run's end begins the next one's realm or worker, unasked: a message
 * there and back costs a tenth of a run. `withThread`: runs share one.
 */
function createSilentRealm(options: RealmOptions, harness: string, withThread: boolean): Realm {
  const { session, origin, lose } = options;
  const page = createWorkerPage(options, harness);
  const thread = withThread ? createThread(session, page) : null;
  let endedAt = 0;
  session.on("Fetch.requestPaused", ({ requestId }) => answerDocument(session, requestId, [SILENT_POLICY]));
  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name === CONSOLE_BINDING && payload === "") lose("unready");
  });
  return {
    async settle() {
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      await thread?.watch();
      await page.open();
      // On, it costs every worker's start a part, whatever its pattern.
      await session.send("Fetch.disable");
      await (thread ?? page).begin();
    },
    async renew() {
      await thread?.renew();
      await page.collect();
      return true;
    },
    async evaluate(request) {
      const answer = await page.run(request);
      return thread === null ? answer : thread.read(answer);
    },
    unreadyMs: () => Math.max(0, endedAt + PAUSE_MS + READY_WITHIN_MS - performance.now()),
    end() {
      endedAt = performance.now();
    },
    explain: async (outcome) => outcome,
    stop: () => {},
  };
}

export const createLanguageRealm = (options: RealmOptions): Realm => createSilentRealm(options, LANGUAGE_HARNESS, true);

export const createWorkerRealm = (options: RealmOptions): Realm => createSilentRealm(options, WORKER_HARNESS, false);
