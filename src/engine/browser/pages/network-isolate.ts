/**
 * Sandbox of the mode `network-isolate`: a ShadowRealm for each run, on one thread at the app's origin. The thread provides `fetch`, timers
 * and the other globals of this mode, and the client library's way to the service. All that a run has started ends with it.
 */
import { runInBackground } from "../../../background.js";
import { createRunRequests } from "../network/run-requests.js";
import { createServiceCalls } from "../network/service-calls.js";
import { NO_SERVICE, type PageRun } from "../run.js";
import { NEEDS_MORE } from "./answer.js";
import { NETWORK_ISOLATE_THREAD } from "./harness.js";
import { NETWORK_POLICY } from "./host-page.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { createThread } from "./thread.js";

/** What the run's library is told of its ways: the service's address; a text that begins no address where it has none; "" for no way at all. */
const baseOf = ({ service, outgoing }: PageRun): string => service?.base ?? (outgoing ? NO_SERVICE : "");

/** Little: what the platform holds beside it is collected in steps, of which a realm's code must not see many (chromium-flags.ts). */
const HELD_MAX_BYTES = 16 * 1024 * 1024;

export function createNetworkIsolate(options: SandboxOptions): Sandbox {
  const { session, origin, lane, onAsked } = options;
  // Nothing in such a worker opens a socket, of which the guard would have to hear first.
  const requests = createRunRequests({ session, origin, lane, caughtUp: async () => {} });
  const thread = createThread(options, NETWORK_ISOLATE_THREAD, HELD_MAX_BYTES, requests.watch, (payload) => {
    onAsked();
    runInBackground(calls.take(payload));
  });
  const calls = createServiceCalls(requests.admit, thread.answer);
  /** How often the last run called `fetch`; null: it has not said. */
  let asked: number | null = 0;

  return {
    async prepare() {
      await thread.watch();
      await thread.open(NETWORK_POLICY);
      session.on("Fetch.requestPaused", (event) => requests.answer(session, event));
      await thread.replace();
    },

    async reset() {
      if (asked === null) return false;
      if (!requests.over(asked)) {
        await thread.caughtUp();
        await requests.settled();
      }
      await Promise.all([thread.renew(), requests.clear()]);
      return !requests.late();
    },

    async execute(request) {
      asked = null;
      // What went before the guard may still be the way of the thread that waits.
      if (await requests.begin(request)) await thread.replace();
      calls.begin(request);
      const said = await thread.run(request, baseOf(request));
      if (typeof said !== "string") return said;
      if (said === NEEDS_MORE) {
        asked = 0;
        return said;
      }
      const end = said.indexOf(" ");
      asked = Number(said.slice(0, end));
      return said.slice(end + 1);
    },

    unreadyMs: thread.unreadyMs,
    end() {
      calls.end();
      thread.end();
    },
    async explain(outcome) {
      // One thread answers, another tells of the requests.
      if (requests.pending(outcome)) await thread.caughtUp().catch(() => {});
      return requests.explain(outcome);
    },
    stop() {
      calls.end();
      thread.stop();
    },
  };
}
