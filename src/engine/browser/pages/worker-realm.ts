/**
 * A worklet or a dedicated worker for each run, in a page whose document is the host's alone. Costs less than a document. Its global scope
 * has no names but those that are listed (worker-globals.ts), and the page's policy lets nothing be loaded. Without a network its origin
 * is nobody's; with one it is the app's, and what it asks for goes the way of all requests.
 */
import type { CDPSession, Protocol } from "puppeteer";
import { createRunRequests } from "../network/run-requests.js";
import { createServiceCalls, type Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import {
  answerDocument,
  CONSOLE_BINDING,
  callForText,
  callHarness,
  installHarness,
  navigate,
} from "./fresh-document.js";
import { LANGUAGE_HARNESS, NETWORK_HARNESS, READY_WITHIN_MS, WORKER_HARNESS } from "./harness.js";
import { createKeptTexts } from "./kept-texts.js";
import type { Realm, RealmOptions } from "./realm.js";

const policy = (more: string) => ({
  name: "Content-Security-Policy",
  value: `default-src 'none'; script-src 'unsafe-eval'; ${more}`,
});
/** The module of a worklet counts as a script of the page, where no author's code ever runs. A worker is there for a browser without worklets. */
const LANGUAGE_POLICY = {
  name: "Content-Security-Policy",
  value: "default-src 'none'; script-src 'unsafe-eval' data:; worker-src data:",
};
const WORKER_POLICY = policy("worker-src data:");
/** No sockets: they would pass the guard by. */
const NETWORK_POLICY = policy("worker-src blob:; connect-src http: https: data: blob:");

/** Stands in the page alone, which no author's code is in. */
const SERVICE_BINDING = "__svc_service";

/** Before an answer: what the next run needs takes longer than it may wait for. */
const LONG_RENEWAL = "t";

/** A worker that is busy for so long is not waited for. */
const CATCH_UP_MS = 200;

/** A scope that has ended holds 40 to 100 KB of memory until the page's own garbage is collected, which is late. */
const COLLECT_EVERY_RUNS = 50;

/** The page around worklets or workers. */
function createWorkerPage({ session, origin }: RealmOptions, harness: string) {
  let harnessId: string | null = null;
  let runs = 0;
  const texts = createKeptTexts();

  /** Sends the page to its document and puts the harness there. */
  async function open(): Promise<void> {
    const { loaded } = await navigate(session, `${origin}/`);
    const [installed] = await Promise.all([installHarness(session, harness), loaded]);
    harnessId = installed.harnessId;
  }

  return {
    open,
    /** Has the last run send nothing from here on. @returns false when its worker does not say so in time */
    async mute(): Promise<boolean> {
      return harnessId === null || (await callHarness(session, harnessId, "mute", [])) === true;
    },
    /** Has the first run's worklet or worker ready, where each run has the next one's prepared. */
    begin: () => callHarness(session, harnessId!, "begin", []),
    /** Resolves when what the last run has prepared is ready. */
    ready: () => callHarness(session, harnessId!, "ready", []),
    /** Ends the last run's worker, and has a fresh one ready. */
    async renew(): Promise<boolean> {
      const renewed = (await callHarness(session, harnessId!, "renew", [])) === true;
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
      return callForText(session, harnessId!, "run", [...texts.valuesOf(request), base]);
    },
    /** Has what workers ask of the service come to `take`. */
    async listenService(take: (payload: string) => void): Promise<void> {
      session.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name === SERVICE_BINDING) take(payload);
      });
      await session.send("Runtime.addBinding", { name: SERVICE_BINDING });
      await callHarness(session, harnessId!, "listenService", [SERVICE_BINDING]);
    },
    answer: (...values: Parameters<Reply>) => callHarness(session, harnessId!, "answer", values),
  };
}

type Header = ReturnType<typeof policy>;

/**
 * Where nothing can be asked for once the page has its document. A run's end begins the next one's worklet or worker, unasked: a message
 * there and back costs a tenth of a run.
 */
function createSilentRealm(options: RealmOptions, harness: string, header: Header): Realm {
  const { session, origin, lose } = options;
  const page = createWorkerPage(options, harness);
  let endedAt = 0;
  let isLong = false;
  session.on("Fetch.requestPaused", ({ requestId }) => answerDocument(session, requestId, [header]));
  session.on("Runtime.bindingCalled", ({ name, payload }) => {
    if (name === CONSOLE_BINDING && payload === "") lose("unready");
  });
  return {
    async settle() {
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      await page.open();
      // On, it costs every worker's start a part, whatever its pattern.
      await session.send("Fetch.disable");
      await page.begin();
    },
    async renew() {
      if (isLong) await page.ready();
      await page.collect();
      return true;
    },
    async evaluate(request) {
      const answer = await page.run(request);
      isLong = typeof answer === "string" && answer.startsWith(LONG_RENEWAL);
      return isLong ? (answer as string).slice(LONG_RENEWAL.length) : answer;
    },
    unreadyMs: () => Math.max(0, endedAt + READY_WITHIN_MS - performance.now()),
    end() {
      endedAt = performance.now();
    },
    explain: async (outcome) => outcome,
    stop: () => {},
  };
}

export const createLanguageRealm = (options: RealmOptions): Realm =>
  createSilentRealm(options, LANGUAGE_HARNESS, LANGUAGE_POLICY);

export const createWorkerRealm = (options: RealmOptions): Realm =>
  createSilentRealm(options, WORKER_HARNESS, WORKER_POLICY);

export function createNetworkRealm(options: RealmOptions): Realm {
  const { session, origin, lane } = options;
  const page = createWorkerPage(options, NETWORK_HARNESS);
  // Nothing in such a worker opens a socket, of which the guard would have to hear first.
  const requests = createRunRequests({ session, origin, lane, caughtUp: async () => {} });
  const calls = createServiceCalls(requests.admit, page.answer);
  let begun = false;
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
  session.on("Fetch.requestPaused", (event) => {
    if (event.request.url === `${origin}/` && !begun) answerDocument(session, event.requestId, [NETWORK_POLICY]);
    else requests.answer(session, event);
  });

  return {
    async settle() {
      await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
      // Nothing is said of the page's own requests: it makes none but those for its workers' first line.
      await page.open();
      await page.listenService((payload) => void calls.take(payload));
    },

    async renew() {
      if (!(await page.mute())) return false;
      await caughtUp();
      await requests.settled();
      const attached = new Promise<void>((resolve) => {
        onAttached = resolve;
      });
      const inHand = await page.renew();
      await attached;
      await Promise.all([watched, requests.clear()]);
      return inHand && !requests.late();
    },

    async evaluate(request) {
      begun = true;
      await requests.begin(request);
      calls.begin(request.service);
      return page.run(request, request.service?.base);
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
