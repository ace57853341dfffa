/**
 * What the requests of one page's runs have in common, whatever sends them: the way out is open while a run is under way, each address
 * is judged, each failure explained, and nothing of them is left for the next run. Knows neither documents nor workers.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { PageOutcome, PageRequest, PageRun } from "../run.js";
import type { Lane } from "./lane.js";
import { BLOCKED, watchRequestFaults } from "./request-faults.js";
import { createRequestGuard, hostOf, NO_BUFFERS } from "./request-guard.js";

/** What is still under way by then, though the way out is shut, is not waited for. */
const SETTLED_WITHIN_MS = 200;

/** A request that may be sent past the browser: what goes along, and whom to tell how it ended; `failure`: why there was no answer. */
export interface Admitted {
  headers: Readonly<Record<string, string>>;
  end(status: number | null, failure?: string): void;
}

export interface RunRequests {
  /** @returns whether the guard of the run's requests has been put up only now, over what had been started before */
  begin(request: PageRun): Promise<boolean>;
  /** Hears from here on what the session's requests come to. */
  watch(session: CDPSession): Promise<unknown>;
  /** Judges also what a child of the page asks for, where the run's requests are judged at all. */
  guardChild(child: CDPSession): Promise<unknown>;
  /** Judges a request that is to be sent past the browser, as the browser's are judged, and counts its host. null: it may not be. */
  admit(request: PageRequest): Promise<Admitted | null>;
  /** Answers a request that the protocol has paused. */
  answer(session: CDPSession, event: Protocol.Fetch.RequestPausedEvent): void;
  /** Whether as many calls of `fetch` as that have been told of, and no request is under way. */
  over(asked: number): boolean;
  /** Resolves when nothing that the run asked for is under way. @throws when something is */
  settled(): Promise<void>;
  /**
   * Takes away what the run's requests have left with the browser: cached answers, preflights too, cookies, what hosts say of their
   * transport. Names and passwords that hosts took stay (traces.ts). To be called when nobody is left to ask for more.
   * @returns whether there was anything
   */
  clear(): Promise<boolean>;
  /** Whether anything was asked for after the run's end. */
  late(): boolean;
  /** Whether more may come that belongs to the outcome. */
  pending(outcome: PageOutcome): boolean;
  explain(outcome: PageOutcome): PageOutcome;
}

/** `caughtUp` as of the guard. */
export function createRunRequests(options: {
  session: CDPSession;
  origin: string;
  lane: Lane | null;
  caughtUp: (timeoutMs: number) => Promise<void>;
}): RunRequests {
  const { session, origin, lane, caughtUp } = options;
  const guard = createRequestGuard(session, caughtUp);
  const faults = watchRequestFaults(origin);
  let begun = 0;
  let follow: PageRun["onRequest"];
  let contact: (host: string) => void = () => {};

  return {
    begin({ mayRequest, onRequest, onHost, onConsole, network = true }) {
      begun += 1;
      const hosts = new Set<string>();
      contact = (host) => {
        if (!hosts.has(host)) onHost?.(host);
        hosts.add(host);
      };
      follow = mayRequest && onRequest;
      faults.begin((text) => onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }));
      lane?.begin({
        onHost: contact,
        onRefused: (host, reason) => faults.refused(host, reason),
        onReached: (host) => faults.reached(host),
        mayConnect: async (host) => network && guard.mayConnect(host),
      });
      return guard.begin(mayRequest, onRequest);
    },

    watch(one) {
      faults.watch(one);
      if (one !== session) guard.listen(one);
      return one.send("Network.enable", NO_BUFFERS);
    },

    async admit({ method, url }) {
      const run = begun;
      const passes = await guard.passes(url).catch(() => false);
      if (run !== begun) return null;
      if (!passes) {
        faults.failed(url, BLOCKED);
        return null;
      }
      contact(hostOf(url)!);
      const followed = follow?.({ method, url });
      return {
        headers: followed?.headers ?? {},
        end(status, failure) {
          if (failure !== undefined && run === begun) faults.failed(url, failure);
          followed?.end(status);
        },
      };
    },

    guardChild: guard.guardChild,
    answer: guard.answer,
    over: faults.over,
    settled: () => faults.settled(SETTLED_WITHIN_MS),

    async clear() {
      if (lane?.used() !== true) return false;
      await Promise.all([
        // Takes along which hosts want to be asked by https alone.
        session.send("Network.clearBrowserCache"),
        session.send("Network.clearBrowserCookies"),
      ]);
      return true;
    },

    late: () => lane?.usedLate() === true,

    pending: faults.pending,
    explain: faults.explain,
  };
}
