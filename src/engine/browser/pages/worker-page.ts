/**
 * The page around the realms or workers of its runs: a document that is the host's alone, whose policy lets nothing be loaded. Costs less
 * than a document for each run.
 */

import type { Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import { CONSOLE_BINDING, callForText, callHarness, installHarness, navigate } from "./fresh-document.js";
import { createKeptTexts } from "./kept-texts.js";
import type { RealmOptions } from "./realm.js";

const policy = (more: string) => ({
  name: "Content-Security-Policy",
  value: `default-src 'none'; script-src 'unsafe-eval'; ${more}`,
});
export const SILENT_POLICY = policy("worker-src data:");
/** No sockets: they would pass the guard by. */
export const NETWORK_POLICY = policy("worker-src blob:; connect-src http: https: data: blob:");

/** Stands in the page alone, which no author's code is in. */
const SERVICE_BINDING = "__svc_service";

/** A scope that has ended holds 40 to 100 KB of memory until the page's own garbage is collected, which is late. */
const COLLECT_EVERY_RUNS = 50;

export type WorkerPage = ReturnType<typeof createWorkerPage>;

export function createWorkerPage({ session, origin }: RealmOptions, harness: string) {
  let harnessId = "";
  let runs = 0;
  const texts = createKeptTexts();

  /** Sends the page to its document and puts the harness there. */
  async function open(): Promise<void> {
    const { loaded } = await navigate(session, `${origin}/`);
    [harnessId] = await Promise.all([installHarness(session, harness), loaded]);
    await callHarness(session, harnessId, "listen", [CONSOLE_BINDING]);
  }

  return {
    open,
    /** Has the first run's realm or worker ready, where each run has the next one's prepared. */
    begin: () => callHarness(session, harnessId, "begin", []),
    /** Resolves when what the last run has prepared is ready. */
    ready: () => callHarness(session, harnessId, "ready", []),
    /** Ends the thread of the runs so far, and has the next one's realm ready on another. */
    replaceThread: () => callHarness(session, harnessId, "replaceThread", []),
    /** Ends the last run's worker, and has a fresh one ready. */
    async renew(): Promise<boolean> {
      const renewed = (await callHarness(session, harnessId, "renew", [])) === true;
      await this.collect();
      return renewed;
    },
    /** From time to time, what runs have left in the page's own process. */
    async collect(): Promise<void> {
      if (runs % COLLECT_EVERY_RUNS === COLLECT_EVERY_RUNS - 1) await session.send("HeapProfiler.collectGarbage");
    },
    /** `base`: that of the service that the run may ask by `listenService`. */
    run(request: PageRun, base = ""): Promise<unknown> {
      runs += 1;
      return callForText(session, harnessId, "run", [...texts.valuesOf(request), base]);
    },
    /** Has what workers ask of the service come to `take`. */
    async listenService(take: (payload: string) => void): Promise<void> {
      session.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name === SERVICE_BINDING) take(payload);
      });
      await session.send("Runtime.addBinding", { name: SERVICE_BINDING });
      await callHarness(session, harnessId, "listenService", [SERVICE_BINDING]);
    },
    answer: (...values: Parameters<Reply>) => callHarness(session, harnessId, "answer", values),
  };
}
