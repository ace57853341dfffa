/**
 * A realm for each run, on one thread at the app's origin, which lends it `fetch` and what goes with it: its requests go the way of all
 * requests, and end with the run. Half the cost of a worker for each.
 */
import type { CDPSession } from "puppeteer";
import { createRunRequests } from "../network/run-requests.js";
import { answerDocument, CONSOLE_BINDING } from "./fresh-document.js";
import { FETCH_HARNESS, PAUSE_MS, READY_WITHIN_MS } from "./harness.js";
import type { Realm, RealmOptions } from "./realm.js";
import { createThread } from "./thread.js";
import { createWorkerPage, NETWORK_POLICY } from "./worker-page.js";

/** Whether realms are made there, and can be lent what this one is. */
export async function makesFetchRealms(session: CDPSession): Promise<boolean> {
  const expression = "typeof ShadowRealm === 'function' && typeof Uint8Array.fromBase64 === 'function'";
  const { result } = await session.send("Runtime.evaluate", { expression, returnByValue: true });
  return result.value === true;
}

export function createFetchRealm(options: RealmOptions): Realm {
  const { session, origin, lane, lose } = options;
  const page = createWorkerPage(options, FETCH_HARNESS);
  // Nothing in such a worker opens a socket, of which the guard would have to hear first.
  const requests = createRunRequests({ session, origin, lane, caughtUp: async () => {} });
  const thread = createThread(session, page, requests.watch);
  /** How often the last run called `fetch`; null: it has not said. */
  let asked: number | null = 0;
  let endedAt = 0;
  let isOpen = false;

  session.on("Fetch.requestPaused", (event) => {
    if (isOpen) requests.answer(session, event);
    else answerDocument(session, event.requestId, [NETWORK_POLICY]);
  });
  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name === CONSOLE_BINDING && payload === "") lose("unready");
  });

  return {
    async settle() {
      await thread.watch();
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      await page.open();
      isOpen = true;
      // On, it costs each worker's start and each request a part, whatever its pattern.
      await session.send("Fetch.disable");
      await thread.begin();
    },

    async renew() {
      if (asked === null) return false;
      if (!requests.over(asked)) {
        await thread.caughtUp();
        await requests.settled();
      }
      await Promise.all([thread.renew(), requests.clear()]);
      await page.collect();
      return !requests.late();
    },

    async evaluate(request) {
      asked = null;
      // What went before the guard may still be the way of the thread that waits.
      if (await requests.begin(request)) await thread.replace();
      const said = thread.read(await page.run(request));
      if (typeof said !== "string") return said;
      const end = said.indexOf(" ");
      asked = Number(said.slice(0, end));
      return said.slice(end + 1);
    },

    unreadyMs: () => Math.max(0, endedAt + PAUSE_MS + READY_WITHIN_MS - performance.now()),
    end() {
      endedAt = performance.now();
    },
    async explain(outcome) {
      // One thread answers, another tells of the requests.
      if (requests.pending(outcome)) await thread.caughtUp().catch(() => {});
      return requests.explain(outcome);
    },
    stop: () => {},
  };
}
