/** A page whose document is the host's alone, whose policy lets nothing be loaded: around the realms or workers of its runs. */
import type { CDPSession } from "puppeteer";
import { callHarness, installHarness, navigate } from "./fresh-document.js";
import type { RealmOptions } from "./realm.js";

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
  readonly session: CDPSession;
  /** Sends the page to its document and puts the harness there. */
  open(): Promise<void>;
  /** Calls a method of the harness. */
  call(method: string, ...values: readonly unknown[]): Promise<unknown>;
  /** The id of the harness's object. */
  harnessId(): string;
  /** After each run: from time to time, takes away what runs have left in the page's own process. */
  collect(): Promise<void>;
}

export function createHostPage(
  { session, origin }: Pick<RealmOptions, "session" | "origin">,
  harness: string,
): HostPage {
  let harnessId = "";
  let runs = 0;
  return {
    session,
    async open() {
      const { loaded } = await navigate(session, `${origin}/`);
      [harnessId] = await Promise.all([installHarness(session, harness), loaded]);
    },
    call: (method, ...values) => callHarness(session, harnessId, method, values),
    harnessId: () => harnessId,
    async collect() {
      runs += 1;
      if (runs % COLLECT_EVERY_RUNS === 0) await session.send("HeapProfiler.collectGarbage");
    },
  };
}
