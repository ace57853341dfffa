/**
 * A dedicated worker for each run, at the app's origin and with a way out: what it asks for goes the way of all requests. Its global scope has
 * no names but those that are listed (worker-globals.ts).
 */

import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { createRunRequests } from "../network/run-requests.js";
import { createServiceCalls } from "../network/service-calls.js";
import { NETWORK_HARNESS } from "./harness.js";
import { NETWORK_POLICY } from "./host-page.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createWorkerPage } from "./worker-page.js";

/** A worker that is busy for so long is not waited for. */
const CATCH_UP_MS = 200;

export function createNetworkRealm(options: RealmOptions): Realm {
  const { session, origin, lane, lose } = options;
  const page = createWorkerPage(options, NETWORK_HARNESS);
  // Nothing in such a worker opens a socket, of which the guard would have to hear first.
  const requests = createRunRequests({ session, origin, lane, caughtUp: async () => {} });
  const calls = createServiceCalls(requests.admit, page.answer);
  /** How often the last run called `fetch`; null: it has not said. */
  let asked: number | null = 0;
  let watched: Promise<unknown> = Promise.resolve();
  let current: CDPSession | null = null;
  let onAttached: () => void = () => {};

  /** Resolves when all that the worker has told of its requests has arrived. */
  async function caughtUp(): Promise<void> {
    await current?.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_MS });
  }

  session.on("Target.attachedToTarget", ({ sessionId }: Protocol.Target.AttachedToTargetEvent) => {
    current = session.connection()?.session(sessionId) ?? null;
    if (current) watched = requests.watch(current);
    // Nobody may be left to ask what became of it, when the page or its browser goes just now.
    watched.catch(() => {});
    onAttached();
  });

  /** Replaces the worker by another, which is watched from its first line on. @returns false when the page must be thrown away instead */
  async function replaceWorker(): Promise<boolean> {
    const attached = new Promise<void>((resolve) => {
      onAttached = resolve;
    });
    const inHand = await page.renew();
    await attached;
    await watched;
    return inHand;
  }

  return {
    async settle() {
      await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
      await page.open(NETWORK_POLICY);
      // Nothing is said of the page's own requests: it makes none but those for its workers' first line.
      session.on("Fetch.requestPaused", (event) => requests.answer(session, event));
      await page.listenService((payload) => runInBackground(calls.take(payload)));
    },

    async renew() {
      if (asked === null) return false;
      if (!requests.over(asked)) {
        await caughtUp();
        await requests.settled();
      }
      const [inHand] = await Promise.all([replaceWorker(), requests.clear()]);
      return inHand && !requests.late();
    },

    async evaluate(request) {
      asked = null;
      // What went before the guard may still be the way of the worker that waits.
      if ((await requests.begin(request)) && !(await replaceWorker())) lose("unready");
      calls.begin(request.service);
      const said = await page.run(request, request.service?.base);
      if (typeof said !== "string") return said;
      const end = said.indexOf(" ");
      asked = Number(said.slice(0, end));
      return said.slice(end + 1);
    },

    unreadyMs: () => 0,
    end: calls.end,

    async explain(outcome) {
      // One thread answers, another tells of the requests.
      if (requests.pending(outcome)) await caughtUp().catch(() => {});
      return requests.explain(outcome);
    },
    stop: calls.end,
  };
}
