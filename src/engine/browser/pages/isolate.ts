/**
 * Sandbox of the mode `isolate`: a ShadowRealm for each run, on one thread without an origin and without a network. It has the language and
 * `console` only (globals.ts).
 */
import { NEEDS_MORE } from "./answer.js";
import { ISOLATE_THREAD } from "./harness.js";
import { SILENT_POLICY } from "./host-page.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { createThread } from "./thread.js";

/** With less, runs with a large package would have another thread, which compiles that anew, every few runs. */
const HELD_MAX_BYTES = 48 * 1024 * 1024;

export function createIsolate(options: SandboxOptions): Sandbox {
  const thread = createThread(options, ISOLATE_THREAD, HELD_MAX_BYTES);
  return {
    async prepare() {
      await thread.watch();
      await thread.open(SILENT_POLICY);
      await thread.replace();
    },
    async reset() {
      await thread.renew();
      return true;
    },
    execute: thread.run,
    unreadyMs: thread.unreadyMs,
    end: thread.end,
    explain: async (outcome) => outcome,
    stop: thread.stop,
  };
}

/** For a browser without ShadowRealm, in either isolate mode: every run is repeated in a document. */
export const createMissingIsolate = (): Sandbox => ({
  prepare: async () => {},
  reset: async () => true,
  execute: async () => NEEDS_MORE,
  unreadyMs: () => 0,
  end: () => {},
  explain: async (outcome) => outcome,
  stop: () => {},
});
