/** The page around the workers of its runs, one for each: costs less than a document. */

import type { Protocol } from "puppeteer";
import type { Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import { CONSOLE_BINDING, callForText } from "./fresh-document.js";
import { createHostPage } from "./host-page.js";
import { createKeptTexts } from "./kept-texts.js";
import type { RealmOptions } from "./realm.js";

/** Stands in the page alone, which no author's code is in. */
const SERVICE_BINDING = "__svc_service";

export type WorkerPage = ReturnType<typeof createWorkerPage>;

export function createWorkerPage(options: RealmOptions, harness: string) {
  const { session } = options;
  const page = createHostPage(options, harness);
  const texts = createKeptTexts();

  return {
    async open(policy: Protocol.Fetch.HeaderEntry): Promise<void> {
      await page.open(policy);
      await page.call("listen", CONSOLE_BINDING);
    },
    /** Has the first run's worker ready, where each run has the next one's prepared. */
    begin: () => page.call("begin"),
    /** Ends the last run's worker, and has a fresh one ready. */
    async renew(): Promise<boolean> {
      const renewed = (await page.call("renew")) === true;
      await page.collect();
      return renewed;
    },
    collect: page.collect,
    /** `base`: that of the service that the run may ask by `listenService`. */
    run: (request: PageRun, base = ""): Promise<unknown> =>
      callForText(session, page.harnessId(), "run", [...texts.valuesOf(request), base]),
    /** Has what workers ask of the service come to `take`. */
    async listenService(take: (payload: string) => void): Promise<void> {
      session.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name === SERVICE_BINDING) take(payload);
      });
      await session.send("Runtime.addBinding", { name: SERVICE_BINDING });
      await page.call("listenService", SERVICE_BINDING);
    },
    answer: (...values: Parameters<Reply>) => page.call("answer", ...values),
  };
}
