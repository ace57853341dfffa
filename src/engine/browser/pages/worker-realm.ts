/**
 * A dedicated worker for each run, where nothing can be asked for: its origin is nobody's. Its global scope has no names but those that are
 * listed (worker-globals.ts).
 */
import { CONSOLE_BINDING } from "./fresh-document.js";
import { LANGUAGE_HARNESS, READY_WITHIN_MS, WORKER_HARNESS } from "./harness.js";
import { SILENT_POLICY } from "./host-page.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createWorkerPage } from "./worker-page.js";

/** A run's end begins the next one's worker, unasked: a message there and back costs a tenth of a run. */
function createSilentWorker(options: RealmOptions, harness: string): Realm {
  const { session, lose } = options;
  const page = createWorkerPage(options, harness);
  let endedAt = 0;
  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name === CONSOLE_BINDING && payload === "") lose("unready");
  });
  return {
    async settle() {
      await page.open(SILENT_POLICY);
      await page.begin();
    },
    async renew() {
      await page.collect();
      return true;
    },
    evaluate: page.run,
    unreadyMs: () => Math.max(0, endedAt + READY_WITHIN_MS - performance.now()),
    end() {
      endedAt = performance.now();
    },
    explain: async (outcome) => outcome,
    stop: () => {},
  };
}

export const createWorkerRealm = (options: RealmOptions): Realm => createSilentWorker(options, WORKER_HARNESS);

/** With the globals of the language alone, for browsers that make no realms. */
export const createLanguageWorkerRealm = (options: RealmOptions): Realm =>
  createSilentWorker(options, LANGUAGE_HARNESS);
