/** A page whose document is the host's alone, whose policy lets nothing be loaded: around the realms or workers of its runs. */
import type { Protocol } from "puppeteer";
import { answerDocument, callHarness, installHarness, navigate } from "./fresh-document.js";
import type { SandboxOptions } from "./sandbox.js";

const policy = (more: string) => ({
  name: "Content-Security-Policy",
  value: `default-src 'none'; script-src 'unsafe-eval'; ${more}`,
});
export const SILENT_POLICY = policy("worker-src data:");
/** No sockets: they would pass the guard by. */
export const NETWORK_POLICY = policy("worker-src blob:; connect-src http: https: data: blob:");

/** A scope that has ended holds 40 to 100 KB of memory until the page's own garbage is collected, which is late. */
const COLLECT_EVERY_RUNS = 50;

export interface HostPage {
  /** Sends the page to its document, which has that policy, and puts the harness there. */
  open(policy: Protocol.Fetch.HeaderEntry): Promise<void>;
  /** Calls a method of the harness. */
  call(method: string, ...values: readonly unknown[]): Promise<unknown>;
  /** The id of the harness's object. */
  harnessId(): string;
  /** After each run: from time to time, takes away what runs have left in the page's own process. */
  collect(): Promise<void>;
}

export function createHostPage(
  { session, origin }: Pick<SandboxOptions, "session" | "origin">,
  harness: string,
): HostPage {
  let harnessId = "";
  let runs = 0;
  return {
    async open(policy) {
      const answer = ({ requestId }: Protocol.Fetch.RequestPausedEvent) => answerDocument(session, requestId, [policy]);
      session.on("Fetch.requestPaused", answer);
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      const { loaded } = await navigate(session, `${origin}/`);
      [harnessId] = await Promise.all([installHarness(session, harness), loaded]);
      // On, it costs each worker's start and each request a part, whatever its pattern.
      await session.send("Fetch.disable");
      session.off("Fetch.requestPaused", answer);
    },
    call: (method, ...values) => callHarness(session, harnessId, method, values),
    harnessId: () => harnessId,
    async collect() {
      runs += 1;
      if (runs % COLLECT_EVERY_RUNS === 0) await session.send("HeapProfiler.collectGarbage");
    },
  };
}
