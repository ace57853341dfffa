/**
 * A realm for each run, on one thread, where nothing can be asked for: its origin is nobody's. It has the language and no name more
 * (worker-globals.ts).
 */
import { LANGUAGE_THREAD } from "./harness.js";
import { SILENT_POLICY } from "./host-page.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createThread } from "./thread.js";

/** With less, runs with a large package would have another thread, which compiles that anew, every few runs. */
const HELD_MAX_BYTES = 48 * 1024 * 1024;

export function createLanguageRealm(options: RealmOptions): Realm {
  const thread = createThread(options, LANGUAGE_THREAD, HELD_MAX_BYTES);
  return {
    async settle() {
      await thread.watch();
      await thread.open(SILENT_POLICY);
      await thread.replace();
    },
    async renew() {
      await thread.renew();
      return true;
    },
    evaluate: thread.run,
    unreadyMs: thread.unreadyMs,
    end: thread.end,
    explain: async (outcome) => outcome,
    stop: thread.stop,
  };
}
